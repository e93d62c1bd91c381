import TowlineCore

/// A splitter of bytes into lines, as the bytes arrive. Holds at most one line.
struct BatchLineSplitter {
    /// A line without its end, or a line that is too long to be used.
    enum Line: Hashable {
        case text(String)
        case tooLong(isIndented: Bool)
    }

    /// The maximum length of a line in bytes. This is more than the longest valid URL.
    static let maximumLength = 64 * 1024

    private var line: [UInt8] = []
    private var isTooLong = false
    private var isIndented = false

    /// Removes bytes from the front of `bytes`, up to and including the end of a line.
    ///
    /// - Returns: the line; `nil` if `bytes` is now empty and the line continues.
    mutating func take(from bytes: inout ArraySlice<UInt8>) -> Line? {
        let end = bytes.firstIndex(of: 0x0A)
        append(bytes[..<(end ?? bytes.endIndex)])
        bytes = end.map { bytes[($0 + 1)...] } ?? []
        return end == nil ? nil : flush()
    }

    /// Returns the last line of the list if it has no end; `nil` if no bytes are left.
    mutating func finish() -> Line? { line.isEmpty && !isTooLong ? nil : flush() }

    private mutating func append(_ piece: ArraySlice<UInt8>) {
        if line.isEmpty, !isTooLong, let first = piece.first { isIndented = first == 0x20 || first == 0x09 }
        if line.count + piece.count > Self.maximumLength { isTooLong = true }
        if isTooLong { line.removeAll() } else { line += piece }
    }

    private mutating func flush() -> Line {
        defer {
            line.removeAll(keepingCapacity: true)
            isTooLong = false
        }
        if isTooLong { return .tooLong(isIndented: isIndented) }
        if line.last == 0x0D { line.removeLast() }
        return .text(ByteText.decode(line))
    }
}
