/// A cursor over the bytes of a field value, with methods that take the common elements of RFC 9110 §5.6 (tokens,
/// quoted strings, numbers).
///
/// The cursor uses bytes, not characters: `\r\n` is one `Character`, and a combining mark would hide the quote before
/// it.
struct FieldScanner {
    private let bytes: [UInt8]
    private(set) var index = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { index == bytes.count }
    var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    /// Takes the next byte if it is `byte`. Returns whether the byte was taken.
    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
        guard let next, UInt32(next) == byte.value else { return false }
        index += 1
        return true
    }

    /// Takes the next byte and returns it; `nil` at the end of the field value.
    mutating func take() -> UInt8? {
        guard let next else { return nil }
        index += 1
        return next
    }

    /// Takes `text` if it is next, ignoring ASCII case. Returns whether the text was taken.
    mutating func skip(word text: StaticString) -> Bool {
        let end = index + text.utf8CodeUnitCount
        guard end <= bytes.count else { return false }
        let isSame = text.withUTF8Buffer { word in
            for offset in word.indices where ASCII.lowercased(bytes[index + offset]) != ASCII.lowercased(word[offset]) {
                return false
            }
            return true
        }
        guard isSame else { return false }
        index = end
        return true
    }

    /// Takes the spaces and tabs that are next, if any (`OWS`, RFC 9110 §5.6.3).
    mutating func skipWhitespace() {
        while let next, next == 0x20 || next == 0x09 { index += 1 }
    }

    /// Takes bytes while `belongs` returns `true`, and returns them; the result may be empty.
    mutating func take(while belongs: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = index
        while let next, belongs(next) { index += 1 }
        return bytes[start..<index]
    }

    /// Takes a token, such as a field name (RFC 9110 §5.6.2). Returns `nil` and takes no byte if no token is next.
    mutating func token() -> String? {
        let found = take(while: ASCII.isTokenByte)
        return found.isEmpty ? nil : String(decoding: found, as: UTF8.self)
    }

    /// Takes a quoted string (RFC 9110 §5.6.4) and resolves its escapes; `nil` if a quote is missing at either end.
    mutating func quotedString() -> String? {
        guard skip("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = take() {
            switch byte {
            case 0x22: return String(decoding: content, as: UTF8.self)
            case 0x5C:
                guard let escaped = take() else { return nil }
                content.append(escaped)
            default: content.append(byte)
            }
        }
        return nil
    }

    /// Takes all digits that are next and returns their value; `nil` if no digit is next or the number is beyond
    /// `Int64` (RFC 9110 §14.1.2: a recipient must expect large numerals and prevent overflow).
    mutating func number() -> Int64? {
        let digits = take(while: ASCII.isDigit)
        return digits.isEmpty ? nil : ASCII.number(digits)
    }

    /// Takes exactly `count` digits and returns their value. Returns `nil` and takes no byte if fewer digits are next.
    mutating func number(digits count: Int) -> Int64? {
        let end = index + count
        guard end <= bytes.count, bytes[index..<end].allSatisfy(ASCII.isDigit) else { return nil }
        defer { index = end }
        return ASCII.number(bytes[index..<end])
    }
}
