/// A parser of the lines of a list of URLs. Holds one entry at a time, however long the list is.
///
/// A line that begins with white space is an option of the URL above it, as `name=value` or `name value`. Blank lines
/// and lines whose first visible character is `#` are ignored.
struct BatchListParser {
    private var current: BatchEntry?
    private var number = 0

    /// Parses the next line, without its end.
    ///
    /// - Returns: the previous entry, if the line begins another one.
    mutating func take(_ line: BatchLineSplitter.Line) -> BatchEntry? {
        number += 1
        let text: String
        switch line {
        case .text(let visible): text = visible
        case .tooLong(let isIndented): return takeTooLong(isIndented: isIndented)
        }
        // Windows editors begin a file with a byte order mark.
        let visible = (number == 1 && text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]).trimmed
        guard let first = visible.utf8.first, first != 0x23 else { return nil }
        let isIndented = text.utf8.first == 0x20 || text.utf8.first == 0x09
        if isIndented, Self.isURL(visible) {
            return begin(BatchEntry(url: "", number: number, problem: .indentedURL))
        }
        guard isIndented || Self.isOption(visible) else {
            return begin(BatchEntry(url: String(visible), number: number))
        }
        return take(Self.option(visible, number: number), isIndented: isIndented)
    }

    private mutating func take(_ option: BatchEntry.Line, isIndented: Bool) -> BatchEntry? {
        guard current != nil else {
            return begin(BatchEntry(url: "", number: number, options: [option], problem: .optionWithoutURL))
        }
        guard isIndented else { return spoil(.optionNotIndented(option)) }
        current?.options.append(option)
        return nil
    }

    /// Returns the last entry, or `nil` if the list is empty.
    mutating func finish() -> BatchEntry? {
        defer { current = nil }
        return current
    }

    /// Returns an entry for a failed read. Drops the entry before it, because some of its options may be missing.
    mutating func fail(_ errorNumber: Int32) -> BatchEntry {
        current = nil
        return BatchEntry(url: "", number: number, problem: .unreadable(errorNumber))
    }

    private mutating func begin(_ entry: BatchEntry) -> BatchEntry? {
        defer { current = entry }
        return current
    }

    private mutating func takeTooLong(isIndented: Bool) -> BatchEntry? {
        let problem = BatchEntry.Problem.lineTooLong(number: number)
        return isIndented ? spoil(problem) : begin(BatchEntry(url: "", number: number, problem: problem))
    }

    /// Adds a problem to the current entry: its download must not start without an option that was meant for it.
    private mutating func spoil(_ problem: BatchEntry.Problem) -> BatchEntry? {
        guard current != nil else { return begin(BatchEntry(url: "", number: number, problem: problem)) }
        if current?.problem == nil { current?.problem = problem }
        return nil
    }

    /// Returns whether a line without indentation was meant as an option. In a URL, the first of these characters is
    /// the colon after the scheme.
    private static func isOption(_ text: Substring) -> Bool {
        let end = text.utf8.firstIndex { [0x3A, 0x3D, 0x20, 0x09].contains($0) } ?? text.endIndex
        guard end == text.endIndex || text.utf8[end] != 0x3A else { return false }
        return text.hasPrefix("--") || Setting(rawValue: String(text[..<end])) != nil
    }

    /// Returns whether an indented line can only be a URL: no name of an option contains `://`.
    private static func isURL(_ text: Substring) -> Bool {
        let name = text.prefix { $0 != "=" && $0 != " " && $0 != "\t" }
        return name.contains("://")
    }

    private static func option(_ text: Substring, number: Int) -> BatchEntry.Line {
        let end = text.firstIndex { $0 == "=" || $0 == " " || $0 == "\t" } ?? text.endIndex
        var value = text[end...].trimmed
        if value.first == "=" { value = value.dropFirst().trimmed }
        // A user who copies options from a command line may keep the hyphens.
        let name = text[..<end].hasPrefix("--") ? text[..<end].dropFirst(2) : text[..<end]
        return BatchEntry.Line(name: String(name), value: String(value), number: number)
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var bytes = utf8[...]
        while bytes.first == 0x20 || bytes.first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 || last == 0x0D { bytes.removeLast() }
        return Substring(bytes)
    }
}
