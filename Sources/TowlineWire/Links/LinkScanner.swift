internal import TowlineCore

/// A scanner of one line for links. Keeps counts of what it has passed, so that it looks at each character only a few
/// times, however many links and brackets the line has.
struct LinkScanner {
    private typealias Characters = PastedCharacters

    /// Brackets that were opened and closed in a part of the line.
    private struct Brackets {
        var opened = [Int](repeating: 0, count: PastedCharacters.bracketPairs)
        var closed = [Int](repeating: 0, count: PastedCharacters.bracketPairs)

        mutating func take(_ character: UInt32) {
            guard let (pair, closes) = PastedCharacters.bracket(character) else { return }
            if closes { closed[pair] += 1 } else { opened[pair] += 1 }
        }
    }

    /// The line in front of a link.
    private struct Before {
        var end = 0
        var brackets = Brackets()
        var stars = 0
        var mostStars = 0
        var hasTildes = false
    }

    /// A link, up to the character that is being looked at.
    private struct Link {
        let start: Int
        /// The index after `http://` or `https://`.
        let hostStart: Int
        var brackets = Brackets()
        var quotes = 0
        var lastSlash: Int
        var lastQuery = -1
        var lastDot = -1
    }

    /// The properties of the text before a link that affect its end.
    private struct Context {
        /// Pairs of brackets that are open there.
        let isOpen: [Bool]
        /// True if an apostrophe is directly in front of the link.
        let isQuoted: Bool
        /// The comma or semicolon in front of the link, as between the fields of CSV.
        let separator: UInt32?
    }

    private let line: [UInt32]
    private var before = Before()
    /// The run of characters that contains the last link: it ends at a character that ends every link.
    private var runEnd = 0
    /// The last position in the run of one of `/.?&=` before a letter, a digit or an underscore.
    private var lastJoint = -1

    /// The line with spaces instead of its links.
    private(set) var rest: [UInt32]

    init(_ line: [UInt32]) {
        self.line = line
        rest = line
    }

    /// Returns the links, in order and with duplicates.
    mutating func links() -> [String] {
        var links: [String] = []
        var index = 0
        while index < line.count {
            guard let hostStart = start(at: index) else {
                index += 1
                continue
            }
            pass(to: index)
            if index >= runEnd { findRun(from: index) }
            var link = Link(start: index, hostStart: hostStart, lastSlash: hostStart - 1)
            let end = self.end(of: &link)
            let text = line[index..<trimmed(&link, to: end)]
            if text.endIndex > hostStart, text.count <= HTTPURL.maximumByteCount {
                let text = Characters.string(text)
                if (try? HTTPURL(parsing: text)) != nil {
                    links.append(text)
                    for covered in index..<end { rest[covered] = 0x20 }
                }
            }
            index = max(end, hostStart)
        }
        return links
    }

    /// Returns the index after `http://` or `https://` at `index`, or `nil`.
    private func start(at index: Int) -> Int? {
        guard Characters.lowercased(line[index]) == 0x68 else { return nil }
        if Characters.has("http://", in: line, at: index) { return index + 7 }
        return Characters.has("https://", in: line, at: index) ? index + 8 : nil
    }

    private mutating func pass(to index: Int) {
        for position in before.end..<index {
            let character = line[position]
            before.brackets.take(character)
            before.stars = character == 0x2A ? before.stars + 1 : 0
            before.mostStars = max(before.mostStars, before.stars)
            if character == 0x7E, position > 0, line[position - 1] == 0x7E { before.hasTildes = true }
        }
        before.end = index
    }

    private mutating func findRun(from index: Int) {
        runEnd = index
        lastJoint = -1
        while runEnd < line.count, !Characters.endsLink(line[runEnd]) {
            let isWord = Characters.isWord(line[runEnd])
            if isWord, runEnd > index, Self.isJoint(line[runEnd - 1]) { lastJoint = runEnd - 1 }
            runEnd += 1
        }
    }

    private static func isJoint(_ character: UInt32) -> Bool {
        switch character {
        case 0x2F, 0x2E, 0x3F, 0x26, 0x3D: true  // / . ? & =
        default: false
        }
    }

    private func context(of link: Link) -> Context {
        var index = link.start
        while index > 0, Characters.isSpace(line[index - 1]) { index -= 1 }
        let last = index > 0 ? line[index - 1] : 0
        return Context(
            isOpen: zip(before.brackets.opened, before.brackets.closed).map { $0 > $1 },
            isQuoted: link.start > 0 && line[link.start - 1] == 0x27,
            separator: last == 0x2C || last == 0x3B ? last : nil)
    }

    /// Returns the end of a link in its run.
    private func end(of link: inout Link) -> Int {
        let context = self.context(of: link)
        for index in link.start..<runEnd {
            let character = line[index]
            if index >= link.start + 8, ends(link, at: index, character, context) { return index }
            switch character {
            case 0x2F: link.lastSlash = index
            case 0x3F, 0x23: link.lastQuery = index
            case 0x2E: link.lastDot = index
            case 0x27: link.quotes += 1
            default: if !Characters.isWord(character) { link.brackets.take(character) }
            }
        }
        return runEnd
    }

    private func ends(_ link: Link, at index: Int, _ character: UInt32, _ context: Context) -> Bool {
        switch character {
        // h: a new link, unless it is part of this one, as in `https://archive.example/2020/https://…`
        case 0x68, 0x48: return start(at: index) != nil && !Self.nests(line[index - 1])
        case 0x27: return context.isQuoted
        case 0x2C, 0x3B: return endsField(link, at: index, character, context)
        case 0x5B: return isClosingTag(at: index)
        case ..<0x80 where character != 0x29 && character != 0x5D: return false
        default: break
        }
        if let (pair, closes) = Characters.bracket(character), closes, context.isOpen[pair],
            link.brackets.opened[pair] <= link.brackets.closed[pair]
        {
            return true
        }
        return Characters.isCJK(character) && endsAtWord(link, at: index)
    }

    private static func nests(_ character: UInt32) -> Bool {
        switch character {
        case 0x2F, 0x3D, 0x3F, 0x26, 0x23, 0x3A, 0x25, 0x40, 0x2B: true  // / = ? & # : % @ +
        default: false
        }
    }

    /// Returns whether a comma or a semicolon separates fields. Both may also be part of a link.
    private func endsField(_ link: Link, at index: Int, _ character: UInt32, _ context: Context) -> Bool {
        let next = index + 1
        guard next < runEnd else { return true }
        let field = line[next] == 0x27 ? next + 1 : next
        if character == context.separator || field < line.count && start(at: field) != nil { return true }
        guard isComplete(link, to: index) else { return false }
        guard character == 0x3B else { return true }
        let end = wordEnd(from: next)  // A parameter of a path: `;jsessionid=12`.
        return !(end > next && end < runEnd && line[end] == 0x3D)
    }

    /// Returns whether `[/name]` of BBCode begins at `index`.
    private func isClosingTag(at index: Int) -> Bool {
        guard index + 1 < runEnd, line[index + 1] == 0x2F else { return false }
        let end = wordEnd(from: index + 2)
        return end > index + 2 && end < runEnd && line[end] == 0x5D
    }

    private func wordEnd(from start: Int) -> Int {
        var end = start
        while end < runEnd, Characters.isWord(line[end]) { end += 1 }
        return end
    }

    /// Returns whether text in a language without spaces follows the link. Such text may also be the name of a file.
    private func endsAtWord(_ link: Link, at index: Int) -> Bool {
        if isComplete(link, to: index) { return true }
        let last = line[index - 1]
        guard Characters.isWord(last) || last == 0x29 || last == 0x5D || last == 0x2D else { return false }
        return lastJoint < index
    }

    /// Returns whether a text may be a complete link: it ends with the extension of a file, or contains only a host.
    private func isComplete(_ link: Link, to end: Int) -> Bool {
        if link.lastQuery < link.lastSlash, link.lastDot > link.lastSlash {
            let ending = line[(link.lastDot + 1)..<end]
            let isWord = ending.allSatisfy { Characters.isLetter($0) || Characters.isDigit($0) }
            if (1...5).contains(ending.count), isWord, ending.first.map(Characters.isLetter) == true { return true }
            if ending.count == 2, ending.first == 0x37, ending.last.map(Characters.lowercased) == 0x7A { return true }
        }
        guard link.lastSlash == link.hostStart - 1 else { return false }
        var (letters, digits) = (end, end)
        while digits > link.hostStart, Characters.isDigit(line[digits - 1]) { digits -= 1 }
        if digits < end, line[digits - 1] == 0x3A { letters = digits - 1 }
        var dot = letters
        while dot > link.hostStart, Characters.isLetter(line[dot - 1]) { dot -= 1 }
        return letters - dot >= 2 && dot - 1 > link.hostStart && line[dot - 1] == 0x2E
    }

    /// Returns the end of a link without trailing punctuation, markup, and closing brackets that were opened before it.
    private func trimmed(_ link: inout Link, to end: Int) -> Int {
        var end = end
        while end > link.hostStart {
            let old = end
            let last = line[end - 1]
            switch last {
            case 0x2E, 0x2C, 0x3B, 0x3A, 0x21, 0x3F: end -= 1  // . , ; : ! ?
            case 0x27 where link.quotes % 2 == 1:
                link.quotes -= 1
                end -= 1
            case 0x2A, 0x7E, 0x5F: end -= markCount(of: link, last, to: end)
            default:
                guard let (pair, closes) = Characters.bracket(last), closes,
                    link.brackets.opened[pair] < link.brackets.closed[pair]
                else { break }
                link.brackets.closed[pair] -= 1
                end -= 1
            }
            if end == old { break }
        }
        return end
    }

    /// Returns the number of characters of Markdown at the end of a link: `**link**`, `~~link~~` and `_link_`.
    private func markCount(of link: Link, _ mark: UInt32, to end: Int) -> Int {
        if mark == 0x7E { return before.hasTildes && line[end - 2] == 0x7E ? 2 : 0 }
        var start = end
        while start > link.hostStart, line[start - 1] == mark { start -= 1 }
        let count = end - start
        if mark == 0x2A { return before.mostStars >= count ? count : 0 }
        guard count <= link.start else { return 0 }
        return line[(link.start - count)..<link.start].allSatisfy { $0 == mark } ? count : 0
    }
}
