/// A notice for the user: what happened and why.
package struct TransferNotice: Hashable, Sendable {
    /// The importance of a notice.
    package enum Level: String, Sendable {
        /// Information that needs no reaction of the user.
        case info
        /// Bytes were downloaded again, or the file could not be verified.
        case warning
    }

    /// The kinds of notice to the user, by subject. The raw value is a stable name for programs, such as `restarted`.
    package enum Kind: String, Sendable {
        /// The download resumes with bytes that an earlier transfer left on disk.
        case resumed
        /// Bytes were discarded and the download starts over.
        case restarted
        /// An attempt failed and another follows.
        case retrying
        /// The server has not responded yet.
        case waiting
        /// The server limits connections or rate.
        case limited
        /// A URL of the file is no longer used, because it failed or has another file.
        case sourceLeftOut
        /// A redirect to another server was followed.
        case redirected
        /// The file is downloaded as one stream, because ranges do not work for it.
        case singleStream
        /// The length or the bytes of the file could not be verified.
        case unverified
        /// The file matches its checksum, or at least the user's checksum.
        case verified
        /// Something happened to files on disk, such as a failed sync.
        case disk
    }

    /// The importance of the notice.
    package let level: Level
    /// The kind of notice, for programs that do not read the message.
    package let kind: Kind
    /// The text of the notice: one sentence, without secrets and without raw bytes of a server.
    package let message: String

    /// Creates a notice with its importance, its kind and its text.
    package init(_ level: Level, _ kind: Kind, _ message: String) {
        self.level = level
        self.kind = kind
        self.message = message
    }

    /// Returns a notice that the file matches these checksums.
    package static func verified(_ checksums: [Checksum]) -> TransferNotice {
        let names = checksums.map(\.algorithm.rawValue).joined(separator: ", ")
        return TransferNotice(.info, .verified, "the file matches its checksum (\(names))")
    }

    /// Returns a warning that the file is accepted although the server's checksum does not match, because the user's
    /// does.
    static func outranked(_ wrong: ServerChecksum?) -> TransferNotice {
        let name = wrong.map { " (\($0.field))" } ?? ""
        return TransferNotice(
            .warning, .verified,
            "the file matches the expected checksum. The checksum that the server sent\(name) does not match and is"
                + " ignored")
    }

    /// Returns a warning that the length `count` is not verified; `nil` if the framing proves the length.
    ///
    /// - Parameter isIgnored: `true` if the user ignores the server's length (`--ignore-length`).
    package static func withoutLength(
        _ count: Int64, _ framing: AttemptEnd.Framing, isIgnored: Bool
    ) -> TransferNotice? {
        let end: String
        switch framing {
        case .delimited: return nil
        case .stream:
            end = "the server ended the response after \(count) bytes (HTTP/2), apparently at the end of the file"
        case .unclosed:
            end =
                "the server ended the response after \(count) bytes without closing TLS (close_notify), apparently at the"
                + " end of the file"
        case .closed: end = "the server closed the connection after \(count) bytes, apparently at the end of the file"
        }
        let reason =
            isIgnored
            ? Remedy.ignoredLength.sentence : "The server did not send the length of the file"
        return TransferNotice(
            .warning, .unverified,
            "\(end). \(reason), so the downloaded file may be incomplete. To verify the file, \(Remedy.checksum)")
    }
}

/// Functions that create the notices of a transfer with long messages.
extension TransferNotice {
    /// Returns a warning that a source is no longer used. `reason` may begin with its URL.
    static func leftOut(_ url: HTTPURL, _ reason: String) -> TransferNotice {
        let name = "\(url): "
        let shown = reason.hasPrefix(name) ? reason : name + reason
        return TransferNotice(.warning, .sourceLeftOut, "\(shown). Continuing without this source")
    }

    /// Returns a warning that the file is saved without decoding; `nil` if the response has no content coding.
    static func savedAsReceived(_ facts: ResponseFacts) -> TransferNotice? {
        if let label = facts.label, !CodingLabel.isKnown(label) {
            let name = TerminalSafeText.make(label, width: 20)
            let text = "the server sent an unknown Content-Encoding (\(name)). The file is saved as received"
            return TransferNotice(.warning, .singleStream, text)
        }
        guard let coding = facts.contentCoding else { return nil }
        let name = TerminalSafeText.make(coding, width: 20)
        let text =
            "the server compresses the file (Content-Encoding: \(name))."
            + " The file is saved as received, without decompression."
            + " An interrupted download restarts from the beginning"
        return TransferNotice(.warning, .singleStream, text)
    }

    /// Returns a warning that `count` bytes are downloaded again, because they do not match the server's checksum.
    /// `field`: the name of the response field with the checksum.
    static func requestedAgain(_ count: Int64, _ field: String?) -> TransferNotice {
        let text =
            "\(ByteCountText.format(count)) of received data do not match the checksum that the server"
            + " sent\(TowlineError.named(field)) and are downloaded again"
        return TransferNotice(.warning, .retrying, text)
    }

    /// Returns a warning that the download starts over, because `count` bytes of an earlier transfer are not trusted.
    static func distrusted(_ count: Int64) -> TransferNotice {
        let size = ByteCountText.format(count)
        let text =
            "restarting from the beginning: the \(size) downloaded so far are not trusted, because they came over http or"
            + " from a copied part file. To keep such bytes, \(Remedy.checksum)"
        return TransferNotice(.warning, .restarted, text)
    }
}
