/// A conversion between bytes and text that preserves every byte: file names, arguments of the command line, lines of
/// lists and values of header fields are sequences of bytes that may not be UTF-8.
///
/// Valid UTF-8 is decoded as such. A byte outside valid UTF-8 becomes the private-use character U+10FF00 + byte, which
/// `encode` converts back. The bytes of a character from U+10FF80 to U+10FFFF are escaped in the same way, so that no
/// two byte sequences have the same text. Messages show such a character as `\xe9`.
package enum ByteText {
    private static let base: UInt32 = 0x10FF00
    private static let escapes: ClosedRange<UInt32> = 0x10FF80...0x10FFFF
    /// The first byte of every escape in UTF-8, for a fast check whether a text has escapes.
    private static let mark: UInt8 = 0xF4

    /// Returns the byte that a private-use character represents; `nil` if the character is not such an escape.
    package static func byte(_ scalar: Unicode.Scalar) -> UInt8? {
        escapes.contains(scalar.value) ? UInt8(truncatingIfNeeded: scalar.value - base) : nil
    }

    /// Returns the text of `bytes`, with bytes outside valid UTF-8 escaped so that `encode` can restore them.
    package static func decode(_ bytes: [UInt8]) -> String {
        if !bytes.contains(mark), let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        var index = 0
        while index < bytes.count {
            if let scalar = scalar(in: bytes, at: index), !escapes.contains(scalar.value) {
                text.append(scalar)
                index += UTF8.width(scalar)
            } else {
                // A byte below 0x80 is always a complete character.
                if let escape = Unicode.Scalar(base + UInt32(bytes[index])) { text.append(escape) }
                index += 1
            }
        }
        return String(text)
    }

    /// Returns the bytes that `decode` converted to `text`; UTF-8 for any other text.
    package static func encode(_ text: String) -> [UInt8] {
        guard text.utf8.contains(mark) else { return Array(text.utf8) }
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if let byte = byte(scalar) {
                bytes.append(byte)
            } else {
                bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        return bytes
    }

    /// Returns the text with each escaped byte as `%` and two hexadecimal digits (RFC 3986 §2.1).
    package static func percentEncoded(_ text: String) -> String {
        guard text.utf8.contains(mark) else { return text }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            if let byte = byte(scalar) {
                result += "%" + String(byte, radix: 16, uppercase: true)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
    }

    /// Calls `body` with the bytes of `text` as a C string, for system calls and libraries.
    package static func withCString<Result>(_ text: String, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        let isMarked = text.utf8.withContiguousStorageIfAvailable { $0.contains(mark) } ?? text.utf8.contains(mark)
        guard isMarked else { return text.withCString(body) }
        let bytes = encode(text) + [0]
        return bytes.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                characters.baseAddress.map(body) ?? text.withCString(body)
            }
        }
    }

    /// Returns the text with each escaped byte shown as `\xe9`, and all other characters unchanged.
    package static func shown(_ text: String) -> String {
        guard text.utf8.contains(mark) else { return text }
        return text.unicodeScalars.map { byte($0).map { "\\x" + String($0, radix: 16) } ?? String($0) }.joined()
    }

    /// Returns the text that a server probably means by a name from `decode`. If a byte is not UTF-8, all bytes are
    /// read as ISO-8859-1 (RFC 6266 §4.3): people and programs that use names from servers know only Unicode.
    package static func readable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { byte($0) != nil }) else { return text }
        return latin(encode(text))
    }

    /// Returns the text of bytes in the character set ISO-8859-1.
    package static func latin(_ bytes: [UInt8]) -> String {
        var text = ""
        text.unicodeScalars.append(contentsOf: bytes.map { Unicode.Scalar($0) })
        return text
    }

    /// Returns the character that starts at `index`; `nil` if no valid UTF-8 starts there.
    private static func scalar(in bytes: [UInt8], at index: Int) -> Unicode.Scalar? {
        let length: Int
        switch bytes[index] {
        case 0x00...0x7F: length = 1
        case 0xC2...0xDF: length = 2
        case 0xE0...0xEF: length = 3
        case 0xF0...0xF4: length = 4
        default: return nil
        }
        guard index + length <= bytes.count,
            let text = String(validating: bytes[index..<(index + length)], as: UTF8.self)
        else { return nil }
        let scalars = text.unicodeScalars
        return scalars.count == 1 ? scalars.first : nil
    }
}
