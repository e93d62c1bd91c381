/// A converter of text to UTF-8, as its bytes arrive: a byte order mark shows that they are UTF-16 (The Unicode
/// Standard, §23.8). Windows PowerShell and Notepad write such files.
struct UnicodeDecoder {
    private enum Form {
        case unknown
        case bytes
        case utf16(isBigEndian: Bool)
    }

    private var form = Form.unknown
    /// The bytes that do not form a complete character yet.
    private var rest: [UInt8] = []

    /// Converts bytes to UTF-8. Bytes without a UTF-16 mark are returned unchanged.
    mutating func take(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if case .bytes = form { return bytes }
        rest += bytes
        if case .unknown = form {
            // A pipe may deliver one byte alone.
            if rest.isEmpty || rest == [0xFF] || rest == [0xFE] { return [] }
            switch (rest[0], rest.count > 1 ? rest[1] : 0) {
            case (0xFF, 0xFE): form = .utf16(isBigEndian: false)
            case (0xFE, 0xFF): form = .utf16(isBigEndian: true)
            default:
                form = .bytes
                defer { rest = [] }
                return rest[...]
            }
            rest.removeFirst(2)
        }
        guard case .utf16(let isBigEndian) = form else { return [] }
        var units = (0..<(rest.count / 2)).map { index in
            let pair = (UInt16(rest[2 * index]), UInt16(rest[2 * index + 1]))
            return isBigEndian ? pair.0 << 8 | pair.1 : pair.1 << 8 | pair.0
        }
        // The second half of a character may arrive with the next bytes.
        if let last = units.last, UTF16.isLeadSurrogate(last) { units.removeLast() }
        rest.removeFirst(2 * units.count)
        return Array(String(decoding: units, as: UTF16.self).utf8)[...]
    }
}
