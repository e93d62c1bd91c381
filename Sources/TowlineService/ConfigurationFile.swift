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
    /// - Throws: `unusableOption` if the content is invalid or the file cannot be read.
    package init(file path: String) throws(TowlineError) {
        let name = TerminalSafeText.make(path)
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw TowlineError(
                .unusableOption,
                "cannot read the configuration file \(name). Check that the file exists and is readable UTF-8 text")
        }
        try self.init(yaml: text, name: name)
    }

    /// Reads the default configuration file, which `towd` reads without `--config`. `tow` does not read this file, so
    /// the file must not set the options that `tow` needs to find the service.
    ///
    /// - Throws: as `init(file:)`; also `unusableOption` if the file sets `state` or `socket`.
    package init(standardFile path: String) throws(TowlineError) {
        try self.init(file: path)
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
