internal import TowlineCore

/// Reversible conversion of header field values between bytes and text (`ByteText`).
///
/// A field value is a sequence of bytes (RFC 9110 §5.5), and an entity tag must be sent back byte for byte (§8.8.3),
/// but values have the type `String`. A fast path handles ASCII, the usual case.
enum FieldText {
    /// Returns `bytes` as text. `encode` converts the text to the same bytes again, even if they are not UTF-8.
    static func decode(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        return all < 0x80 ? String(decoding: bytes, as: UTF8.self) : ByteText.decode(Array(bytes))
    }

    /// Returns the bytes that `decode` converted to `text`; the UTF-8 form of any text that `decode` does not produce.
    static func encode(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        encode(text, into: &bytes)
        return bytes
    }

    /// Appends the bytes that `encode(_:)` returns for `text` to `bytes`.
    static func encode(_ text: String, into bytes: inout [UInt8]) {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return bytes.append(contentsOf: text.utf8) }
        bytes += ByteText.encode(text)
    }
}
