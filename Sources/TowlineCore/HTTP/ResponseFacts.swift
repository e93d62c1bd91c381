/// The parsed status and header fields of a response. `ResponseEvaluator` uses them to decide what to do with its body.
package struct ResponseFacts: Hashable, Sendable {
    /// The status code of the response.
    package let status: Int
    /// The complete length (from a 200's `Content-Length` or a 206's `Content-Range`), the validators, the media type.
    package var representation: Representation
    /// The parsed `Content-Length`, the length of the body in bytes. A transfer coding overrides the field (RFC 9112
    /// §6.3 rule 3).
    package let contentLength: ContentLength.Result
    /// The `Content-Range` field, which names the part of the file in the body; `nil` if the field is absent or
    /// invalid.
    package let contentRange: ContentRange?
    /// `true` if the response has a `Content-Range` field, valid or not: the body is then not assumed to be the whole
    /// file.
    package let hasContentRange: Bool
    /// The server's statement whether it serves parts of the file: `true` if `Accept-Ranges` names `bytes`, `false` if
    /// it does not (`none`); `nil` without the field.
    package let acceptsRanges: Bool?
    /// The content coding, such as a compression of the body; `nil` for no coding or `identity`.
    package private(set) var contentCoding: String?
    /// A content coding that only labels the stored file (`CodingLabel`), or an unknown coding, which changes no bytes;
    /// `nil` if neither is present.
    package private(set) var label: String?
    /// `true` if the response has a transfer coding other than `identity`, usually `chunked`. `Content-Length` then
    /// does not count.
    package let isChunked: Bool
    /// The server's checksums of the whole file, strongest first; empty if the response contains no checksum.
    package private(set) var wholeDigests: [ServerChecksum]
    /// The checksums of this response's content, which may be a part of the file, strongest first.
    package private(set) var contentDigests: [ServerChecksum]
    /// The checksum of the file that a redirect leads to; `nil` if the response does not contain one.
    package let linked: LinkedChecksum?
    /// The first bytes of the body, at most `mostFirstBytes`; empty if they were not examined.
    package var firstBytes: [UInt8] = []
    /// The number of bytes of a body without a length when its connection closed; `nil` for other bodies, and before
    /// the end.
    var lengthAtClose: Int64?
    /// The maximum number of first bytes of a body that are kept.
    static let mostFirstBytes = 512
    /// The length in bytes below which a text is taken for an error instead of a new version of another kind.
    package static let longestError: Int64 = 64 << 10
    /// The name for the file, safe to use: the server's suggestion, or else the name from the URL.
    package let fileName: String
    /// The original name in `Content-Disposition` if `fileName` is based on it, for a notice to the user; otherwise
    /// `nil`.
    package let suggestion: String?
    /// The target of a redirect (`Location`); `nil` if the field is absent or if several values differ.
    package let location: String?
    /// `true` if the response has a `Location` field, also if its values differ.
    package let hasLocation: Bool
    /// The delay of `Retry-After` from the arrival of the response; `nil` if the field is absent or invalid.
    package let retryAfter: Duration?

    /// Parses a head. `nameOfURL` is the name to use if the server gives none (`SafeFileName.ofURL`).
    package init(_ head: ResponseHead, nameOfURL: String) {
        let fields = head.fields
        status = head.status
        let coding = TransferCoding(fields)
        isChunked = coding != .absent && coding != .identity
        contentLength = isChunked ? .absent : ContentLength.parse(fields)
        hasContentRange = fields.has("Content-Range")
        contentRange = fields.value(named: "Content-Range").flatMap(ContentRange.init(fieldValue:))
        acceptsRanges = Self.acceptsRanges(fields)
        contentCoding = Self.contentCoding(fields)
        wholeDigests = DigestFields.wholeFile(head)
        contentDigests = DigestFields.content(head)
        linked = DigestFields.linked(head)
        let suggested = SafeFileName.suggested(by: fields)
        fileName = suggested ?? nameOfURL
        suggestion = suggested == nil ? nil : ContentDisposition.fileName(fields)
        location = fields.value(named: "Location")
        hasLocation = fields.has("Location")
        retryAfter = RetryAfter.delay(fields)
        let modified = fields.value(named: "Last-Modified")
        let lastModified = modified.flatMap { HTTPDate(fieldValue: $0) }
        representation = Representation(
            entityTag: fields.value(named: "ETag").flatMap(EntityTag.init(fieldValue:)),
            lastModified: lastModified ?? modified.flatMap(HTTPDate.init(malformedFieldValue:)),
            // Without Date, Last-Modified is a weak validator: a malformed date must not be sent in another form.
            date: lastModified == nil ? nil : fields.value(named: "Date").flatMap { HTTPDate(fieldValue: $0) },
            mediaType: Self.mediaType(fields))
        if status == 200, case .length(let length) = contentLength {
            representation.completeLength = length
        } else if case .satisfied(_, let complete) = contentRange, status == 206 {
            representation.completeLength = complete
        }
    }

    /// Removes all checksums of the response if the user ignores them (`question.ignoresServerChecksums`). Otherwise
    /// adds the checksum from a redirect if this file has the length that the redirect gave.
    package mutating func adjustDigests(to question: ResponseQuestion) {
        if question.ignoresServerChecksums {
            (wholeDigests, contentDigests) = ([], [])
        } else if let linked = question.linked ?? (question.isAtFirstOrigin ? linked : nil),
            linked.length == representation.completeLength,
            contentCoding == nil, !wholeDigests.contains(where: { $0.checksum.algorithm == .sha256 })
        {
            wholeDigests.insert(linked.checksum, at: 0)
        }
    }

    /// The parsed head of a 200 with Content-Range, with its body treated as a part of the file; `nil` unless
    /// Content-Length is missing or agrees with the range, and the body has no content coding.
    package var asPart: ResponseFacts? {
        guard status == 200, contentCoding == nil, case .satisfied(let range, let complete) = contentRange else {
            return nil
        }
        if case .length(let length) = contentLength, length != range.count { return nil }
        var part = self
        part.representation.completeLength = complete
        return part
    }

    /// This parsed head with the content coding treated as the name of the file's type (`CodingLabel`): the body counts
    /// as the stored file.
    var withoutLabel: ResponseFacts {
        var facts = self
        (facts.label, facts.contentCoding) = (contentCoding, nil)
        return facts
    }

    private static func contentCoding(_ fields: HTTPFields) -> String? {
        let codings = fields.values(named: "Content-Encoding")
        let coding = codings.count > 1 ? codings.joined(separator: ",") : codings.first ?? ""
        return coding.isEmpty || HTTPFields.equalNames(coding, "identity") ? nil : coding
    }

    private static func acceptsRanges(_ fields: HTTPFields) -> Bool? {
        let values = fields.values(named: "Accept-Ranges")
        guard !values.isEmpty else { return nil }
        return values.contains { value in
            value.utf8.split(separator: 0x2C).contains { unit in
                unit.filter { $0 != 0x20 && $0 != 0x09 }.elementsEqual("bytes".utf8) {
                    ASCII.lowercased($0) == $1
                }
            }
        }
    }

    private static func mediaType(_ fields: HTTPFields) -> String? {
        guard let value = fields.firstValue(named: "Content-Type") else { return nil }
        // Most values need no change.
        if (1...127).contains(value.utf8.count), isPlain(value) { return value }
        let lowered = value.utf8.prefix { $0 != 0x3B }.compactMap { byte in
            byte == 0x20 || byte == 0x09 ? nil : ASCII.lowercased(byte)
        }
        return lowered.isEmpty || lowered.count > 127 ? nil : String(decoding: lowered, as: UTF8.self)
    }

    private static func isPlain(_ value: String) -> Bool {
        value.utf8.withContiguousStorageIfAvailable { bytes in
            for byte in bytes where byte == 0x3B || byte == 0x20 || byte == 0x09 || byte != ASCII.lowercased(byte) {
                return false
            }
            return true
        } ?? false
    }

    /// `true` if the media type is that of a web page, such as a captive portal or an error page.
    package var isWebPage: Bool {
        representation.mediaType.map(WebPage.isPage(mediaType:)) ?? false
    }
}
