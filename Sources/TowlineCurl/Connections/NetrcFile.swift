import Glibc
internal import TowlineCore
package import TowlineEngine

/// A netrc file, which contains passwords by host. For requests, libcurl reads the passwords, and this type only finds
/// the hosts that the file names. `tow add` reads a password here, because `towd` does not read files of its clients.
///
/// The `default` entry names no host. That entry applies to the URL that the user gave, never to the target of a
/// redirect.
package struct NetrcFile {
    private let path: String?

    /// Selects the netrc file that the options name, without reading it.
    package init(_ netrc: ConnectionOptions.Netrc) {
        switch netrc {
        case .none: path = nil
        case .userFile: path = getenv("HOME").map { String(cString: $0) + "/.netrc" }
        case .file(let file): path = file
        }
    }

    /// The content of the file, at most 1 MiB, in case the path leads to an endless device. Empty if no file exists or
    /// the file cannot be read.
    package var content: [UInt8] {
        guard let path, let file = ByteText.withCString(path, { fopen($0, "re") }) else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < 1 << 20 {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return bytes
    }

    /// Returns whether the netrc file has an entry for a host, so that a request to the host may carry its password.
    func names(_ host: String) -> Bool { Self.names(host, in: content) }

    /// Returns whether the content of a netrc file has an entry `machine HOST` outside of comments.
    static func names(_ host: String, in bytes: [UInt8]) -> Bool {
        let (words, host) = (words(in: bytes), plain(host))
        return zip(words, words.dropFirst()).contains { $0 == "machine" && $1.lowercased() == host }
    }

    /// Returns the credentials `name:password` of a host, from its first entry or the entry `default`; `nil` if the
    /// content of the netrc file has neither.
    package static func credentials(for host: String, in bytes: [UInt8]) -> String? {
        let host = plain(host)
        var words = words(in: bytes)[...]
        var entry: (name: String?, password: String?)?
        reading: while let word = words.popFirst() {
            switch word {
            case "machine", "default":
                if entry != nil { break reading }
                if word == "default" || words.popFirst()?.lowercased() == host { entry = (nil, nil) }
            case "login", "password", "account":
                let value = words.popFirst()
                if word == "login" { entry?.name = value }
                if word == "password" { entry?.password = value }
            default: break
            }
        }
        guard let entry, entry.name != nil || entry.password != nil else { return nil }
        return "\(entry.name ?? ""):\(entry.password ?? "")"
    }

    private static func plain(_ host: String) -> String { host.lowercased().filter { $0 != "[" && $0 != "]" } }

    /// Returns the words of a file, without comments and macros (`macdef`, up to an empty line). As in libcurl, a word
    /// may be in quotation marks, with a backslash before special characters.
    private static func words(in bytes: [UInt8]) -> [String] {
        var words: [String] = []
        var isMacro = false
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            var rest = line.drop(while: isBlank)
            isMacro = isMacro && !rest.isEmpty
            while !isMacro, let first = rest.first, first != 0x23 {
                let word = first == 0x22 ? quoted(&rest) : Array(rest.prefix { !isBlank($0) })
                if first != 0x22 { rest = rest.dropFirst(word.count) }
                words.append(String(decoding: word, as: UTF8.self))
                isMacro = words.last == "macdef"
                rest = rest.drop(while: isBlank)
            }
        }
        return words
    }

    /// Removes a word in quotation marks from the beginning of a line and returns the word without them.
    private static func quoted(_ line: inout ArraySlice<UInt8>) -> [UInt8] {
        var word: [UInt8] = []
        line.removeFirst()
        while let byte = line.popFirst(), byte != 0x22 {
            guard byte == 0x5C, let escaped = line.popFirst() else {
                word.append(byte)
                continue
            }
            word.append([0x6E: 0x0A, 0x72: 0x0D, 0x74: 0x09][escaped] ?? escaped)
        }
        return word
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
}
