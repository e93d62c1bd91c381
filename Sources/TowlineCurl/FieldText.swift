internal import TowlineCore

/// Field values as text, reversibly (`ByteText`).
///
/// A field value is a sequence of bytes (RFC 9110 §5.5) and an entity tag must go back byte for byte (§8.8.3), yet
/// values travel as `String`. Nearly all are ASCII, which is dealt with here.
enum FieldText {
    /// The text of `bytes`.
    static func decode(_ bytes: some BidirectionalCollection<UInt8>) -> String {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        return all < 0x80 ? String(decoding: bytes, as: UTF8.self) : ByteText.decode(Array(bytes))
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
        bytes += ByteText.encode(text)
    }
}
