/// Field values as text, reversibly.
///
/// A field value is a sequence of bytes (RFC 9110 §5.5) and an entity tag must go back byte for byte (§8.8.3), yet
/// values travel as `String`. Bytes that are UTF-8 are decoded as such. A byte that is no part of valid UTF-8 becomes
/// the private-use character U+10FF00 + byte, which `encode` turns back; the same is done to the bytes of a character
/// from U+10FF80 to U+10FFFF that came over the wire, so that no two byte sequences share a text.
enum FieldText {
    private static let base: UInt32 = 0x10FF00
    private static let escapes: ClosedRange<UInt32> = 0x10FF80...0x10FFFF

    /// The text of `bytes`.
    static func decode(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        if all < 0x80 { return String(decoding: bytes, as: UTF8.self) }
        var text = String.UnicodeScalarView()
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if let (scalar, next) = scalar(in: bytes, at: index), !escapes.contains(scalar.value) {
                text.append(scalar)
                index = next
            } else {
                if let escape = Unicode.Scalar(base + UInt32(bytes[index])) { text.append(escape) }
                index = bytes.index(after: index)
            }
        }
        return String(text)
    }

    /// The bytes that `decode` made `text` of; UTF-8 for any other text.
    static func encode(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        encode(text, into: &bytes)
        return bytes
    }

    /// Adds these bytes to others.
    static func encode(_ text: String, into bytes: inout [UInt8]) {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return bytes.append(contentsOf: text.utf8) }
        for scalar in text.unicodeScalars {
            if escapes.contains(scalar.value) {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value - base))
            } else {
                bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
    }

    /// The character that starts at `index`; `nil` if what is there is not valid UTF-8.
    private static func scalar<Bytes: BidirectionalCollection<UInt8>>(
        in bytes: Bytes, at index: Bytes.Index
    ) -> (Unicode.Scalar, Bytes.Index)? {
        let length: Int
        switch bytes[index] {
        case 0x00...0x7F: length = 1
        case 0xC2...0xDF: length = 2
        case 0xE0...0xEF: length = 3
        case 0xF0...0xF4: length = 4
        default: return nil
        }
        guard let end = bytes.index(index, offsetBy: length, limitedBy: bytes.endIndex) else { return nil }
        guard let text = String(validating: bytes[index..<end], as: UTF8.self) else { return nil }
        let scalars = text.unicodeScalars
        guard let scalar = scalars.first, scalars.count == 1 else { return nil }
        return (scalar, end)
    }
}
