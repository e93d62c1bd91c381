import ArgumentParser
import Foundation
import Towline
import TowlineService
import TowlineWire

/// The service.
@main
struct Towd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "towd",
        abstract: "Downloads in the background, with a web page to watch.",
        discussion: """
            'tow add URL' starts it when it does not run. It listens at a Unix socket, for tow, and at 127.0.0.1:6880, \
            for the page. Everything that is asked of it is kept: after a kill or a reboot it goes on.

            Options can be written into a YAML file under the same names; those given here win.

            Exit status: 0 stopped in order; 2 usage; 6 a directory cannot be used; 9 another towd has the state \
            directory.
            """,
        version: "towd " + TowlineVersion.text)

    @Option(
        help: ArgumentHelp("Keep the list here. (default: $XDG_STATE_HOME/towline)", valueName: "dir"),
        completion: .directory)
    var state: String?

    @Option(
        help: ArgumentHelp(
            "Downloads go here or below, and nowhere else; may be repeated. (default: ~/Downloads)", valueName: "dir"),
        completion: .directory)
    var downloads: [String] = []

    @Option(
        help: ArgumentHelp("The socket for tow. (default: $XDG_RUNTIME_DIR/towline/towd.sock)", valueName: "path"),
        completion: .file())
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "Serve the page here; may be repeated; 'none': nowhere. (default: 127.0.0.1:6880)",
            valueName: "host:port"))
    var listen: [String] = []

    @Option(help: ArgumentHelp("A name under which the page may be reached; may be repeated.", valueName: "name"))
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Who may have files fetched from this machine and from private networks: local (clients on this machine), \
            everybody, nobody. Others' downloads go to public addresses alone, through no proxy. (default: local)
            """,
            valueName: "who"))
    var privateAddresses: String?

    @Option(
        help: ArgumentHelp("Read options from here. (default: ~/.config/towline/towd.yaml)", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    static func main() {
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

    /// What is to be served, of options, file and defaults.
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
        let standard = ServicePlaces(environment: environment, home: home).configurationFile
        if let config {
            given = given.over(try ServiceSettings(file: config))
        } else if FileManager.default.fileExists(atPath: standard) {
            given = given.over(try ServiceSettings(standardFile: standard))
        }
        let places = ServicePlaces(
            environment: environment, home: home, state: given.state.map { Self.absolute($0, home) })
        let roots = given.downloads.isEmpty ? [places.downloadsDirectory] : given.downloads
        var configuration = ServiceConfiguration(
            stateDirectory: URL(fileURLWithPath: places.stateDirectory, isDirectory: true),
            downloadsDirectories: roots.map { URL(fileURLWithPath: Self.absolute($0, home), isDirectory: true) },
            socket: URL(fileURLWithPath: given.socket.map { Self.absolute($0, home) } ?? places.socket),
            addresses: try Self.addresses(given.listen))
        configuration.hostNames = given.host
        if let who = given.privateAddresses {
            guard let policy = PrivateAddresses(rawValue: who) else {
                throw TowlineError(
                    .unusableOption,
                    "--private-addresses: local, everybody or nobody, not \(TerminalSafeText.make(who))")
            }
            configuration.privateAddresses = policy
        }
        return configuration
    }

    private static func addresses(_ texts: [String]) throws(TowlineError) -> [ListenAddress] {
        if texts.isEmpty { return [.standard] }
        if texts == ["none"] { return [] }
        var addresses: [ListenAddress] = []
        for text in texts {
            guard let address = ListenAddress(text) else {
                throw TowlineError(.unusableOption, "--listen: host:port, not \(TerminalSafeText.make(text))")
            }
            addresses.append(address)
        }
        return addresses
    }

    private static func absolute(_ path: String, _ home: String) -> String {
        let path = path == "~" || path.hasPrefix("~/") ? home + path.dropFirst() : path
        return URL(fileURLWithPath: path).standardizedFileURL.path
    }
}
