internal import TowlineCore

/// Reversible conversion of field values to text (`ByteText`).
///
/// A field value is a sequence of bytes (RFC 9110 §5.5), and an entity tag must be sent back byte for byte (§8.8.3),
/// but values have the type `String`. A fast path handles ASCII, the usual case.
enum FieldText {
    /// Returns the text of `bytes`.
    static func decode(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        return all < 0x80 ? String(decoding: bytes, as: UTF8.self) : ByteText.decode(Array(bytes))
    }

    /// Returns the bytes that `decode` converted to `text`; UTF-8 for any other text.
    static func encode(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        encode(text, into: &bytes)
        return bytes
    }

    /// Appends the bytes of `text` to `bytes`.
    static func encode(_ text: String, into bytes: inout [UInt8]) {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return bytes.append(contentsOf: text.utf8) }
        bytes += ByteText.encode(text)
    }
}
