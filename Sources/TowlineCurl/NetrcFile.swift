import Glibc
internal import TowlineCore
internal import TowlineEngine

/// A netrc file, which contains passwords by host. libcurl reads the passwords; this type only finds the hosts that the
/// file names.
///
/// The `default` entry names no host. That entry applies to the URL that the user gave, never to the target of a
/// redirect.
struct NetrcFile {
    private let path: String?

    init(_ netrc: ConnectionOptions.Netrc) {
        switch netrc {
        case .none: path = nil
        case .userFile: path = getenv("HOME").map { String(cString: $0) + "/.netrc" }
        case .file(let file): path = file
        }
    }

    /// Returns whether an entry of the file names the host. Returns `false` if no file exists or the file cannot be
    /// read.
    func names(_ host: String) -> Bool {
        guard let path, let file = ByteText.withCString(path, { fopen($0, "re") }) else { return false }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < Self.longest {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return Self.names(host, in: bytes)
    }

    /// The maximum number of bytes of the file to read, in case the path leads to an endless device.
    private static let longest = 1 << 20

    /// Returns whether the content of a netrc file has an entry `machine HOST` outside of comments.
    static func names(_ host: String, in bytes: [UInt8]) -> Bool {
        let host = Array(host.utf8.filter { $0 != 0x5B && $0 != 0x5D })
        var previous: ArraySlice<UInt8> = []
        for line in bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            for word in line.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 }) {
                if word.first == 0x23 { break }
                if previous.elementsEqual("machine".utf8), lowercased(word).elementsEqual(host) { return true }
                previous = word
            }
        }
        return false
    }

    private static func lowercased(_ word: ArraySlice<UInt8>) -> [UInt8] {
        word.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}
