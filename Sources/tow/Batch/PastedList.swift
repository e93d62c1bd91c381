import TowlineCore
import TowlineWire

/// A list for `tow add`: a list of URLs, or any text with links, such as CSV, Markdown, or a command of curl. Lines of
/// text are replaced by their links, and the lines of a list of URLs stay as they are.
struct PastedList {
    /// A line of a list of URLs, with the number of the line that it comes from.
    struct Line {
        var content: BatchLineSplitter.Line
        var number: Int
    }

    /// The lines of a list of URLs.
    private(set) var lines: [Line] = []
    /// The text of the list that is not used: lines without a link, unsupported schemes, and headers.
    private(set) var ignored = Wire.FoundLinks()

    private let name: String
    /// True if the list has lines that cannot be part of a list of URLs.
    private var isText = false
    /// The number of links in the last line that is not an option.
    private var links = 1

    /// Reads a list, whose name is safe to print.
    ///
    /// - Throws: `unusableOption` if an option is below a line without exactly one link.
    init(_ lines: [BatchLineSplitter.Line], name: String) throws(TowlineError) {
        self.name = name
        isText = lines.enumerated().contains { Self.isText($1, number: $0 + 1) }
        var index = 0
        while index < lines.count {
            let number = index + 1
            guard case .text(var text) = lines[index] else {
                self.lines.append(Line(content: lines[index], number: number))
                index += 1
                continue
            }
            index += 1
            if LinkReader.isCommand(text) {
                while Self.isContinued(text), index < lines.count, case .text(let next) = lines[index] {
                    text += "\n" + next
                    index += 1
                }
            }
            try take(text, number: number)
        }
    }

    private static func isContinued(_ text: String) -> Bool { text.utf8.last == 0x5C || text.utf8.last == 0x5E }

    private mutating func take(_ text: String, number: Int) throws(TowlineError) {
        switch BatchListParser.kind(of: text, number: number) {
        case .nothing: break
        case _ where LinkReader.isCommand(text): replace(text, number)
        case .option(let option, let isIndented):
            if Self.isNamed(option, text, isIndented) || !isText && !Self.hasLink(text) {
                guard !isIndented || links == 1 else { throw misplaced(number) }
                lines.append(Line(content: .text(text), number: number))
            } else {
                replace(text, number)
            }
        case .url(let visible), .indentedURL(let visible):
            if isListed(visible) {
                let isURL = Self.url(visible) != nil
                lines.append(Line(content: .text(isURL ? String(visible) : text), number: number))
                links = 1
            } else {
                replace(text, number)
            }
        }
    }

    /// Adds the links of a line of text, each as a line.
    private mutating func replace(_ text: String, _ number: Int) {
        let found = LinkReader.read(text)
        links = found.links.count
        lines += found.links.map { Line(content: .text($0), number: number) }
        for scheme in found.unsupportedSchemes where !ignored.unsupportedSchemes.contains(scheme) {
            ignored.unsupportedSchemes.append(scheme)
        }
        if ignored.headers.isEmpty { ignored.headers = found.headers }
        ignored.linesWithoutLink += found.linesWithoutLink.map { .init(number: number, text: $0.text) }
    }

    private func misplaced(_ number: Int) -> TowlineError {
        ListPlaces.Line(list: name, line: number).problem(
            links == 0
                ? "this option is below a line without a link. Write the URL first, then its options in indented lines"
                : "this option is below a line with \(links) links. Write each URL in its own line, above its options"
        )
    }

    /// Returns whether a line without an option stays as it is: it is a URL, or was meant as one.
    private func isListed(_ visible: Substring) -> Bool {
        let isURL = Self.url(visible) != nil
        guard isText else { return isURL ? !Self.hasSeveral(visible) : Self.isMeantAsURL(visible) }
        guard isURL else { return false }
        guard Self.beginsWithScheme(visible) else {
            return visible.utf8.contains { $0 == 0x2E || $0 == 0x2F } && !visible.utf8.contains(0x20)
        }
        let links = LinkReader.read(String(visible)).links
        guard links.count == 1, visible.hasPrefix(links[0]) else { return false }
        // A URL may contain spaces, but a comma or markup after the link shows that the line is text.
        let rest = visible.utf8.dropFirst(links[0].utf8.count)
        return rest.isEmpty || rest.first == 0x20
    }

    /// Returns whether a line cannot be part of a list of URLs.
    private static func isText(_ line: BatchLineSplitter.Line, number: Int) -> Bool {
        guard case .text(let text) = line else { return false }
        switch BatchListParser.kind(of: text, number: number) {
        case .nothing: return false
        case _ where LinkReader.isCommand(text): return true
        case .option(let option, let isIndented): return !isNamed(option, text, isIndented) && hasLink(text)
        case .url(let visible): return url(visible) == nil ? !isMeantAsURL(visible) : hasSeveral(visible)
        case .indentedURL(let visible): return url(visible) == nil ? hasLink(text) : hasSeveral(visible)
        }
    }

    /// Returns whether a line can only be an option: its name is known, or it has the form `name=value`. Markup such as
    /// `href="…"` is not an option.
    private static func isNamed(_ option: BatchEntry.Line, _ text: String, _ isIndented: Bool) -> Bool {
        let isKnown = Setting(rawValue: option.name) != nil || Habit.setting(option.name) != nil
        if isIndented, isKnown { return true }
        let isWord = option.name.utf8.allSatisfy { $0 == 0x2D || ASCII.isLetter($0) || ASCII.isDigit($0) }
        let hasSign = text.utf8.drop { $0 != 0x3D && $0 != 0x3A && $0 != 0x22 }.first == 0x3D
        return isWord && hasSign && option.value.utf8.first != 0x22 && option.value.utf8.first != 0x27
    }

    private static func hasLink(_ text: String) -> Bool { !LinkReader.read(text).links.isEmpty }

    /// Returns whether a valid URL is several links in one line. A URL with one `://` is one link.
    private static func hasSeveral(_ visible: Substring) -> Bool {
        guard visible.utf8.lazy.filter({ $0 == 0x3A }).count > 1 else { return false }
        return LinkReader.read(String(visible)).links.count > 1
    }

    private static func url(_ visible: Substring) -> HTTPURL? {
        visible.utf8.contains(0x09) ? nil : try? HTTPURL(typed: String(visible))
    }

    /// Returns whether a line that is not a valid URL was meant as one, such as `ftp://a.example/f`.
    private static func isMeantAsURL(_ visible: Substring) -> Bool {
        guard !visible.utf8.contains(where: { $0 == 0x20 || $0 == 0x09 }) else { return false }
        return visible.utf8.contains { $0 == 0x2F || $0 == 0x3F } && !hasLink(String(visible))
    }

    private static func beginsWithScheme(_ visible: Substring) -> Bool {
        let start = visible.prefix(8).lowercased()
        return start.hasPrefix("http://") || start == "https://"
    }
}

extension PastedList {
    /// The number of lines without a link that are named.
    private static let namedLines = 10

    /// The notices about the text that is not used. Contain no values of headers, which may be secret.
    var notices: [String] {
        var notices = ignored.linesWithoutLink.prefix(Self.namedLines).map { line in
            ListPlaces.Line(list: name, line: line.number).text
                + "no link in '\(TerminalSafeText.make(line.text, width: 60))'"
        }
        let others = ignored.linesWithoutLink.count - notices.count
        if others > 0 { notices.append("\(name): no link in \(others) other \(others == 1 ? "line" : "lines")") }
        let schemes = ignored.unsupportedSchemes.joined(separator: ", ")
        if !schemes.isEmpty { notices.append("\(name): links of these kinds are not supported: \(schemes)") }
        if !ignored.headers.isEmpty {
            let names = ignored.headers.map { TerminalSafeText.make($0.name, width: 40) }.joined(separator: ", ")
            notices.append(
                "\(name): the headers of the command are not sent: \(names). To send a header, use -H 'NAME: VALUE'")
        }
        return notices
    }
}
