import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

/// `tow service`.
struct ServiceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service",
        abstract: "Has systemd run towd, from login or boot on.",
        discussion: """
            Without it, 'tow add' starts towd where it does not run, and after a reboot it runs again with the next \
            'tow add'.
            """,
        subcommands: [
            ServiceInstallCommand.self, ServiceRemoveCommand.self, ServiceStatusCommand.self, ServiceStopCommand.self,
        ])
}

/// `tow service install`.
struct ServiceInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Writes a unit for systemd's user manager and starts towd by it.",
        discussion: """
            A towd that 'tow add' started ends in order, and what it was at goes on in the new one. Running it again \
            changes the options. systemd itself is not changed, and no root is needed.

            Examples:
              tow service install
              tow service install --downloads ~/Downloads --downloads /srv/films
              tow service install --host downloads.example.org --private-addresses nobody
            """)

    @Option(
        help: ArgumentHelp(
            "Downloads go here or below, and nowhere else; may be repeated. (default: as towd)", valueName: "dir"),
        completion: .directory)
    var downloads: [String] = []

    @Option(
        help: ArgumentHelp(
            "Serve the page here; may be repeated; 'none': nowhere. (default: as towd)", valueName: "host:port"))
    var listen: [String] = []

    @Option(
        help: ArgumentHelp(
            "A name under which the page may be reached, as that of a proxy; may be repeated.", valueName: "name"))
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            "Who may have files fetched from private networks: local, everybody, nobody. (default: as towd)",
            valueName: "who"),
        completion: .list(["local", "everybody", "nobody"]))
    var privateAddresses: String?

    @Option(
        help: ArgumentHelp("The program. (default: beside tow, else in PATH)", valueName: "path"), completion: .file())
    var towd: String?

    @Flag(help: "Print the unit, and do nothing.")
    var print = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        guard let program = towd.map({ ServiceOptions.absolute($0) }) ?? ServiceStarter.program() else {
            throw ServiceStarter.noProgram
        }
        let unit = ServiceUnit(program: program, arguments: arguments)
        var output = OutputDescriptor(STDOUT_FILENO)
        guard !print else { return output.write(unit.text) }
        guard access(program, X_OK) == 0 else {
            throw TowlineError(.commandFailed, "\(TerminalSafeText.make(program)) is no program that can be run")
        }
        try await Installation(service: service).install(unit)
        let file = TerminalSafeText.make(Installation.file.path)
        let when = UserManager.lingers ? "at boot" : "with your session"
        output.write("towd runs, and starts \(when) (\(file)).\n")
        if !UserManager.lingers {
            output.write("So that it starts at boot, without a login: \(UserManager.lingerCommand)\n")
        }
        if !listen.contains("none"), let page = try await page {
            // The key itself is not printed: terminals keep what they show.
            let token = TerminalSafeText.make(service.places.stateDirectory + "/token")
            output.write("The page: \(page); it asks for the token in \(token).\n")
        }
    }

    /// Where the page is, which `towd` serves a moment after the socket.
    private var page: String? {
        get async throws {
            for _ in 0..<20 {
                if let pages = try? await service.client.settings.pages, !pages.isEmpty {
                    return TerminalSafeText.make(pages.joined(separator: ", "))
                }
                try await Task.sleep(for: .milliseconds(50))
            }
            return nil
        }
    }

    /// What `towd` is told. systemd's manager does not see the environment of this shell, so that what that says of
    /// places is said outright.
    private var arguments: [String] {
        var arguments = downloads.flatMap { ["--downloads", ServiceOptions.absolute($0)] }
        arguments += listen.flatMap { ["--listen", $0] } + host.flatMap { ["--host", $0] }
        arguments += privateAddresses.map { ["--private-addresses", $0] } ?? []
        let hasState = service.state != nil || Environment.variables(["XDG_STATE_HOME"]).count > 0
        if hasState { arguments += ["--state", service.places.stateDirectory] }
        if hasState || service.socket != nil { arguments += ["--socket", service.places.socket] }
        return arguments
    }
}

/// `tow service remove`.
struct ServiceRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Stops towd and takes the unit away; the list and all files stay.")

    func run() async throws {
        try Installation.remove()
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write("towd is not started by systemd any more. The list and all files are where they were.\n")
    }
}

/// `tow service status`.
struct ServiceStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Tells whether towd runs, and whether systemd starts it.",
        discussion: "Exit status: 0 it runs; 1 it does not.")

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let manager = UserManager()
        let file = Installation.file
        let unit: String =
            switch file.state {
            case .absent: "none by 'tow service install'"
            case .ours: file.path
            case .foreign: file.path + ", not by 'tow service install'"
            }
        let settings = try? await service.client.settings
        let pages = settings?.pages ?? []
        let socket = service.places.socket
        let enabled = manager.word("is-enabled")
        let lines = [
            ("unit", unit), ("enabled", enabled), ("state", manager.word("is-active")),
            ("answers", settings.map { "towd \($0.version) at \(socket)" } ?? "nobody at \(socket)"),
            ("page", pages.isEmpty ? "nowhere" : pages.joined(separator: ", ")), ("at boot", atBoot(enabled: enabled)),
        ]
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(lines.map { DownloadLines.padded($0, 8) + "  " + TerminalSafeText.make($1) + "\n" }.joined())
        if settings == nil { throw ExitCode(ExitStatus.failed.rawValue) }
    }

    private func atBoot(enabled: String) -> String {
        guard enabled == "enabled" else { return "no: it is not enabled" }
        return UserManager.lingers ? "yes" : "no, at login: \(UserManager.lingerCommand) changes that"
    }
}

/// `tow service stop`.
struct ServiceStopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Stops towd, whatever started it; the list and all files stay.",
        discussion: "The next 'tow add' starts it again, and so does systemd where it is to, with the next session.")

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let wasRunning = try await Installation(service: service).stop()
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(wasRunning ? "towd stopped; what it was at goes on when it runs again.\n" : "towd does not run.\n")
    }
}
