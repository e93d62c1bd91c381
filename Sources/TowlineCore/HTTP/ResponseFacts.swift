/// What a response head says, parsed once.
package struct ResponseFacts: Hashable, Sendable {
    /// Status code.
    package let status: Int
    /// Complete length (from a 200's `Content-Length` or a 206's `Content-Range`), validators, media type.
    package var representation: Representation
    /// `Content-Length`. A transfer coding overrides the field (RFC 9112 §6.3 rule 3).
    package let contentLength: ContentLength.Result
    /// `Content-Range`, if there is one that makes sense.
    package let contentRange: ContentRange?
    /// Whether there is a `Content-Range` at all.
    package let hasContentRange: Bool
    /// `Accept-Ranges` names `bytes`; `false` if it says `none`; `nil` if it says nothing.
    package let acceptsRanges: Bool?
    /// The content coding, if it is not identity.
    package private(set) var contentCoding: String?
    /// A content coding that only labels the stored file (`CodingLabel`), or that nobody knows.
    package private(set) var label: String?
    /// A transfer coding tells the end of the body.
    package let isChunked: Bool
    /// Checksums of the whole representation that the server vouches for, strongest first.
    package private(set) var wholeDigests: [ServerChecksum]
    /// Checksums of this response's content.
    package private(set) var contentDigests: [ServerChecksum]
    /// The checksum of the file that a redirect leads to.
    package let linked: LinkedChecksum?
    /// The name the file should have, safe to use.
    package let fileName: String
    /// The name of `Content-Disposition` as it was sent, if `fileName` is made of it.
    package let suggestion: String?
    /// `Location`; `nil` also if several differ.
    package let location: String?
    /// The response has a `Location` field.
    package let hasLocation: Bool
    /// `Retry-After`, relative.
    package let retryAfter: Duration?

    /// Parses a head. `nameOfURL` is the name where the server gives none (`SafeFileName.ofURL`).
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
            // Without Date, a date is a weak validator: one that is malformed must not be sent back in another form.
            date: lastModified == nil ? nil : fields.value(named: "Date").flatMap { HTTPDate(fieldValue: $0) },
            mediaType: Self.mediaType(fields))
        if status == 200, case .length(let length) = contentLength {
            representation.completeLength = length
        } else if case .satisfied(_, let complete) = contentRange, status == 206 {
            representation.completeLength = complete
        }
    }

    /// Adds the checksum that a redirect gave for the file, if this is a file of that length, or removes all checksums,
    /// as the question says.
    package mutating func adjustDigests(to question: ResponseQuestion) {
        if question.ignoresServerChecksums {
            (wholeDigests, contentDigests) = ([], [])
        } else if let linked = question.linked ?? linked, linked.length == representation.completeLength,
            contentCoding == nil, !wholeDigests.contains(where: { $0.checksum.algorithm == .sha256 })
        {
            wholeDigests.insert(linked.checksum, at: 0)
        }
    }

    /// The same response as the part that a 200 with Content-Range names; `nil` unless Content-Length agrees, or is
    /// missing, and no coding lies between the range and the body.
    package var asPart: ResponseFacts? {
        guard status == 200, contentCoding == nil, case .satisfied(let range, let complete) = contentRange else {
            return nil
        }
        if case .length(let length) = contentLength, length != range.count { return nil }
        var part = self
        part.representation.completeLength = complete
        return part
    }

    /// The same response, whose content coding is only a label.
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
        // Most come as they are kept.
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

    /// Whether the content is a page for people: what captive portals and error pages answer with.
    package var isWebPage: Bool {
        representation.mediaType.map(WebPage.isPage(mediaType:)) ?? false
    }
}
