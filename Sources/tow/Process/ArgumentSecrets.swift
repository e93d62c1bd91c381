import Glibc

/// The secrets in the arguments of this process, which other users can see with `ps`.
enum ArgumentSecrets {
    /// The options whose whole value is a secret.
    private static let secretOptions = ["--user", "--cookie", "--http-password", "--password", "--proxy-user"]
    /// The options whose value is a secret if it is a header field with credentials.
    private static let fieldOptions = ["-H", "--header"]
    /// The option whose value is a URL with or without a scheme.
    private static let proxyOption = "--proxy"

    /// Overwrites secrets with `*` in the memory that the kernel shows as `/proc/PID/cmdline`; proc(5) gives its bounds
    /// as fields 48 and 49 of `/proc/self/stat`. Call after the arguments are parsed. `ps` may have read them earlier:
    /// a file (`--user-file`) is the safe way.
    static func blank() {
        guard ProcessArguments.words.contains(where: mayBeOne) else { return }
        guard let (start, end) = argumentArea(), let base = UnsafeMutableRawPointer(bitPattern: start) else { return }
        let area = UnsafeMutableRawBufferPointer(start: base, count: end - start)
        for range in secretRanges(in: area.split(separator: 0, omittingEmptySubsequences: false).map { Array($0) }) {
            for index in range { area[index] = UInt8(ascii: "*") }
        }
    }

    /// Returns whether a word may contain a secret or announce one in the next word. Usually no word does.
    static func mayBeOne(_ word: String) -> Bool {
        (secretOptions + fieldOptions).contains(where: word.hasPrefix) || shortOption(word) != nil
            || word.utf8.contains { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?") }
    }

    /// Returns the ranges to overwrite, in the concatenation of the arguments with a NUL after each.
    static func secretRanges(in arguments: [[UInt8]]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var offset = 0
        var previous = ""
        for bytes in arguments {
            let text = String(decoding: bytes, as: UTF8.self)
            let own = [secretRange(in: bytes, text: text, after: previous), queryRange(in: bytes)]
            ranges += own.compactMap { $0 }.map { $0.lowerBound + offset..<$0.upperBound + offset }
            offset += bytes.count + 1
            previous = text
        }
        return ranges
    }

    private static func secretRange(in bytes: [UInt8], text: String, after previous: String) -> Range<Int>? {
        if secretOptions.contains(previous) { return 0..<bytes.count }
        if fieldOptions.contains(previous) { return fieldValueRange(in: bytes, from: 0) }
        if let option = shortOption(previous), option.isLast { return range(of: option.letter, in: bytes, from: 0) }
        if let option = shortOption(text), !option.isLast {
            return range(of: option.letter, in: bytes, from: option.end)
        }
        if previous == proxyOption { return proxyUserRange(in: bytes, from: 0) }
        if let equals = bytes.firstIndex(of: UInt8(ascii: "=")) {
            let name = String(decoding: bytes[..<equals], as: UTF8.self)
            if secretOptions.contains(name) { return equals + 1..<bytes.count }
            if fieldOptions.contains(name) { return fieldValueRange(in: bytes, from: equals + 1) }
            if name == proxyOption { return proxyUserRange(in: bytes, from: equals + 1) }
        }
        return userInfoRange(in: bytes, text: text)
    }

    /// The short options whose value may be a secret, and the options without a value that may precede them in a word.
    private static let shortOptions = "HubU"
    private static let shortFlags = "qhLOJfSgcskn"

    /// Returns the short option of a word if its value may be a secret. `end` is the offset at which the value begins;
    /// `isLast` is `true` if the value is the next word.
    private static func shortOption(_ word: String) -> (letter: Character, end: Int, isLast: Bool)? {
        guard word.hasPrefix("-"), !word.hasPrefix("--") else { return nil }
        let flags = word.dropFirst().prefix { shortFlags.contains($0) }
        guard let letter = word.dropFirst(1 + flags.count).first, shortOptions.contains(letter) else { return nil }
        let end = flags.utf8.count + 2
        return (letter, end, word.utf8.count == end)
    }

    private static func range(of letter: Character, in bytes: [UInt8], from start: Int) -> Range<Int>? {
        letter == "H" ? fieldValueRange(in: bytes, from: start) : start..<bytes.count
    }

    /// Returns the range of a field's value if the field may be a secret.
    private static func fieldValueRange(in bytes: [UInt8], from start: Int) -> Range<Int>? {
        guard let colon = bytes[start...].firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = String(decoding: bytes[start..<colon], as: UTF8.self)
        return SecretScope.isSecret(fieldNamed: name) ? colon + 1..<bytes.count : nil
    }

    /// Returns the range between `://` and the last `@` before the path.
    private static func userInfoRange(in bytes: [UInt8], text: String) -> Range<Int>? {
        guard let colon = bytes.indices.dropLast(2).first(where: { bytes[$0...].starts(with: "://".utf8) }) else {
            return nil
        }
        let authority = bytes[(colon + 3)...].prefix { !"/?#".utf8.contains($0) }
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return nil }
        return colon + 3..<at
    }

    /// Returns the range before the last `@` of a proxy's URL, without the scheme. An unencoded password may contain
    /// `/`.
    private static func proxyUserRange(in bytes: [UInt8], from start: Int) -> Range<Int>? {
        guard let at = bytes[start...].lastIndex(of: UInt8(ascii: "@")) else { return nil }
        let scheme = bytes[start..<at].indices.first { bytes[$0...].starts(with: "://".utf8) }
        let user = scheme.map { $0 + 3 } ?? start
        return user < at ? user..<at : nil
    }

    /// Returns the range of a URL's query: signed links contain their signature in the query.
    private static func queryRange(in bytes: [UInt8]) -> Range<Int>? {
        // The URL may follow an option name, as in `--mirror=https://…`.
        let colon = bytes.indices.dropLast(2).first { bytes[$0...].starts(with: "://".utf8) }
        // In any word except an option, the URL may lack its scheme.
        guard colon != nil || bytes.first != UInt8(ascii: "-"),
            let mark = bytes[(colon ?? 0)...].firstIndex(of: UInt8(ascii: "?"))
        else { return nil }
        return mark + 1..<bytes.count
    }

    private static func argumentArea() -> (Int, Int)? {
        guard let text = TextFile.read("/proc/self/stat", limit: 4096),
            let afterName = text.lastIndex(of: ")")
        else { return nil }
        // Field 3 is the first after the name.
        let fields = text[afterName...].split(separator: " ").dropFirst()
        guard fields.count > 46, let start = Int(fields[fields.startIndex + 45]),
            let end = Int(fields[fields.startIndex + 46]), start > 0, end > start
        else { return nil }
        return (start, end)
    }
}
