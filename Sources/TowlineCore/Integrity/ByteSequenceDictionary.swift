/// A parser of the binary values in a dictionary header field (RFC 8941 §3.2), such as the checksums in `Repr-Digest`.
/// Values of other types are ignored.
///
/// The whole field is ignored if any part is malformed (RFC 8941 §4.2): a misread digest would refuse a valid file.
struct ByteSequenceDictionary {
    /// The keys and the decoded binary values, such as `sha-256` and the bytes of the checksum. If a key is repeated,
    /// the last one counts (RFC 8941 §4.2.2).
    private(set) var members: [(key: String, value: [UInt8])] = []

    /// Parses the lines of a header field. Returns `nil` if the lines, joined by commas, are not a dictionary.
    init?(lines: [String]) {
        var scanner = FieldScanner(lines.joined(separator: ","))
        scanner.skipWhitespace()
        while !scanner.isAtEnd {
            guard let key = Self.key(&scanner) else { return nil }
            members.removeAll { $0.key == key }
            if scanner.skip("=") {
                guard let item = Self.member(&scanner) else { return nil }
                if case .bytes(let value) = item { members.append((key, value)) }
            }
            guard Self.skipParameters(&scanner) else { return nil }
            scanner.skipWhitespace()
            if scanner.isAtEnd { return }
            guard scanner.skip(",") else { return nil }
            scanner.skipWhitespace()
            // RFC 8941 §4.2.2: a comma at the end is an error.
            guard !scanner.isAtEnd else { return nil }
        }
    }

    private enum Item {
        case bytes([UInt8])
        case other
    }

    private static func key(_ scanner: inout FieldScanner) -> String? {
        guard let first = scanner.next, (0x61...0x7A).contains(first) || first == 0x2A else { return nil }
        let key = scanner.take {
            (0x61...0x7A).contains($0) || ASCII.isDigit($0) || [0x5F, 0x2D, 0x2E, 0x2A].contains($0)
        }
        return String(decoding: key, as: UTF8.self)
    }

    private static func member(_ scanner: inout FieldScanner) -> Item? {
        guard scanner.skip("(") else { return bareItem(&scanner) }
        while true {
            scanner.skipWhitespace()
            if scanner.skip(")") { return .other }
            guard bareItem(&scanner) != nil, skipParameters(&scanner) else { return nil }
        }
    }

    private static func bareItem(_ scanner: inout FieldScanner) -> Item? {
        switch scanner.next {
        case 0x3A:  // :base64:
            _ = scanner.take()
            let text = scanner.take { $0 != 0x3A }
            guard scanner.skip(":"), let bytes = Base64.decoded(text) else { return nil }
            return .bytes(bytes)
        case 0x22:
            return scanner.quotedString().map { _ in .other }
        case 0x3F:  // ?0 or ?1
            _ = scanner.take()
            return scanner.skip("0") || scanner.skip("1") ? .other : nil
        default:
            // Only the length of tokens and numbers matters here.
            let other = scanner.take { ASCII.isTokenByte($0) || $0 == 0x3A || $0 == 0x2F }
            return other.isEmpty ? nil : .other
        }
    }

    private static func skipParameters(_ scanner: inout FieldScanner) -> Bool {
        while scanner.skip(";") {
            scanner.skipWhitespace()
            guard key(&scanner) != nil else { return false }
            if scanner.skip("="), bareItem(&scanner) == nil { return false }
        }
        return true
    }
}
