import TowlineCore

/// A translation of options of curl, wget and aria2 on the command line of `tow get`, if the meaning is the same. The
/// command of a browser's "Copy as cURL" works with `curl` replaced by `tow get`.
struct FamiliarOptions {
    /// The command line with options of `tow` only.
    private(set) var words: [String] = []
    /// Messages about options that are left out and may matter to the user.
    private(set) var notices: [String] = []
    /// The words that are not yet translated.
    private var rest: ArraySlice<String>
    private let all: ArraySlice<String>
    /// The values of `-b`. A request has one Cookie field (RFC 6265 §5.4).
    private var cookies: [String] = []

    /// - Parameter words: the words after `get`.
    /// - Throws: `unusableOption` for an option that has another meaning here, or asks for something other than a file.
    ///   The message names the option to use and shows no secret.
    init(translating words: ArraySlice<String>) throws(TowlineError) {
        (rest, all) = (words, words)
        while let word = rest.popFirst() {
            if word == "--" {
                rest.insert(word, at: rest.startIndex)
                break
            }
            if word.utf8.starts(with: "--".utf8) {
                try translate(long: word)
            } else if word.utf8.first == 0x2D, word.utf8.count > 1 {
                try translate(short: word)
            } else {
                self.words.append(word)
            }
        }
        // Insert before `--`, because the words after it are not options.
        if !cookies.isEmpty { self.words += ["--header", "Cookie: " + cookies.joined(separator: "; ")] }
        self.words += rest
    }

    // MARK: Words

    private mutating func translate(long word: String) throws(TowlineError) {
        let equals = word.utf8.firstIndex(of: 0x3D)
        let name = equals.map { String(word[..<$0]) } ?? word
        let value = equals.map { String(word[word.utf8.index(after: $0)...]) }
        if let use = Self.use(of: name) {
            return try apply(use, name, value)
        }
        words.append(word)
        // The value of an option of `tow` is not an option, even if it looks like one.
        let setting = Setting.allCases.first { name == "--" + $0.rawValue }
        guard equals == nil, setting?.isFlag == false, let next = rest.popFirst() else { return }
        words.append(next)
    }

    /// Translates short options that share a word, such as `-sSLo FILE`.
    private mutating func translate(short word: String) throws(TowlineError) {
        if let use = Self.shortWords[word] { return try apply(use, word, nil) }
        var uses: [(Use, String)] = []
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let use = Self.short[letter] else {
                // The parser reports the whole word if a letter is unknown.
                words.append(word)
                return
            }
            // The rest of the word may be a value.
            if case .refused = use { return try apply(use, "-\(letter)", nil) }
            // The parser reads `-x=4`.
            guard letters.utf8.first != 0x3D else {
                words.append(word)
                return
            }
            uses.append((use, "-\(letter)"))
            guard use.takesValue || letter == "O", !letters.isEmpty else { continue }
            let value = String(letters)
            letters = ""
            for (use, name) in uses.dropLast() { try apply(use, name, nil) }
            return try apply(use, "-\(letter)", value)
        }
        for (use, name) in uses { try apply(use, name, nil) }
    }

    // MARK: Options

    private mutating func apply(_ use: Use, _ name: String, _ given: String?) throws(TowlineError) {
        var value = ""
        if use.takesValue {
            guard let text = given ?? rest.popFirst() else { throw refused("\(name) needs a value") }
            value = text
        }
        switch use {
        case .ignored: break
        case .words(let own): words += own
        case .value(let own): words += [own, value]
        case .url: words.append(value)
        case .refused(let answer): throw refused("\(name): \(answer)")
        case .header: addHeader(value)
        case .userAgent: words += ["--header", "User-Agent: " + value]
        case .referer: try addReferer(value)
        case .cookie: try addCookie(value)
        case .method: try check(method: value)
        case .continueAt where value != "-": throw refused("\(name): tow always resumes at the right byte. Omit it")
        case .continueAt: break
        case .remoteName: try remoteName(given)
        case .continueOrCookieJar where namesFile:
            throw refused("-c: in curl, -c FILE stores cookies; use --save-cookies FILE")
        case .continueOrCookieJar: break
        case .silentOrSplit where rest.first?.utf8.allSatisfy { (0x30...0x39).contains($0) } == true:
            throw refused("-s: in aria2, -s N sets the number of connections; use -x N")
        case .silentOrSplit: words.append("-q")
        case .list where Self.isURL(value):
            throw refused("-i reads URLs from a file. To see what a server offers, use 'tow probe URL'")
        case .list: words += ["-i", value]
        case .connections where value.utf8.contains(0x3A):
            throw refused("-x: in curl, -x sets a proxy; use --proxy URL")
        case .connections: words += ["-x", value]
        }
    }

    /// Adds a header of the user. Leaves out headers that browsers copy and that only Towline may set: those that
    /// select the part, the version and the coding of the file, and those for the use of the connection.
    private mutating func addHeader(_ text: String) {
        // In curl, a name with a semicolon is a header with an empty value.
        let text = text.utf8.contains(0x3A) || text.utf8.last != 0x3B ? text : String(text.dropLast()) + ":"
        let colon = text.utf8.firstIndex(of: 0x3A) ?? text.endIndex
        let name = ASCII.lowercased(String(text[..<colon]))
        let value = text[colon...].utf8.drop { $0 == 0x3A || $0 == 0x20 }
        if name == "range", !value.elementsEqual("bytes=0-".utf8) {
            notices.append("the header 'Range' is not sent, because tow always downloads the whole file")
        }
        guard !Self.omittedHeaders.contains(name), name != "host" || !isHost(ofURL: String(Substring(value))) else {
            return
        }
        words += ["--header", text]
    }

    /// Returns whether a URL of the command line has this host and port, so that the field `Host` is redundant.
    private func isHost(ofURL authority: String) -> Bool {
        all.contains { word in
            guard Self.isURL(word), let url = try? HTTPURL(parsing: word) else { return false }
            return (try? HTTPURL(parsing: "\(url.scheme)://\(authority)"))?.origin == url.origin
        }
    }

    private mutating func addReferer(_ value: String) throws(TowlineError) {
        // In curl, `;auto` updates the field at each redirect.
        let plain = value.hasSuffix(";auto") ? String(value.dropLast(5)) : value
        guard !plain.utf8.contains(0x3D) || plain.utf8.contains(0x2F) else {
            throw refused("-e: in wget, -e runs a command of wget's configuration file. Omit this option")
        }
        if !plain.isEmpty { words += ["--header", "Referer: " + plain] }
    }

    private mutating func addCookie(_ value: String) throws(TowlineError) {
        guard !Self.isURL(value) else {
            throw refused("-b: in wget, -b downloads in the background; use 'tow add URL'")
        }
        if value.utf8.contains(0x3D) {
            cookies.append(value)
        } else if !value.isEmpty {
            words += ["--cookies", value]
        }
    }

    private func check(method: String) throws(TowlineError) {
        switch method.uppercased() {
        case "GET": break
        case "HEAD": throw refused("tow get sends GET requests only. To see what a server offers, use 'tow probe URL'")
        default: throw refused("tow get sends GET requests only, so this request was not sent. Use curl for it")
        }
    }

    /// Handles `-O`: the name from the URL in curl, a file in wget.
    private mutating func remoteName(_ value: String?) throws(TowlineError) {
        if value == "-" || value == nil && rest.first == "-" {
            if value == nil { rest.removeFirst() }
            words += ["-o", "-"]
        } else if value != nil || namesFile {
            throw refused("-O: in wget, -O FILE names the file; use -o FILE")
        }
    }

    /// Returns whether the next word is a file name: not an option, and not the only URL.
    private var namesFile: Bool {
        guard let next = rest.first, next.utf8.first != 0x2D, !Self.isURL(next) else { return false }
        return all.contains(where: Self.isURL)
    }

    private static func isURL(_ text: String) -> Bool {
        ["http://", "https://"].contains { ASCII.lowercased(String(text.prefix(8))).hasPrefix($0) }
    }

    private func refused(_ message: String) -> TowlineError { TowlineError(.unusableOption, message) }
}
