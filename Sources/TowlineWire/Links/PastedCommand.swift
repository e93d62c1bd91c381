internal import TowlineCore

/// A command of curl or wget that a user pasted, as browsers copy it: its links, and its header fields.
struct PastedCommand {
    private(set) var links: [String] = []
    private(set) var headers: [Wire.Header] = []

    /// Options that become header fields. Long options are without their hyphens.
    private static let fields = [
        "-A": "User-Agent", "user-agent": "User-Agent", "-U": "User-Agent", "-e": "Referer", "referer": "Referer",
        "-b": "Cookie", "cookie": "Cookie",
    ]
    /// Other options with a value, which is not the link.
    private static let valued = Set(
        Array("oOdFxTXmKCPwrYyzEUQu").map { "-\($0)" }
            + [
                "output", "output-document", "data", "data-raw", "data-binary", "data-urlencode", "form", "proxy",
                "preproxy", "upload-file", "request", "directory-prefix", "max-time", "user", "password", "http-user",
                "http-password", "config", "write-out", "range", "limit-rate", "post-data", "body-data", "resolve",
                "cacert", "cert", "key", "input-file", "base",
            ])
    /// Header fields that a download sets itself, or that describe the request of the browser.
    private static let own: Set = [
        "accept-encoding", "connection", "host", "keep-alive", "priority", "range", "te", "transfer-encoding",
    ]

    private let isCurl: Bool

    /// Reads a line; `nil` if it contains no command.
    init?(_ line: [UInt32]) {
        guard let start = Self.start(in: line) else { return nil }
        isCurl = PastedCharacters.has("curl", in: line, at: start)
        var words = ShellWords(line, from: start)
        _ = words.next()
        while let word = words.next() { take(word, &words) }
    }

    /// Returns the index of `curl` or `wget` at the beginning of a command, after the prompt of a shell; `nil` if the
    /// line is not a command.
    static func start(in line: [UInt32]) -> Int? {
        func afterSpace(_ index: Int) -> Int {
            var index = index
            while index < line.count, PastedCharacters.isSpace(line[index]) { index += 1 }
            return index
        }
        var start = afterSpace(0)
        if start < line.count, [0x24, 0x23, 0x3E, 0x25].contains(line[start]) { start = afterSpace(start + 1) }
        let end = start + 4
        guard end < line.count, PastedCharacters.isSpace(line[end]) else { return nil }
        let name = PastedCharacters.string(line[start..<end])
        return name == "curl" || name == "wget" ? start : nil
    }

    private mutating func take(_ word: String, _ words: inout ShellWords) {
        let (name, attached) = Self.split(word)
        guard name.hasPrefix("-") || word.hasPrefix("--") else {
            if (try? HTTPURL(parsing: word)) != nil { links.append(word) }
            return
        }
        func value() -> String { attached ?? words.next() ?? "" }
        if isCurl && name == "-H" || name == "header" {
            add(value())
        } else if let field = Self.fields[name], isCurl ? name != "-U" : !["-A", "-e", "-b"].contains(name) {
            let text = value()
            // Without `=`, the value names a file with cookies.
            if field != "Cookie" || text.utf8.contains(0x3D) { add("\(field): \(text)") }
        } else if Self.valued.contains(name), !(isCurl && name == "-O") {
            _ = value()
        } else if name == "url" {
            var scanner = LinkScanner(value().unicodeScalars.map(\.value))
            links += scanner.links()
        }
    }

    /// Splits a word into an option and the value that is attached to it, as in `-Hvalue` and, for long options, with
    /// an equals sign. Removes the hyphens of a long option.
    private static func split(_ word: String) -> (name: String, attached: String?) {
        if word.hasPrefix("--") {
            let sign = word.utf8.firstIndex(of: 0x3D)
            let name = word[..<(sign ?? word.endIndex)].dropFirst(2)
            return (String(name), sign.map { String(word[word.utf8.index(after: $0)...]) })
        }
        let start = String(word.unicodeScalars.prefix(2))
        let rest = word.unicodeScalars.dropFirst(2)
        let isAttached = ["-H", "-A", "-e", "-b", "-u"].contains(start) && !rest.isEmpty
        return isAttached ? (start, String(rest)) : (word, nil)
    }

    private mutating func add(_ line: String) {
        guard let colon = line.utf8.firstIndex(of: 0x3A) else { return }
        let trimmed = { (text: Substring) in
            PastedCharacters.string(PastedCharacters.trimmed(text.unicodeScalars.map(\.value)))
        }
        let name = trimmed(line[..<colon])
        let lower = name.lowercased()
        let isOwn = Self.own.contains(lower) || ["content-", "if-", "sec-", "upgrade"].contains { lower.hasPrefix($0) }
        guard !name.isEmpty, !isOwn else { return }
        headers.append(Wire.Header(name: name, value: trimmed(line[line.utf8.index(after: colon)...])))
    }
}

/// The words of a command of a POSIX shell, without expansions. The quotes of the Windows command prompt (`^"`) count
/// as quotes.
struct ShellWords {
    private let line: [UInt32]
    private var index: Int
    /// Quotes without an end, which are ignored: no later quote of the kind has an end either.
    private var unended: Set<UInt32> = []

    init(_ line: [UInt32], from start: Int) {
        // There, `^` escapes the next character.
        let isWindows = zip(line, line.dropFirst()).contains { $0 == 0x5E && $1 == 0x22 }
        guard isWindows else {
            self.line = line
            index = start
            return
        }
        var (kept, isEscape): ([UInt32], Bool) = ([], false)
        for character in line[start...] {
            isEscape = character == 0x5E && !isEscape
            if !isEscape { kept.append(character) }
        }
        self.line = kept
        index = 0
    }

    mutating func next() -> String? {
        while index < line.count, PastedCharacters.isSpace(line[index]) { index += 1 }
        guard index < line.count else { return nil }
        var word: [UInt32] = []
        while index < line.count, !PastedCharacters.isSpace(line[index]) { takePiece(into: &word) }
        return PastedCharacters.string(word)
    }

    private mutating func takePiece(into word: inout [UInt32]) {
        let character = line[index]
        switch character {
        case 0x27, 0x22:
            guard let end = quoteEnd(character, from: index + 1, escapes: character == 0x22) else { break }
            append(line[(index + 1)..<end], escapes: character == 0x22 ? .shell : nil, to: &word)
            index = end + 1
            return
        case 0x24 where index + 1 < line.count && line[index + 1] == 0x27:
            guard let end = quoteEnd(0x24, from: index + 2, escapes: true) else { break }
            append(line[(index + 2)..<end], escapes: .ansi, to: &word)
            index = end + 1
            return
        case 0x5C where index + 1 < line.count:
            word.append(line[index + 1])
            index += 2
            return
        default: break
        }
        if character != 0x27, character != 0x22, character != 0x5C { word.append(character) }
        index += 1
    }

    /// Returns the index of the quote that ends a text; `nil` if it has no end. `$` stands for `$'…'`.
    private mutating func quoteEnd(_ kind: UInt32, from start: Int, escapes: Bool) -> Int? {
        guard !unended.contains(kind) else { return nil }
        let quote: UInt32 = kind == 0x22 ? 0x22 : 0x27
        var end = start
        while end < line.count, line[end] != quote { end += escapes && line[end] == 0x5C ? 2 : 1 }
        if end < line.count { return end }
        unended.insert(kind)
        return nil
    }

    private enum Escapes { case shell, ansi }

    private func append(_ text: ArraySlice<UInt32>, escapes: Escapes?, to word: inout [UInt32]) {
        var text = text
        while let character = text.popFirst() {
            guard escapes != nil, character == 0x5C, let next = text.popFirst() else {
                word.append(character)
                continue
            }
            // `$'\u0021'`, as Chromium writes an exclamation mark.
            if escapes == .ansi, next == 0x75, let code = UInt32(PastedCharacters.string(text.prefix(4)), radix: 16) {
                word.append(code)
                text = text.dropFirst(4)
            } else {
                word.append(next)
            }
        }
    }
}
