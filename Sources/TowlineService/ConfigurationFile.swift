internal import Foundation
package import Towline
import Yams

/// The options of `towd`, from the command line or the configuration file. The command line takes precedence.
package struct ServiceSettings: Hashable, Sendable {
    /// The state directory, which contains the list of downloads.
    package var state: String?
    /// The downloads directories. Downloads are stored in them or below.
    package var downloads: [String] = []
    /// Path of the Unix socket.
    package var socket: String?
    /// TCP addresses to listen on; `none`: the Unix socket only.
    package var listen: [String] = []
    /// Names that a `Host` header field may contain, in addition to the addresses.
    package var host: [String] = []
    /// The clients that may download from private addresses; see `PrivateAddresses`.
    package var privateAddresses: String?
    /// True if the user confirmed that `towd` may run as root.
    package var allowsRoot = false

    /// Creates settings without any option.
    package init() {}

    /// Reads a YAML file: a mapping from option names to strings or lists of strings; `allow-root` is true or false.
    ///
    /// - Throws: `unusableOption` if the content is invalid, the file cannot be read, or another user can change it.
    package init(file path: String) throws(TowlineError) {
        let file = try ConfigurationFile(path)
        if let danger = file.danger {
            throw TowlineError(
                .unusableOption, "the configuration file \(file.name) \(danger). \(ConfigurationFile.advice)")
        }
        try self.init(yaml: file.text, name: file.name)
    }

    /// Reads the default configuration file, which `towd` reads without `--config`. `tow` does not read this file, so
    /// the file must not set the options that `tow` needs to find the service. A file that another user can change is
    /// not used.
    ///
    /// - Parameter warn: called with a message if the file is not used.
    /// - Throws: as `init(file:)`; also `unusableOption` if the file sets `state` or `socket`.
    package init(standardFile path: String, warn: (String) -> Void) throws(TowlineError) {
        let file = try ConfigurationFile(path)
        if let danger = file.danger {
            warn(
                "the configuration file \(file.name) \(danger), so its settings are not used. "
                    + ConfigurationFile.advice)
            self.init()
            return
        }
        try self.init(yaml: file.text, name: file.name)
        guard let key = state != nil ? "state" : socket != nil ? "socket" : nil else { return }
        throw TowlineError(
            .unusableOption,
            """
            \(TerminalSafeText.make(path)): the option '\(key)' is not allowed in this file, because tow does not read \
            the file and would not find towd. Use --\(key) with both tow and towd, or start towd with --config and \
            another file
            """)
    }

    init(yaml text: String, name: String) throws(TowlineError) {
        let value: Any?
        do { value = try Yams.load(yaml: text) } catch {
            throw TowlineError(
                .unusableOption,
                "the configuration file \(name) is not valid YAML: \(Self.reason(error))")
        }
        guard let value else { return }
        guard let members = value as? [String: Any] else {
            throw TowlineError(
                .unusableOption,
                "the configuration file \(name) is not valid: expected lines 'option: value', such as 'downloads: /srv/films'"
            )
        }
        for (key, value) in members.sorted(by: { $0.key < $1.key }) {
            if key == "allow-root" {
                guard let flag = value as? Bool else {
                    throw TowlineError(.unusableOption, "\(name): the value of 'allow-root' must be true or false")
                }
                allowsRoot = flag
                continue
            }
            // A port alone is a number in YAML.
            let values = (value as? [Any] ?? [value]).compactMap { $0 as? String ?? ($0 as? Int).map(String.init) }
            guard !values.isEmpty || (value as? [Any])?.isEmpty == true else {
                throw TowlineError(
                    .unusableOption, "\(name): the value of '\(key)' must be a string or a list of strings")
            }
            switch key {
            case "state": state = values.first
            case "downloads": downloads = values
            case "socket": socket = values.first
            case "listen": listen = values
            case "host": host = values
            case "private-addresses": privateAddresses = values.first
            default:
                throw TowlineError(
                    .unusableOption,
                    """
                    \(name): unknown option '\(TerminalSafeText.make(key))'. Valid options: state, downloads, socket, \
                    listen, host, private-addresses, allow-root
                    """)
            }
        }
    }

    /// Returns the message of an error of the YAML parser in one line, without its excerpt of the file.
    private static func reason(_ error: any Error) -> String {
        let text =
            switch error as? YamlError {
            case .duplicatedKeysInMapping(let keys, let context)?:
                "line \(context.mark.line): the option '\(keys.first ?? "")' is there more than once"
            case .scanner(_, let problem, let mark, _)?, .parser(_, let problem, let mark, _)?,
                .composer(_, let problem, let mark, _)?:
                "line \(mark.line): \(problem)"
            default: "\(error)".split(separator: "\n").first.map(String.init) ?? ""
            }
        return TerminalSafeText.make(text, width: 300)
    }

    /// Throws `unusableOption` if a path is empty: it would stand for the working directory.
    package func checkPaths() throws(TowlineError) {
        let downloads = downloads.contains("") ? "" : nil
        for (option, path) in [("state", state), ("downloads", downloads), ("socket", socket)] where path == "" {
            throw TowlineError(.unusableOption, "invalid value '' of the option \(option): expected a path")
        }
    }

    /// Returns these settings, with missing options taken from `other`.
    package func over(_ other: ServiceSettings) -> ServiceSettings {
        var result = self
        result.state = state ?? other.state
        result.socket = socket ?? other.socket
        result.privateAddresses = privateAddresses ?? other.privateAddresses
        result.allowsRoot = allowsRoot || other.allowsRoot
        if downloads.isEmpty { result.downloads = other.downloads }
        if listen.isEmpty { result.listen = other.listen }
        if host.isEmpty { result.host = other.host }
        return result
    }
}

/// A configuration file and its text.
private struct ConfigurationFile {
    /// The path for messages.
    let name: String
    let text: String
    /// How another user can change the file; `nil` if none can.
    let danger: String?

    static let advice = "Check its content, and then run chown and chmod go-w on the file"

    /// Reads a file. Follows links, because the settings of a user may be in a repository.
    init(_ path: String) throws(TowlineError) {
        name = TerminalSafeText.make(path)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: descriptor >= 0)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let bytes = try? file.readToEnd() ?? Data(), let text = String(bytes: bytes, encoding: .utf8)
        else {
            throw TowlineError(
                .unusableOption,
                "cannot read the configuration file \(name). Check that the file exists and is readable UTF-8 text")
        }
        self.text = text
        danger = Self.danger(status)
    }

    private static func danger(_ status: stat) -> String? {
        if status.st_uid != 0, status.st_uid != geteuid() { return "belongs to another user (\(status.st_uid))" }
        if status.st_mode & S_IWOTH != 0 { return "can be changed by every user" }
        if status.st_mode & S_IWGRP != 0, !isPrivate(status.st_gid) {
            return "can be changed by the users of a group (\(status.st_gid))"
        }
        return nil
    }

    /// Returns whether a group is the group of this user alone, with which files are created where each user has a
    /// group (`USERGROUPS_ENAB` in login.defs(5)). Their default mode has the write permission of the group.
    private static func isPrivate(_ group: gid_t) -> Bool {
        guard geteuid() != 0, group == getegid(), let user = getpwuid(geteuid()), let entry = getgrgid(group),
            strcmp(user.pointee.pw_name, entry.pointee.gr_name) == 0
        else { return false }
        return entry.pointee.gr_mem == nil || entry.pointee.gr_mem[0] == nil
    }
}
