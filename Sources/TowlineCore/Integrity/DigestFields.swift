/// Checksums that a response carries. An `ETag` is never taken for one.
package enum DigestFields {
    /// Checksums of the whole representation as it goes over the wire, strongest first, each once.
    ///
    /// *All* means that the body is the whole file: a 200, or a 206 whose Content-Range names every byte.
    ///
    /// | field | counts on | since |
    /// |---|---|---|
    /// | `Repr-Digest` | 200, 206 | it covers the whole representation, whatever range comes (RFC 9530 §3) |
    /// | `Digest` | 200, 206 | it covers the instance, not the message (RFC 3230 §4.3.2) |
    /// | `Content-Digest` | all | there the content is the representation (RFC 9530 §2) |
    /// | `Content-MD5` | all, not coded | it covers the body that came (RFC 2616 §14.15) |
    /// | `x-goog-hash` | 200, 206, not coded | it covers the stored object, which may be stored coded and sent decoded |
    /// | `x-ms-blob-content-md5` | 200, 206, not coded | it covers the stored blob, whatever range comes |
    /// | `x-amz-checksum-…` | all, not coded | on a part it may be the part's; with `-N` it is a hash of hashes |
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

    /// Checksums of the content of this one message, strongest first: `Content-Digest` (RFC 9530 §2), and
    /// `Content-MD5` where the body is the whole file and not coded. With a part some servers and caches send the
    /// `Content-MD5` of the whole and others that of the part, so there it proves nothing.
    package static func content(_ head: ResponseHead) -> [ServerChecksum] {
        guard head.status == 200 || head.status == 206 else { return [] }
        var found = structured(contentDigest, head.fields)
        let ofContent = md5(contentMD5, head.fields)
        if !ofContent.isEmpty, carriesAll(head), !isCoded(head.fields) { found += ofContent }
        return sorted(found)
    }

    /// The SHA-256 of the file that a redirect of Hugging Face leads to: `X-Linked-Etag` of 64 hexadecimal digits, with
    /// or without quotes, and `X-Linked-Size`. For files in Git itself the tag has 40 digits, and is no checksum of the
    /// bytes.
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

    /// Returns whether the body is every byte of the file, as far as the head says.
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

    /// Whether a content coding lies between what is stored and what came.
    private static func isCoded(_ fields: HTTPFields) -> Bool {
        fields.values(named: "Content-Encoding").contains { !$0.isEmpty && !HTTPFields.equalNames($0, "identity") }
    }

    /// The keys of RFC 9530 §7.2. Its `crc32c` is left out: how its four bytes are written is not said.
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

    /// `Digest: SHA-256=base64,md5=base64` (RFC 3230 §4.3.2); `crc32c` is hexadecimal without leading zeros there.
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

    /// `x-goog-hash: crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ==`, base 64 of the bytes, most significant first.
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

    /// The checksums of an object that was uploaded in one go. A value of several parts ends in `-N`, which is no
    /// base 64; its type says `COMPOSITE` as well.
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

    /// The members `name=value` of a comma-separated list. Two values for one algorithm contradict each other: then
    /// neither counts.
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
