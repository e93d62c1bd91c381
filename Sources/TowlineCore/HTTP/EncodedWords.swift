/// A decoder of encoded words (RFC 2047) in file names: servers with code for mail send them in `filename=`, and
/// browsers decode them.
enum EncodedWords {
    /// Returns the text with its encoded words decoded. A word in a charset other than UTF-8, US-ASCII and ISO-8859-1,
    /// or with an invalid encoding, is unchanged.
    static func decoded(_ text: String) -> String {
        var rest = Array(text.utf8)[...]
        var bytes: [UInt8] = []
        var isAfterWord = false
        while let byte = rest.first {
            let gap = isAfterWord ? rest.prefix { $0 == 0x20 || $0 == 0x09 }.count : 0
            // RFC 2047 §6.2: white space between two words is not part of the text.
            if let (word, count) = word(at: rest.dropFirst(gap)) {
                bytes += word
                rest = rest.dropFirst(gap + count)
                isAfterWord = true
            } else {
                bytes.append(byte)
                rest = rest.dropFirst()
                isAfterWord = false
            }
        }
        return String(validating: bytes, as: UTF8.self) ?? text
    }

    /// Returns the word at the start of the bytes, `=?charset?encoding?text?=`, as UTF-8 bytes, and its encoded length
    /// in bytes; `nil` if no valid word in a supported charset starts there.
    private static func word(at bytes: ArraySlice<UInt8>) -> (word: [UInt8], count: Int)? {
        guard bytes.starts(with: [0x3D, 0x3F]) else { return nil }
        let parts = bytes.dropFirst(2).split(separator: 0x3F, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, parts[3].first == 0x3D, parts[0].allSatisfy(ASCII.isTokenByte) else { return nil }
        let content: [UInt8]?
        switch parts[1].map(ASCII.lowercased) {
        case [0x62]: content = Base64.decoded(parts[2])
        case [0x71]: content = quoted(parts[2])
        default: content = nil
        }
        guard let content else { return nil }
        let count = parts[3].startIndex + 1 - bytes.startIndex
        // RFC 2231 §5: a language may follow the charset.
        switch String(decoding: parts[0].prefix { $0 != 0x2A }.map(ASCII.lowercased), as: UTF8.self) {
        case "utf-8", "us-ascii": return (content, count)
        case "iso-8859-1": return (Array(ByteText.latin(content).utf8), count)
        default: return nil
        }
    }

    /// Returns the bytes of a text in the "Q" encoding of mail headers (RFC 2047 §4.2); `nil` for an invalid escape.
    private static func quoted(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        PercentEncoding.decoded(text.map { $0 == 0x5F ? 0x20 : $0 }, escape: 0x3D)
    }
}
