import Glibc
import TowlineCore
import TowlineEngine

/// The user's settings of downloads, before there is a URL: the defaults, then the command line, then the options of an
/// entry in a list of URLs.
struct DownloadSettings {
    /// The value of `-o`: a path, or `-` for standard output.
    var output: String?
    var directory = "."
    var options = TransferOptions.ofCommand
    var mirrors: [HTTPURL] = []
    var userFields = HTTPFields()
    var connection = ConnectionOptions()
    /// `true` if the user typed the name (`-o`): a symbolic link with this name is followed, and `overwrite` replaces
    /// its target.
    var followsLink = false
    var durable = true
    var changed = ChangePolicy.restart
    var reservesSpace = true

    /// Returns the complete options of a download. Throws if they contradict each other.
    func options(for url: HTTPURL) throws(TowlineError) -> DownloadOptions {
        let isIPv6 = url.host.hasPrefix("[")
        if connection.addressFamily == .ipv4 && isIPv6
            || connection.addressFamily == .ipv6 && url.host.utf8.allSatisfy({ $0 == 0x2E || 0x30...0x39 ~= $0 })
        {
            let option = isIPv6 ? "-4 does not allow the IPv6 address" : "-6 does not allow the IPv4 address"
            throw TowlineError(.unusableOption, "\(url): \(option) in the URL. Omit the option")
        }
        if connection.clientCertificate?.file.isEmpty == true {
            throw TowlineError(.unusableOption, "--key and --key-password-file need the certificate: add --cert FILE")
        }
        if connection.ignoresLength, !mirrors.isEmpty {
            throw TowlineError(
                .unusableOption, "--ignore-length cannot be used with mirrors, which are compared by length. Omit one")
        }
        var options = DownloadOptions(url: url, target: try target(), transfer: self.options, connection: connection)
        options.mirrors = mirrors.filter { $0 != url }
        options.userFields = userFields
        if connection.user == nil { options.connection.user = url.credentials }
        options.durable = durable
        options.changed = changed
        options.reservesSpace = reservesSpace
        try options.checkMirrors()
        return options
    }

    /// Returns the destination: `-o` below `-d`, unless `-o` is an absolute path.
    private func target() throws(TowlineError) -> DownloadOptions.Target {
        let directory = Self.plain(directory)
        guard let output else { return .file(directory: directory, name: nil) }
        if output == "-" { return .standardOutput }
        // Search the bytes: a slash followed by a combining character is another `Character`.
        let start = output.utf8.lastIndex(of: 0x2F).map { output.utf8.index(after: $0) }
        let name = start.map { String(output[$0...]) } ?? output
        guard !name.isEmpty, name != ".", name != ".." else {
            throw TowlineError(
                .unusableOption,
                "-o '\(TerminalSafeText.make(output))' does not name a file. To choose only a directory, use -d")
        }
        let parent = Self.plain(start.map { String(output[..<$0]) } ?? ".")
        let isBelow = output.utf8.first != 0x2F && directory != "."
        let place = isBelow ? (parent == "." ? directory : Self.plain(directory + "/" + parent)) : parent
        // Checked before the first request: a directory is not replaced, not even with `--if-exists overwrite`.
        if Self.isDirectory(place + "/" + name) {
            throw TowlineError(
                .unusableOption,
                "-o '\(TerminalSafeText.make(output))' is a directory. Use -d for a directory and -o for a file name")
        }
        // A list must not choose a device.
        if followsLink, let stream = try OutputPath.stream(place + "/" + name) { return .stream(stream) }
        if followsLink, let target = try linkTarget(place + "/" + name), let slash = target.utf8.lastIndex(of: 0x2F) {
            let directory = Self.plain(slash == target.startIndex ? "/" : String(target[..<slash]))
            return .file(directory: directory, name: String(target[target.utf8.index(after: slash)...]))
        }
        return .file(directory: place, name: name)
    }

    /// Returns the file that the link of `-o LINK` leads to, or `nil`. `rename` saves in the link's directory instead.
    /// Only `overwrite` and `update` write to the file, so only with them a link of another user is an error.
    private func linkTarget(_ path: String) throws(TowlineError) -> String? {
        switch options.existing {
        case .overwrite, .update: try LinkTarget.resolve(path)
        case .fail, .skip: try? LinkTarget.resolve(path)
        case .rename: nil
        }
    }

    /// Returns the path with single slashes and without a trailing slash.
    private static func plain(_ path: String) -> String {
        var previous: UInt8 = 0
        var isPlain = true
        for byte in path.utf8 {
            if byte == 0x2F, previous == 0x2F { isPlain = false }
            previous = byte
        }
        guard !isPlain || previous == 0x2F else { return path }
        // Copy the bytes: the first use of the generic `split` and `joined` takes longer than everything else here.
        var bytes: [UInt8] = []
        for byte in path.utf8 where byte != 0x2F || bytes.last != 0x2F { bytes.append(byte) }
        if bytes.count > 1, bytes.last == 0x2F { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns whether a directory exists at the path. Follows symbolic links.
    static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return ByteText.withCString(path) { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

extension TransferOptions {
    /// The default options of `tow get`. A command does not wait for hours, unlike a service.
    static var ofCommand: TransferOptions {
        var options = TransferOptions()
        options.maximumTries = 20
        options.maximumWait = .seconds(3600)
        return options
    }
}
