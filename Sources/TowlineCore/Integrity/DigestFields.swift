/// Parsers for the checksums in the header fields of a response. An `ETag` is never used as a checksum.
package enum DigestFields {
    /// Returns the checksums of the whole file (representation) as transferred, strongest first, without duplicates.
    ///
    /// The table lists the responses whose fields count. *All* means that the body is the whole file: a 200, or a 206
    /// whose Content-Range names every byte. *Coded* means that the body has a content coding.
    ///
    /// | field | counts on | because |
    /// |---|---|---|
    /// | `Repr-Digest` | 200, 206 | it covers the whole representation, whatever range is sent (RFC 9530 §3) |
    /// | `Digest` | 200, 206 | it covers the instance, not the message (RFC 3230 §4.3.2) |
    /// | `Content-Digest` | all | the content is then the representation (RFC 9530 §2) |
    /// | `Content-MD5` | all, not coded | it covers the body that is sent (RFC 2616 §14.15) |
    /// | `x-goog-hash` | 200, 206, not coded | it covers the stored object, which may be coded and sent decoded |
    /// | `x-ms-blob-content-md5` | 200, 206, not coded | it covers the stored blob, whatever range is sent |
    /// | `x-amz-checksum-…` | all, not coded | with a part, it may cover the part; with `-N` it is a hash of hashes |
    package static func wholeFile(_ head: ResponseHead) -> [ServerChecksum] {
        guard head.status == 200 || head.status == 206 else { return [] }
        let fields = head.fields
        var found = structured("Repr-Digest", fields) + legacyDigests(fields)
        let (ofContent, isStored) = (content(head), !isCoded(fields))
        let amazon = isStored ? amazonChecksums(fields) : []
        let hasAll = !(ofContent.isEmpty && amazon.isEmpty) && carriesAll(head)
        if hasAll { found += ofContent }
        if isStored { found += googleHashes(fields) + md5("x-ms-blob-content-md5", fields) }
        if hasAll { found += amazon }
        return sorted(found)
    }

    /// Returns the checksums of the content of this response, strongest first: `Content-Digest` (RFC 9530 §2), and
    /// `Content-MD5` if the body is the whole file and not coded. With a part of the file, some servers and caches send
    /// the `Content-MD5` of the whole file and others that of the part, so that it proves nothing.
    package static func content(_ head: ResponseHead) -> [ServerChecksum] {
        guard head.status == 200 || head.status == 206 else { return [] }
        var found = structured(contentDigest, head.fields)
        let ofContent = md5(contentMD5, head.fields)
        if !ofContent.isEmpty, carriesAll(head), !isCoded(head.fields) { found += ofContent }
        return sorted(found)
    }

    /// Returns the SHA-256 of the file that a redirect of Hugging Face leads to: `X-Linked-Etag` of 64 hexadecimal
    /// digits, with or without quotes, and `X-Linked-Size`. For files in Git itself, the tag has 40 digits and is not a
    /// checksum of the bytes; the result is then `nil`.
    package static func linked(_ head: ResponseHead) -> LinkedChecksum? {
        guard let size = head.fields.value(named: "X-Linked-Size"), !size.isEmpty, size.utf8.allSatisfy(ASCII.isDigit),
            let length = ASCII.number(size.utf8),
            let tag = head.fields.value(named: linkedTag),
            let value = Hexadecimal.decoded(
                String(EntityTag(fieldValue: tag)?.isWellFormed ?? false ? tag.dropFirst().dropLast() : tag[...])),
            let checksum = Checksum(algorithm: .sha256, value: value)
        else { return nil }
        return LinkedChecksum(checksum: ServerChecksum(field: linkedTag, checksum), length: length)
    }

    static let contentDigest = "Content-Digest"
    static let contentMD5 = "Content-MD5"
    private static let linkedTag = "X-Linked-Etag"

    /// Returns whether the body is the whole file according to the status and `Content-Range`.
    private static func carriesAll(_ head: ResponseHead) -> Bool {
        let range = head.fields.value(named: "Content-Range").flatMap(ContentRange.init(fieldValue:))
        guard case .satisfied(let range, let complete) = range else { return head.status == 200 }
        return range.lowerBound == 0 && range.upperBound == complete
    }

    private static func sorted(_ found: [ServerChecksum]) -> [ServerChecksum] {
        guard found.count > 1 else { return found }
        var seen: Set<Checksum> = []
        return found.filter { seen.insert($0.checksum).inserted }
            .enumerated()
            .sorted {
                ($1.element.checksum.algorithm.strength, $0.offset)
                    < ($0.element.checksum.algorithm.strength, $1.offset)
            }
            .map(\.element)
    }

    /// Returns whether the body has a content coding, so that it differs from the stored file.
    private static func isCoded(_ fields: HTTPFields) -> Bool {
        fields.values(named: "Content-Encoding").contains { !$0.isEmpty && !HTTPFields.equalNames($0, "identity") }
    }

    /// Returns the checksums in the field `name`, `Repr-Digest` or `Content-Digest` (RFC 9530 §7.2), without `crc32c`,
    /// whose byte order the RFC does not specify.
    private static func structured(_ name: String, _ fields: HTTPFields) -> [ServerChecksum] {
        let lines = fields.values(named: name)
        guard !lines.isEmpty else { return [] }
        let members = ByteSequenceDictionary(lines: lines)?.members ?? []
        return members.compactMap { member in
            let algorithm: Checksum.Algorithm? =
                switch member.key {
                case "sha-512": .sha512
                case "sha-256": .sha256
                case "sha": .sha1
                case "md5": .md5
                default: nil
                }
            return algorithm.flatMap { Checksum(algorithm: $0, value: member.value) }
                .map { ServerChecksum(field: name, $0) }
        }
    }

    /// Parses `Digest: SHA-256=base64,md5=base64` (RFC 3230 §4.3.2), in which `crc32c` is hexadecimal without leading
    /// zeros.
    private static func legacyDigests(_ fields: HTTPFields) -> [ServerChecksum] {
        list("Digest", fields) { name, value in
            switch name {
            case "sha-512": base64(value, .sha512)
            case "sha-256": base64(value, .sha256)
            case "sha": base64(value, .sha1)
            case "md5": base64(value, .md5)
            case "crc32c": shortHexadecimal(value)
            default: nil
            }
        }
    }

    /// Parses the checksums of Google Cloud Storage, `x-goog-hash: crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==`. Each
    /// value is the base 64 form of the bytes, most significant first.
    private static func googleHashes(_ fields: HTTPFields) -> [ServerChecksum] {
        let stored = fields.values(named: "x-goog-stored-content-encoding")
        guard stored.allSatisfy({ $0.isEmpty || HTTPFields.equalNames($0, "identity") }) else { return [] }
        return list("x-goog-hash", fields) { name, value in
            switch name {
            case "md5": base64(value, .md5)
            case "crc32c": base64(value, .crc32c)
            default: nil
            }
        }
    }

    /// Parses the checksums of Amazon S3 (`x-amz-checksum-…`) for an object that was uploaded in one request. The value
    /// of a multipart upload is ignored: it ends in `-N`, which is not base 64, and its type is `COMPOSITE`.
    private static func amazonChecksums(_ fields: HTTPFields) -> [ServerChecksum] {
        let types = fields.values(named: "x-amz-checksum-type")
        guard types.allSatisfy({ HTTPFields.equalNames($0, "FULL_OBJECT") }) else { return [] }
        return amazonFields.compactMap { name, algorithm in
            fields.value(named: name).flatMap { base64($0[...], algorithm) }.map { ServerChecksum(field: name, $0) }
        }
    }

    private static let amazonFields: [(String, Checksum.Algorithm)] = [
        ("x-amz-checksum-sha512", .sha512), ("x-amz-checksum-sha256", .sha256), ("x-amz-checksum-sha1", .sha1),
        ("x-amz-checksum-md5", .md5), ("x-amz-checksum-crc32c", .crc32c),
    ]

    private static func md5(_ name: String, _ fields: HTTPFields) -> [ServerChecksum] {
        fields.value(named: name).flatMap { base64($0[...], .md5) }.map { [ServerChecksum(field: name, $0)] } ?? []
    }

    /// Returns the checksums in a comma-separated list of `name=value`, each parsed by `checksum` (`nil`: ignored). If
    /// an algorithm has two different values, neither counts.
    private static func list(
        _ fieldName: String, _ fields: HTTPFields, _ checksum: (String, Substring) -> Checksum?
    ) -> [ServerChecksum] {
        let lines = fields.values(named: fieldName)
        guard !lines.isEmpty else { return [] }
        var found: [Checksum.Algorithm: Set<Checksum>] = [:]
        for member in lines.flatMap({ $0.split(separator: ",") }) {
            let member = member.drop { $0 == " " || $0 == "\t" }
            guard let equals = member.firstIndex(of: "=") else { continue }
            var value = member[member.index(after: equals)...]
            while value.last == " " || value.last == "\t" { value.removeLast() }
            guard let checksum = checksum(ASCII.lowercased(member[..<equals]), value) else { continue }
            found[checksum.algorithm, default: []].insert(checksum)
        }
        return found.values.compactMap { $0.count == 1 ? $0.first : nil }
            .map { ServerChecksum(field: fieldName, $0) }
    }

    private static func base64(_ text: Substring, _ algorithm: Checksum.Algorithm) -> Checksum? {
        Base64.decoded(Array(text.utf8)).flatMap { Checksum(algorithm: algorithm, value: $0) }
    }

    private static func shortHexadecimal(_ text: Substring) -> Checksum? {
        guard (1...8).contains(text.utf8.count) else { return nil }
        let digits = String(repeating: "0", count: 8 - text.utf8.count) + text
        return Hexadecimal.decoded(digits).flatMap { Checksum(algorithm: .crc32c, value: $0) }
    }
}
