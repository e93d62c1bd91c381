/// A parser of the lines of a list of URLs. Holds one entry at a time, however long the list is.
///
/// A line that begins with white space is an option of the URL above it, as `name=value` or `name value`. Blank lines
/// and lines whose first visible character is `#` are ignored.
struct BatchListParser {
    private var current: BatchEntry?
    private var number = 0

    /// A line of a list, by its form.
    enum Kind {
        /// A blank line or a comment.
        case nothing
        /// A URL, or any other text in a line without indentation.
        case url(Substring)
        /// A URL in a line that must contain an option.
        case indentedURL(Substring)
        case option(BatchEntry.Line, isIndented: Bool)
    }

    /// Parses the next line, without its end. Its number is `number`, or the number after the previous line.
    ///
    /// - Returns: the previous entry, if the line begins another one.
    mutating func take(_ line: BatchLineSplitter.Line, number: Int? = nil) -> BatchEntry? {
        self.number = number ?? self.number + 1
        switch line {
        case .tooLong(let isIndented): return takeTooLong(isIndented: isIndented)
        case .text(let text):
            switch Self.kind(of: text, number: self.number) {
            case .nothing: return nil
            case .url(let url): return begin(BatchEntry(url: String(url), number: self.number))
            case .indentedURL: return begin(BatchEntry(url: "", number: self.number, problem: .indentedURL))
            case .option(let option, let isIndented): return take(option, isIndented: isIndented)
            }
        }
    }

    /// Returns the kind of the line with the given text and number.
    static func kind(of text: String, number: Int) -> Kind {
        let visible = visible(text, number: number)
        guard let first = visible.utf8.first, first != 0x23 else { return .nothing }
        let isIndented = text.utf8.first == 0x20 || text.utf8.first == 0x09
        if isIndented, isURL(visible) { return .indentedURL(visible) }
        guard isIndented || isOption(visible) else { return .url(visible) }
        return .option(option(visible, number: number), isIndented: isIndented)
    }

    /// Returns a line without white space around it, and without the byte order mark with which Windows editors begin a
    /// file.
    static func visible(_ text: String, number: Int) -> Substring {
        (number == 1 && text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]).trimmed
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
