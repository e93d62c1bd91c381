import TowlineCore

/// Cuts bytes as they come into lines, holding no more than one.
struct BatchLineSplitter {
    /// A line without its end, or one that is no use.
    enum Line: Hashable {
        case text(String)
        case tooLong(isIndented: Bool)
    }

    /// A line may have so many bytes: a URL of the greatest length and then some.
    static let maximumLength = 64 * 1024

    private var line: [UInt8] = []
    private var isTooLong = false
    private var isIndented = false

    /// Takes bytes from the front of `bytes` up to the end of a line, which goes too.
    ///
    /// - Returns: `nil` if all bytes are taken and the line goes on.
    mutating func take(from bytes: inout ArraySlice<UInt8>) -> Line? {
        let end = bytes.firstIndex(of: 0x0A)
        append(bytes[..<(end ?? bytes.endIndex)])
        bytes = end.map { bytes[($0 + 1)...] } ?? []
        return end == nil ? nil : flush()
    }

    /// What is left at the end of the list: a last line without an end.
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
