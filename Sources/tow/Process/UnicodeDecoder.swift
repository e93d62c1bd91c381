/// Turns the bytes of a text into UTF-8 as they come: a byte order mark tells if they are UTF-16 (The Unicode Standard,
/// §23.8). Windows PowerShell and Notepad write such files.
struct UnicodeDecoder {
    private enum Form {
        case unknown
        case bytes
        case utf16(isBigEndian: Bool)
    }

    private var form = Form.unknown
    /// Bytes that make no whole character yet.
    private var rest: [UInt8] = []

    /// Returns the bytes in UTF-8. Bytes without a mark of UTF-16 are returned as they are.
    mutating func take(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if case .bytes = form { return bytes }
        rest += bytes
        if case .unknown = form {
            // One byte alone may come from a pipe.
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
        // The second half of a character may come with the next bytes.
        if let last = units.last, UTF16.isLeadSurrogate(last) { units.removeLast() }
        rest.removeFirst(2 * units.count)
        return Array(String(decoding: units, as: UTF16.self).utf8)[...]
    }
}
