/// A parser of the file name that a server proposes in the header field `Content-Disposition` (RFC 6266).
package enum ContentDisposition {
    /// Returns the name in `Content-Disposition`: `filename*` before `filename`, with percent-encoding decoded for
    /// `filename*` only. `nil` if no name is present, the name is empty, or lines or parameters contradict each other.
    ///
    /// Parsing is lenient for known errors of servers (no disposition type, names with spaces and without quotes),
    /// because the result is only a hint. The result is untrusted text: see `SafeFileName`.
    package static func fileName(_ fields: HTTPFields) -> String? {
        guard let value = fields.value(named: "Content-Disposition") else { return nil }
        let parameters = parameters(of: value)
        // RFC 6266 §4.1: a name that occurs more than once makes the field invalid.
        let extended = parameters.filter { $0.name == "filename*" }
        let plain = parameters.filter { $0.name == "filename" }
        guard extended.count <= 1, plain.count <= 1 else { return nil }
        let name =
            extended.first.flatMap { decodedExtendedValue($0.value) } ?? plain.first.map { decodedPlain($0.value) }
        return name?.isEmpty == false ? name : nil
    }

    private static func parameters(of value: String) -> [(name: String, value: String)] {
        var scanner = FieldScanner(value)
        var parameters: [(name: String, value: String)] = []
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            let name = ASCII.lowercased(scanner.token() ?? "")
            scanner.skipWhitespace()
            if !name.isEmpty, scanner.skip("=") {
                scanner.skipWhitespace()
                guard let value = parameterValue(&scanner) else { return parameters }
                parameters.append((name, value))
            }
            // Skips the disposition type or unknown text, up to the next parameter.
            _ = scanner.take { $0 != 0x3B }
            _ = scanner.skip(";")
        }
        return parameters
    }

    /// Decodes the value of the parameter `filename`: bytes that are not UTF-8 are read as ISO-8859-1 (RFC 6266 §4.3),
    /// and encoded words of mail are decoded, as in browsers.
    private static func decodedPlain(_ value: String) -> String {
        let text = ByteText.readable(value)
        return value.utf8.contains(0x3F) ? EncodedWords.decoded(text) : text
    }

    /// Reads the value of a parameter such as `filename=`: a quoted string, or otherwise the bytes up to the next `;`.
    private static func parameterValue(_ scanner: inout FieldScanner) -> String? {
        if scanner.next == 0x22 { return scanner.quotedString() }
        let raw = scanner.take { $0 != 0x3B }
        let end = raw.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 + 1 } ?? raw.startIndex
        return String(decoding: raw[..<end], as: UTF8.self)
    }

    /// Decodes the value of the parameter `filename*`, `charset'language'value` (RFC 8187 §3.2.1), in UTF-8 or
    /// ISO-8859-1. `nil` for another charset, an invalid escape, and bytes that are invalid in the charset: the caller
    /// then uses `filename` (RFC 6266 §4.3).
    private static func decodedExtendedValue(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentEncoding.decoded(parts[2]) else { return nil }
        switch ASCII.lowercased(parts[0]) {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return ByteText.latin(bytes)
        default: return nil
        }
    }
}
