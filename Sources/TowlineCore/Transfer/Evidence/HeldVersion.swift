/// The version of the file whose bytes a new version would replace: the bytes in the part file, or a finished file.
/// Decides whether a response is believed to be a new version (docs/http-rules.md, "Believing a change").
package struct HeldVersion: Sendable {
    /// The length, validators and media type of the file that the held bytes belong to.
    var representation: Representation
    /// The Content-Encoding of the held bytes; `nil` if they are the bytes of the file itself.
    var coding: String?
    /// The number of held bytes.
    package var count: Int64
    /// The kind of the held content.
    var kind: ContentKind
    /// `true` if only the first bytes show the kind, which do not distinguish one kind of text from another.
    var isKindGuessed = false

    /// Creates the version of `count` held bytes.
    package init(_ representation: Representation, coding: String? = nil, count: Int64) {
        (self.representation, self.coding, self.count) = (representation, coding, count)
        kind = ContentKind(mediaType: representation.mediaType)
    }

    /// Creates the version of a finished file, which an update may replace. Its media type is not stored, so its first
    /// bytes decide the kind.
    ///
    /// The modification time of a file from another program stands for a date of the server.
    init(_ file: ExistingFile) {
        representation = Representation(
            completeLength: file.length, entityTag: file.version?.entityTag,
            lastModified: file.version?.isDated ?? true ? file.modified : nil)
        (count, kind, isKindGuessed) = (file.length, file.kind ?? .binary, file.kind != nil)
    }

    /// The conclusions from a response that would replace the held bytes.
    enum Belief: Hashable, Sendable {
        /// The response does not show another version.
        case same
        /// The response shows a new version.
        case changed
        /// Another request must repeat what the response shows.
        case unconfirmed
        /// The response is an error or an empty body, not the file.
        case refused
    }

    /// The notice for the user that these bytes were deleted, because a new version needs their space.
    package var deletionNotice: String {
        "the disk has no space for two versions of the file, so the \(ByteCountText.format(count)) of the earlier one "
            + "were deleted"
    }

    /// Returns whether a response has this version, so that these bytes can be resumed: an equal strong validator and
    /// an equal length. Small files cannot be resumed.
    func isVersion(of offer: ResponseFacts) -> Bool {
        offer.contentCoding == nil && coding == nil && representation.completeLength ?? 0 > SmallFilePolicy.longest
            && representation.repeatsValidator(of: offer.representation, weakly: false)
            && representation.completeLength == offer.representation.completeLength
    }

    /// The number of held bytes above which a short text is taken for an error, even if the held bytes are text.
    static let worthKeeping: Int64 = 1 << 20

    /// Returns the conclusion from the head of a response, and from the first bytes of its body as far as they are
    /// known.
    func belief(in offer: ResponseFacts) -> Belief {
        let offered = offer.representation
        let isEqual = agrees(offered.mediaType) && offer.contentCoding == coding
        let validators = compareValidators(with: offered)
        if isEqual, [.none, .equal].contains(validators), representation.contradiction(with: offered) == nil {
            return .same
        }
        // A 416 response names only the length of the file. A request for the whole file shows the rest.
        if offer.status == 416 { return .unconfirmed }
        let length = offered.completeLength ?? offer.lengthAtClose
        if length == 0, max(count, representation.completeLength ?? 0) > 0 { return .refused }
        if isError(ContentKind(mediaType: offered.mediaType), length) { return .refused }
        // The bytes of a short coded body cannot be read here.
        let isOpaque = offer.contentCoding != nil && coding == nil && isShort(length)
        let isText = isError(ContentKind(firstBytes: offer.firstBytes), length)
        if isText, count > Self.worthKeeping || knowsKind { return .refused }
        let addsNoCoding = offer.contentCoding == nil || offer.contentCoding == coding
        if validators == .new, agrees(offered.mediaType), addsNoCoding { return .changed }
        return isOpaque || isText ? .refused : .unconfirmed
    }

    /// The result of comparing the validators of the held version with those of a response.
    private enum Validators { case none, equal, new, ofOtherKinds }

    /// Compares the entity tags, or the dates if the held version has no entity tag.
    private func compareValidators(with offered: Representation) -> Validators {
        if let mine = representation.entityTag {
            return offered.entityTag.map { mine.matchesWeakly($0) ? .equal : .new } ?? .ofOtherKinds
        }
        guard let mine = representation.lastModified else {
            return offered.entityTag == nil && offered.lastModified == nil ? .none : .ofOtherKinds
        }
        return offered.lastModified.map { $0 == mine ? .equal : .new } ?? .ofOtherKinds
    }

    private func isShort(_ length: Int64?) -> Bool { length.map { $0 < ResponseFacts.longestError } ?? false }

    private func isError(_ offered: ContentKind, _ length: Int64?) -> Bool {
        offered != .binary && isShort(length) && (!isOfKind(offered) || count > Self.worthKeeping)
    }

    /// `true` if the media type names a type, or the first bytes are known.
    private var knowsKind: Bool { isKindGuessed || !Self.isUnspecific(representation.mediaType) }

    private static func isUnspecific(_ type: String?) -> Bool { type == nil || type == "application/octet-stream" }

    private func isOfKind(_ offered: ContentKind) -> Bool {
        guard isKindGuessed, kind != .binary, offered != .binary else { return kind == offered }
        return (kind == .page) == (offered == .page)
    }

    /// Returns whether a media type is that of the held bytes. An absent type and `application/octet-stream` agree with
    /// each type that is not text.
    private func agrees(_ mediaType: String?) -> Bool {
        let mine = representation.mediaType
        if mine == mediaType { return true }
        guard Self.isUnspecific(mine) || Self.isUnspecific(mediaType) else { return false }
        if isKindGuessed { return Self.isUnspecific(mediaType) || isOfKind(ContentKind(mediaType: mediaType)) }
        return ContentKind(mediaType: mediaType) == .binary && ContentKind(mediaType: mine) == .binary
    }
}

/// A version of the file that a response showed, and that another request must repeat before it replaces held bytes.
struct ClaimedVersion: Sendable {
    /// The length, validators and media type of the claimed version.
    let representation: Representation

    /// Returns whether another response shows the claimed version: equal media type and validator, and a length that is
    /// equal or larger.
    func isRepeated(by offered: Representation) -> Bool {
        let mine = representation
        guard mine.mediaType == offered.mediaType, mine.validatorKind == offered.validatorKind else { return false }
        guard mine.validatorKind == .none || mine.repeatsValidator(of: offered, weakly: true) else { return false }
        guard let length = mine.completeLength else {
            return mine.validatorKind != .none || offered.completeLength == nil
        }
        return offered.completeLength.map { $0 >= length } ?? false
    }
}

extension TransferPatience.Failure {
    /// Creates the failure of a request that got a web page. Before the first byte, a login page usually outlasts every
    /// useful wait.
    static func page(_ reason: String) -> Self { Self(reason: reason, limit: 2) }
}

extension ResponseFacts {
    /// The media type, the content coding and the length of the response, for messages.
    var summary: String {
        let type = representation.mediaType.map { TerminalSafeText.make($0, width: 40) }
        let coding = contentCoding.map { ", compressed with " + TerminalSafeText.make($0, width: 20) } ?? ""
        let length = (representation.completeLength ?? lengthAtClose).map { $0 == 1 ? "1 byte" : "\($0) bytes" }
        return "\(type ?? "no media type")\(coding), \(length ?? "unknown length")"
    }

    /// Returns the failed request if the response is not the file, and would replace the version `held`.
    func refusal(keeping held: HeldVersion) -> TransferPatience.Failure {
        var failure = TransferPatience.Failure(
            reason: "the server sent something else instead of the file: \(summary)")
        let text = TerminalSafeText.make(String(decoding: firstBytes.prefix(80), as: UTF8.self), width: 60)
        if ContentKind(firstBytes: firstBytes) != .binary { failure.detail = ", beginning with \"\(text)\"" }
        let kept = held.count > 0 ? "The bytes downloaded before are kept. " : ""
        failure.wayOut = "\(kept)If the response is the new file, \(Remedy.acceptedChange)"
        return failure
    }
}

extension Representation {
    /// The kinds of validators that a server may send.
    enum ValidatorKind: Hashable, Sendable { case none, entityTag, date }

    /// The kind of validator that the response has; an entity tag takes precedence over a date (RFC 9110 §13.2.2).
    var validatorKind: ValidatorKind {
        entityTag != nil ? .entityTag : lastModified != nil ? .date : .none
    }
}
