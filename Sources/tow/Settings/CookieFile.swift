import Glibc
import TowlineCore
import TowlineEngine

/// Files of cookies: the one of `--cookies`, which libcurl reads, and the one of `--save-cookies`.
enum CookieFile {
    // MARK: --cookies

    /// Returns the path of a file with cookies in the Netscape format or with `Set-Cookie` fields. A pipe is not
    /// checked, because libcurl could not read the bytes again.
    static func checked(_ path: String) throws(TowlineError) -> String {
        let path = try OptionValue.readableFile(path)
        guard TextFile.isRegular(path), let bytes = TextFile.bytes(path, limit: 64 << 20), let kind = otherKind(bytes)
        else { return path }
        throw OptionValue.unusable(
            "\(OptionValue.shown(path)) is not a cookie file in Netscape format. The file looks like \(kind)."
                + " Export the cookies in Netscape format (cookies.txt)")
    }

    /// Returns the kind of a file in which libcurl finds no cookies; `nil` for a cookie file and for an empty file.
    static func otherKind(_ bytes: [UInt8]) -> String? {
        if let kind = binaryKind(bytes) { return kind }
        let lines = bytes.split { $0 == 0x0A || $0 == 0x0D }.map { String(decoding: $0, as: UTF8.self) }
        if lines.contains(where: isCookie) { return nil }
        if lines.contains(where: { $0.hasPrefix("#LWP-Cookies") }) { return "a cookie file of Perl (LWP)" }
        let content = lines.drop { $0.hasPrefix("#") && !$0.hasPrefix(httpOnly) || $0.allSatisfy(\.isWhitespace) }
        guard let first = content.first?.drop(while: { $0.isWhitespace || $0 == "\u{FEFF}" }) else { return nil }
        switch first.first {
        case "{", "[": return "JSON (the export of a browser extension)"
        case "<": return "HTML or XML"
        default: break
        }
        if first.split(whereSeparator: \.isWhitespace).count >= 6 {
            return "a list of cookies with spaces instead of tabs between the fields"
        }
        return first.contains("=") ? "a Cookie header (-H 'Cookie: NAME=VALUE' sends one)" : "another kind of file"
    }

    private static func binaryKind(_ bytes: [UInt8]) -> String? {
        func begins(_ text: String) -> Bool { bytes.starts(with: text.utf8) }
        if begins("SQLite format 3\0") { return "a SQLite database (cookies.sqlite or Cookies of a browser)" }
        if begins("cook\0") { return "the binary cookie file of Safari" }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) { return "text in UTF-16, not UTF-8" }
        if bytes.starts(with: [0x1F, 0x8B]) || begins("PK\u{3}\u{4}") { return "a compressed file" }
        return bytes.contains(0) ? "a binary file" : nil
    }

    private static let httpOnly = "#HttpOnly_"

    private static func isCookie(_ line: String) -> Bool {
        if line.lowercased().hasPrefix("set-cookie:") { return true }
        guard !line.hasPrefix("#") || line.hasPrefix(httpOnly) else { return false }
        // The seventh field, the value, may be empty.
        return line.split(separator: "\t").count >= 6
    }

    // MARK: --save-cookies

    /// Throws if no file can be saved under a path. Called before the first download.
    static func checkDestination(_ path: String) throws(TowlineError) {
        var status = stat()
        let isThere = ByteText.withCString(try OptionValue.text(path), { stat($0, &status) }) == 0
        guard !isThere || status.st_mode & S_IFMT == S_IFREG else {
            throw OptionValue.unusable("\(OptionValue.shown(path)) is not a regular file. Give the name of a file")
        }
        guard ByteText.withCString(directory(of: path), { access($0, W_OK | X_OK) }) == 0 else {
            throw OptionValue.unusable(
                "cannot create \(OptionValue.shown(path)): \(String(cString: strerror(errno)))."
                    + " Give a file in an existing directory that you may write to")
        }
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "." }
        return String(path[...slash])
    }

    /// Writes the cookies of a jar to a new file of mode 0600, which replaces the old file.
    ///
    /// - Returns: a message after a failure; `nil` after success.
    static func save(_ jar: CookieJar, to path: String) -> String? {
        var text = "# Netscape HTTP Cookie File\n# Written by tow. These cookies are secrets.\n\n"
        for line in jar.lines { text += line + "\n" }
        var template = ByteText.encode(path + ".XXXXXX").map { CChar(bitPattern: $0) } + [0]
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { return problem(path, errno) }
        let isWritten = OutputDescriptor.writeAll(ByteText.encode(text), to: descriptor)
        var failure = isWritten ? 0 : errno
        if close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, ByteText.withCString(path, { rename(template, $0) }) != 0 { failure = errno }
        guard failure != 0 else { return nil }
        unlink(template)
        return problem(path, failure)
    }

    private static func problem(_ path: String, _ error: Int32) -> String {
        "cannot save the cookies in \(OptionValue.shown(path)): \(String(cString: strerror(error)))"
    }
}
