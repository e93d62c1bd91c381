/// Conversion between bytes and their percent-encoded form in a URL (RFC 3986 §2.1).
package enum PercentEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Decodes the escapes of `text` once; `nil` if a `%` is not followed by two hexadecimal digits.
    package static func decoded(_ text: some StringProtocol) -> [UInt8]? { decoded(text.utf8, escape: 0x25) }

    /// Decodes the escapes of bytes once, with `escape` instead of `%`; `nil` if an `escape` is not followed by two
    /// hexadecimal digits.
    static func decoded(_ text: some Collection<UInt8>, escape: UInt8) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var bytes = text.makeIterator()
        while let byte = bytes.next() {
            guard byte == escape else {
                decoded.append(byte)
                continue
            }
            guard let high = bytes.next().flatMap(ASCII.hexadecimalValue),
                let low = bytes.next().flatMap(ASCII.hexadecimalValue)
            else { return nil }
            decoded.append(high << 4 | low)
        }
        return decoded
    }

    /// Encodes a path or query for a request: controls, the space, `"<>\^` and the backquote, `{|}` and bytes beyond
    /// ASCII become escapes. Existing escapes, also `%2f`, remain unchanged, because a signature may cover them.
    package static func encodedForRequest(_ bytes: some Sequence<UInt8>) -> String {
        var encoded: [UInt8] = []
        for byte in bytes {
            if needsEscape(byte) {
                encoded += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                encoded.append(byte)
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Returns whether a byte of a path or query must be escaped in a request.
    static func needsEscape(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F...: true
        case 0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B...0x7D: true  // " < > \ ^ ` { | }
        default: false
        }
    }
}
