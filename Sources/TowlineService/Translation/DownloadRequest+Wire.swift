internal import Foundation
internal import Towline
import TowlineWire

extension DownloadRequest {
    /// Creates a request from the API's form. The destination must be inside the roots.
    ///
    /// - Parameter createsDirectories: `false` to leave a missing directory missing, for a request that is only looked
    ///   up.
    /// - Throws: `unusableURL`, `unusableDestination`, `unusableOption`.
    init(_ wire: Wire.NewDownload, roots: DownloadRoots, createsDirectories: Bool = true) throws(TowlineError) {
        let url = try Self.url(wire.url)
        let path = try roots.directory(wire.directory, creating: createsDirectories)
        let directory = URL(fileURLWithPath: path, isDirectory: true)
        var destination = Destination.directory(directory)
        if let name = wire.name {
            destination = .file(directory.appendingPathComponent(try roots.name(name), isDirectory: false))
        }
        self.init(from: url, to: destination)
        try take(wire)
        followUps = createsDirectories ? try Self.followUps(wire, directory, roots) : []
    }

    private mutating func take(_ wire: Wire.NewDownload) throws(TowlineError) {
        mirrors = try (wire.mirrors ?? []).map { text throws(TowlineError) in
            _ = try HTTPURL(mirror: text)
            return try Self.url(text)
        }
        headers = (wire.headers ?? []).map { Header($0.name, $0.value) }
        user = try wire.user.map { text throws(TowlineError) in try Self.user(text) }
        (cookies, proxy, options) = (wire.cookies, wire.proxy, wire.options)
        priority = try wire.priority.map { priority throws(TowlineError) in try Self.priority(priority) } ?? 0
        group = try wire.group.map { group throws(TowlineError) in try Self.group(group) }
        metadata = try wire.metadata.map { metadata throws(TowlineError) in try Self.metadata(metadata) } ?? [:]
        startsPaused = wire.startsPaused ?? false
        given = wire.given
    }

    /// Checks a user name and password. Without a colon, the text is a mistake, such as a token that a browser filled
    /// in.
    ///
    /// - Throws: `unusableOption`, without the text.
    private static func user(_ text: String) throws(TowlineError) -> String {
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            throw TowlineError(
                .unusableOption,
                "user: the colon between the user name and the password is missing. Send 'NAME:PASSWORD'")
        }
        return text
    }

    /// Checks the name of a group.
    ///
    /// - Throws: `unusableOption`.
    static func group(_ name: String) throws(TowlineError) -> String {
        guard !name.hasControlCharacters else {
            throw TowlineError(.unusableOption, "group: control characters are not allowed in the name of a group")
        }
        return name
    }

    /// Checks the metadata of a client, which the list of downloads keeps. Lengths are in Unicode code points, as in
    /// the API document.
    ///
    /// - Throws: `unusableOption`.
    static func metadata(_ metadata: [String: String]) throws(TowlineError) -> [String: String] {
        guard metadata.count <= 64,
            metadata.allSatisfy({ $0.key.unicodeScalars.count <= 256 && $0.value.unicodeScalars.count <= 1024 })
        else {
            throw TowlineError(
                .unusableOption,
                "metadata: too large, expected at most 64 keys of 256 characters with values of 1024 characters")
        }
        return metadata
    }

    /// Parses a URL with the strict parser first, because `URL` accepts invalid input such as a line break.
    static func url(_ text: String) throws(TowlineError) -> URL {
        _ = try HTTPURL(parsing: text)
        guard let url = URL(string: text) else {
            throw TowlineError(
                .unusableURL,
                "url: the value is not a valid URL. Percent-encode special characters, such as a space (%20)")
        }
        return url
    }

    /// Checks a priority. The queue uses the negated value, so the smallest integer is not allowed.
    static func priority(_ priority: Int) throws(TowlineError) -> Int {
        guard priority > Int.min else {
            throw TowlineError(.unusableOption, "priority: the value is too low. The minimum is \(Int.min + 1)")
        }
        return priority
    }

    private static func followUps(_ wire: Wire.NewDownload, _ directory: URL, _ roots: DownloadRoots)
        throws(TowlineError) -> [FollowUp]
    {
        switch wire.unpack {
        case nil, .wanted(false): return []
        case .wanted(true):
            let suggested = wire.name ?? (try? HTTPURL(parsing: wire.url))?.lastPathComponent
            guard let name = suggested.flatMap({ SafeFileName.make($0) }) else {
                throw TowlineError(
                    .unusableOption,
                    #"unpack: the URL contains no name for the directory. Send it: "unpack": {"into": "DIRECTORY"}"#)
            }
            return [.unpack(into: directory.appendingPathComponent(stem(name), isDirectory: true))]
        case .into(let text):
            let (parent, last) = split(text)
            let place = URL(fileURLWithPath: try roots.directory(parent), isDirectory: true)
            return [.unpack(into: place.appendingPathComponent(try roots.name(last), isDirectory: true))]
        }
    }

    private static func split(_ path: String) -> (parent: String?, last: String) {
        guard let slash = path.lastIndex(of: "/") else { return (nil, path) }
        return (slash == path.startIndex ? "/" : String(path[..<slash]), String(path[path.index(after: slash)...]))
    }

    /// The name without the extension of an archive: `album` for `album.tar.gz`.
    private static func stem(_ name: String) -> String {
        for suffix in [".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2", ".tgz", ".txz", ".tzst", ".tar", ".zip"]
        where name.lowercased().hasSuffix(suffix) && name.utf8.count > suffix.utf8.count {
            return String(name.dropLast(suffix.count))
        }
        return name + ".unpacked"
    }
}

extension String {
    /// `true` if the text contains control characters, such as NUL, at which the list of downloads would end the text.
    var hasControlCharacters: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}
