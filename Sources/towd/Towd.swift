import ArgumentParser
import CTowline
import Foundation
import Towline
import TowlineService
import TowlineWire

/// The command `towd`.
@main
struct Towd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "towd",
        abstract: "Download files in the background, with a web page and an HTTP API.",
        discussion: """
            'tow add URL' starts towd if it is not running. towd listens on a Unix socket for tow, and on \
            127.0.0.1:6880 for the web page and the API. The list of downloads is saved on disk: after a kill or a \
            reboot, towd resumes the downloads.

            Options can also be set in a YAML file under the same names. Options on the command line take precedence.

            Exit status: 0 stopped normally; 2 error in the command line or configuration file; 6 a directory or \
            address cannot be used; 9 another towd uses the state directory; 78 wrong permissions of a directory, or a \
            list of a newer version.
            """,
        version: "towd " + TowlineVersion.text)

    @Option(
        help: ArgumentHelp(
            """
            Directory of the list of downloads, the access token, the sessions and the log. (default: \
            $XDG_STATE_HOME/towline or ~/.local/state/towline)
            """, valueName: "dir"),
        completion: .directory)
    var state: String?

    @Option(
        help: ArgumentHelp(
            """
            Allow downloads only in this directory and its subdirectories. May be repeated; the first one is used \
            for downloads without a directory. (default: those of the last start with this option, or ~/Downloads)
            """, valueName: "dir"),
        completion: .directory)
    var downloads: [String] = []

    @Option(
        help: ArgumentHelp(
            "Unix socket on which towd listens for tow. (default: $XDG_RUNTIME_DIR/towline/towd.sock)",
            valueName: "path"),
        completion: .file())
    var socket: String?

    @Option(
        help: ArgumentHelp(
            """
            Address and port of the web page and API; a port alone is a port of 127.0.0.1; 'none' turns them off. May \
            be repeated. (default: 127.0.0.1:6880)
            """, valueName: "host:port"))
    var listen: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Additional name under which the web page may be opened, for example behind a reverse proxy: a host name, \
            or the URL of the page if the proxy changes the Host header field or its port. May be repeated.
            """, valueName: "name-or-url"))
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Clients that may download from addresses of this machine and of private networks: local (clients on this \
            machine), everybody, nobody. Other clients can download from public addresses only, without a proxy. \
            (default: local)
            """,
            valueName: "who"))
    var privateAddresses: String?

    @Flag(help: "Confirm that towd may run as root. Without this option, it warns at each start as root.")
    var allowRoot = false

    @Option(
        help: ArgumentHelp(
            "Read options from this YAML file. (default: ~/.config/towline/towd.yaml)", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    static func main() {
        // The memory contains the access token and the credentials of downloads.
        towline_protect_memory()
        let words = CommandLine.arguments.dropFirst()
        // Only for `--version`: a query of the SQLite version starts threads, which Landlock would not limit.
        if words.first == "--version" {
            let limits =
                words.contains("-v")
                ? "\n" + ProcessLimits.test(protectsMemory: towline_memory_is_protected() == 1) : ""
            print(configuration.version + "\n" + ProcessLimits.libraries + limits)
            Foundation.exit(0)
        }
        do {
            let command = try parseAsRoot()
            guard let towd = command as? Towd else {
                var command = command
                return try command.run()
            }
            Daemon.serve(towd)
        } catch {
            let status = exitCode(for: error)
            let text = fullMessage(for: error) + "\n"
            FileHandle(fileDescriptor: status.isSuccess ? 1 : 2).write(Data(text.utf8))
            Foundation.exit(status == .validationFailure ? ExitStatus.usage.rawValue : status.rawValue)
        }
    }

    /// Returns the configuration from the options, the configuration file and the defaults, in this order of
    /// precedence.
    func serviceConfiguration() throws(TowlineError) -> ServiceConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? NSHomeDirectory()
        var given = ServiceSettings()
        given.state = state
        given.downloads = downloads
        given.socket = socket
        given.listen = listen
        given.host = host
        given.privateAddresses = privateAddresses
        given.allowsRoot = allowRoot
        let standard = ServicePlaces(environment: environment, home: home).configurationFile
        if let config {
            given = given.over(try ServiceSettings(file: Self.absolute(config, home)))
        } else if FileManager.default.fileExists(atPath: standard) {
            given = given.over(try ServiceSettings(standardFile: standard) { Daemon.say($0) })
        }
        try given.checkPaths()
        let places = ServicePlaces(
            environment: environment, home: home, state: given.state.map { Self.absolute($0, home) }
        ) { path in
            let owner = try? FileManager.default.attributesOfItem(atPath: path)[.ownerAccountID] as? NSNumber
            return owner.map { $0.uint32Value != geteuid() } ?? false
        }
        let remembered =
            given.downloads.isEmpty ? try RememberedDirectories(in: places.stateDirectory).read() : given.downloads
        let roots = remembered.isEmpty ? [places.downloadsDirectory] : remembered
        var configuration = ServiceConfiguration(
            stateDirectory: URL(fileURLWithPath: places.stateDirectory, isDirectory: true),
            downloadsDirectories: roots.map { URL(fileURLWithPath: Self.absolute($0, home), isDirectory: true) },
            socket: URL(fileURLWithPath: given.socket.map { Self.absolute($0, home) } ?? places.socket),
            addresses: try Self.addresses(given.listen))
        if !downloads.isEmpty {
            configuration.downloadsOrigin = .commandLine
        } else if given.downloads.isEmpty, !remembered.isEmpty {
            configuration.downloadsOrigin = .remembered
        }
        configuration.hostNames = try Self.names(given.host)
        configuration.allowsRoot = given.allowsRoot
        if let who = given.privateAddresses {
            guard let policy = PrivateAddresses(rawValue: who) else {
                throw TowlineError(
                    .unusableOption,
                    """
                    invalid value '\(TerminalSafeText.make(who))' of the option private-addresses: expected local, \
                    everybody or nobody
                    """)
            }
            configuration.privateAddresses = policy
        }
        return configuration
    }

    private static func names(_ texts: [String]) throws(TowlineError) -> [String] {
        if let text = texts.first(where: { ServedName($0) == nil }) {
            throw TowlineError(
                .unusableOption,
                """
                invalid value '\(TerminalSafeText.make(text))' of the option host: expected a name, NAME:PORT, or the \
                URL of the page, such as https://nas.example:8443. An IPv6 address needs brackets: [fd00::1]
                """)
        }
        return texts
    }

    private static func addresses(_ texts: [String]) throws(TowlineError) -> [ListenAddress] {
        if texts.isEmpty { return [.standard] }
        if texts.contains("none") {
            guard Set(texts).count == 1 else {
                throw TowlineError(
                    .unusableOption,
                    "invalid value 'none' of the option listen: it turns the web page off, so it excludes addresses")
            }
            return []
        }
        var addresses: [ListenAddress] = []
        for text in texts {
            guard let address = ListenAddress(text) else {
                throw TowlineError(
                    .unusableOption,
                    """
                    invalid value '\(TerminalSafeText.make(text))' of the option listen: expected HOST:PORT or a port, \
                    such as 127.0.0.1:6880, 0.0.0.0:6880 (all addresses), [::1]:6880 or 6880
                    """)
            }
            addresses.append(address)
        }
        return addresses
    }

    /// The working directory at the start, which `Daemon` leaves.
    private static let workingDirectory = URL(
        fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)

    private static func absolute(_ path: String, _ home: String) -> String {
        let path = path == "~" || path.hasPrefix("~/") ? home + path.dropFirst() : path
        return URL(fileURLWithPath: path, relativeTo: workingDirectory).standardizedFileURL.path
    }
}
