/// A reader of links in text that a user pastes, types, drops or saves as a list: plain lists, sentences, CSV,
/// Markdown, BBCode, HTML, JSON, and commands of curl and wget. The time is proportional to the length of the text.
///
/// `Tests/WebPageTests/link_cases.json` has examples.
package struct LinkReader {
    private var found = Wire.FoundLinks()
    private var known: Set<String> = []
    private var knownSchemes: Set = ["http", "https"]

    /// Returns the links of a text, and its lines without a link.
    package static func read(_ text: String) -> Wire.FoundLinks {
        var reader = LinkReader()
        var lines = PastedLines(text)
        while let line = lines.next() { reader.take(line.text, number: line.number) }
        return reader.found
    }

    /// Returns whether a line is a command of curl or wget.
    package static func isCommand(_ line: String) -> Bool {
        PastedCommand.start(in: line.unicodeScalars.prefix(200).map(\.value)) != nil
    }

    private mutating func take(_ line: [UInt32], number: Int) {
        let links: [String]
        var rest = line
        if let command = PastedCommand(line) {
            links = command.links
            if found.headers.isEmpty { found.headers = command.headers }
            if !links.isEmpty { rest = [] }
        } else {
            var scanner = LinkScanner(Self.withoutEscapes(line))
            links = scanner.links()
            rest = scanner.rest
        }
        for link in links where known.insert(link).inserted { found.links.append(link) }
        for scheme in Self.schemes(in: rest) where knownSchemes.insert(scheme).inserted {
            found.unsupportedSchemes.append(scheme)
        }
        guard links.isEmpty else { return }
        let text = PastedCharacters.trimmed(line)
        guard let first = text.first, first != 0x23 else { return }
        found.linesWithoutLinkCount += 1
        found.linesWithoutLink.append(.init(number: number, text: PastedCharacters.string(text)))
    }

    /// Returns a line with the escapes of JSON that occur in links decoded: `\/`, and `\u0026` for `&` (RFC 8259 §7).
    private static func withoutEscapes(_ line: [UInt32]) -> [UInt32] {
        guard line.contains(0x5C) else { return line }
        var (text, rest) = ([UInt32](), line[...])
        while let character = rest.popFirst() {
            if character == 0x5C, rest.first == 0x2F { continue }
            let digits = character == 0x5C && rest.first == 0x75 ? rest.dropFirst().prefix(4) : []
            if digits.count == 4, let code = UInt32(PastedCharacters.string(digits), radix: 16), code > 31,
                Unicode.Scalar(code) != nil
            {
                text.append(code)
                rest = rest.dropFirst(5)
            } else {
                text.append(character)
            }
        }
        return text
    }

    /// Returns the schemes of the links of other programs in a line: `scheme://…` and `magnet:?…`.
    private static func schemes(in line: [UInt32]) -> [String] {
        var schemes: [String] = []
        var start = 0
        for colon in line.indices where line[colon] == 0x3A {
            guard colon + 2 < line.count else { break }
            let isMagnet = line[colon + 1] == 0x3F
            guard isMagnet || line[colon + 1] == 0x2F && line[colon + 2] == 0x2F else { continue }
            let after = colon + (isMagnet ? 2 : 3)
            guard after < line.count, !PastedCharacters.isSpace(line[after]) else { continue }
            var (index, begin) = (colon, colon)
            while index > max(start, colon - 16), PastedCharacters.isOfScheme(line[index - 1]) {
                index -= 1
                let isBoundary = index == 0 || !PastedCharacters.isWord(line[index - 1])
                if isBoundary, PastedCharacters.isLetter(line[index]) { begin = index }
            }
            guard colon - begin >= 2 else { continue }
            start = colon
            schemes.append(PastedCharacters.string(line[begin..<colon]).lowercased())
        }
        return schemes
    }
}

/// The lines of a text, with the character references of HTML decoded. A line that continues on the next one, after `\`
/// or `^`, is one line.
struct PastedLines {
    private let text: [UInt32]
    private var index = 0
    private var number = 1

    init(_ text: String) { self.text = Self.decoded(text.unicodeScalars.map(\.value)) }

    /// Returns the next line, without its end, and the number of its first line.
    mutating func next() -> (text: [UInt32], number: Int)? {
        guard index < text.count else { return nil }
        var line: [UInt32] = []
        let first = number
        while index < text.count {
            let character = text[index]
            if character == 0x5C || character == 0x5E, let end = lineEnd(at: index + 1), text[end - 1] == 0x0A {
                index = end
                number += 1
                skipSpace()
                line.append(0x20)
            } else if let end = lineEnd(at: index) {
                index = end
                number += 1
                break
            } else {
                line.append(character)
                index += 1
            }
        }
        return (line, first)
    }

    private mutating func skipSpace() {
        while index < text.count, PastedCharacters.isSpace(text[index]) {
            let end = lineEnd(at: index)
            if end != nil { number += 1 }
            index = end ?? index + 1
        }
    }

    /// Returns the index after a line end that begins at `index`, or `nil`.
    private func lineEnd(at index: Int) -> Int? {
        guard index < text.count else { return nil }
        if text[index] == 0x0A { return index + 1 }
        guard text[index] == 0x0D else { return nil }
        return index + 1 < text.count && text[index + 1] == 0x0A ? index + 2 : index + 1
    }

    private static let entities: [String: UInt32] = [
        "amp": 0x26, "quot": 0x22, "apos": 0x27, "lt": 0x3C, "gt": 0x3E, "nbsp": 0x20,
    ]

    /// Decodes the character references of HTML. An unknown one is kept, because it may be part of a query.
    private static func decoded(_ text: [UInt32]) -> [UInt32] {
        guard text.contains(0x26) else { return text }
        var decoded: [UInt32] = []
        decoded.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            if text[index] == 0x26, let (character, end) = entity(in: text, at: index) {
                decoded.append(character)
                index = end
            } else {
                decoded.append(text[index])
                index += 1
            }
        }
        return decoded
    }

    /// Returns the character of a reference that begins with the `&` at `start`, and the index after the `;`.
    private static func entity(in text: [UInt32], at start: Int) -> (UInt32, Int)? {
        // The longest reference is `&#1114111;`.
        let body = text[(start + 1)...].prefix(9)
        guard let end = body.firstIndex(of: 0x3B), end > start + 2 else { return nil }
        let name = PastedCharacters.string(body[..<end]).lowercased()
        if let character = entities[name] { return (character, end + 1) }
        guard name.hasPrefix("#"), !name.contains("+"), !name.contains("-") else { return nil }
        let isHexadecimal = name.hasPrefix("#x")
        let code = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
        guard let code, code > 31, Unicode.Scalar(code) != nil else { return nil }
        return (code, end + 1)
    }
}
