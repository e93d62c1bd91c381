import ArgumentParser
import Glibc
import TowlineCore
import TowlineWire

struct ServiceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service",
        abstract: "Run towd as a systemd user service that starts at login or boot.",
        discussion: """
            Without this service, 'tow add' starts towd if it is not running. After a reboot, towd then runs again \
            with the next 'tow add'.
            """,
        subcommands: [
            ServiceInstallCommand.self, ServiceRemoveCommand.self, ServiceStatusCommand.self, ServiceStartCommand.self,
            ServiceStopCommand.self,
        ])
}

struct ServiceStartCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Start towd now, with systemd if the unit is installed. Paused downloads stay paused.",
        discussion: "'tow add' and 'tow page' also start towd if it is not running.")

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let wasRunning = await service.client.isRunning
        if !wasRunning { try await service.starter.start { service.client } }
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(
            "\(wasRunning ? "towd is already running." : "towd is running.") \(try await service.pageNotice)\n")
    }
}

struct ServiceInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install a systemd user unit for towd and start it.",
        discussion: """
            A running towd is stopped first, and the new one resumes its downloads. Run the command again to change \
            the options. Root is not needed, and the system-wide configuration of systemd is not changed.

            Examples:
              tow service install
              tow service install --downloads ~/Downloads --downloads /srv/films
              tow service install --host downloads.example.org --private-addresses nobody
            """)

    @Option(
        help: ArgumentHelp(
            """
            Allow downloads only in this directory and its subdirectories. May be repeated. (default: the setting in \
            ~/.config/towline/towd.yaml, else ~/Downloads)
            """, valueName: "dir"),
        completion: .directory)
    var downloads: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Address and port of the web page and API; a port alone is a port of 127.0.0.1; 'none' turns them off. May \
            be repeated. (default: the setting in ~/.config/towline/towd.yaml, else 127.0.0.1:6880)
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
            machine), everybody, nobody. (default: the setting in ~/.config/towline/towd.yaml, else local)
            """, valueName: "who"),
        completion: .list(["local", "everybody", "nobody"]))
    var privateAddresses: String?

    @Option(
        help: ArgumentHelp(
            "Path of the towd program. (default: in the directory of tow, then in PATH)", valueName: "path"),
        completion: .file())
    var towd: String?

    @Flag(help: "Print the unit file without installing it.")
    var print = false

    @Flag(help: "Leave out the restrictions that need user namespaces, which some systems forbid.")
    var noNamespaces = false

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func validate() throws {
        try ServiceOptions.check("--downloads", downloads)
        try ServiceOptions.check("--towd", [towd])
    }

    func run() async throws {
        guard let program = towd.map({ ServiceOptions.absolute($0) }) ?? ServiceStarter.program() else {
            throw ServiceStarter.noProgram
        }
        let unit = ServiceUnit(program: program, arguments: arguments, usesNamespaces: !noNamespaces)
        var output = OutputDescriptor(STDOUT_FILENO)
        guard !print else { return output.write(unit.text) }
        guard access(program, X_OK) == 0 else {
            throw TowlineError(
                .commandFailed,
                "\(TerminalSafeText.make(program)) is not an executable file. Give the path of towd with --towd")
        }
        let installed = try await Installation(service: service).install(unit)
        let file = TerminalSafeText.make(Installation.file.path)
        let start = UserManager.lingers ? "systemd starts towd at boot." : "systemd starts towd when you log in."
        output.write("towd is running. \(start) The unit file is \(file).\n")
        if installed != unit {
            output.write(
                """
                This system does not allow user namespaces, so the unit does not restrict access to files and devices.

                """)
        }
        if !UserManager.lingers {
            output.write("To start towd at boot, without a login, run: \(UserManager.lingerCommand)\n")
        }
        let pages = listen.contains("none") ? [] : try await service.pages
        if !pages.isEmpty {
            // The token itself is not printed: terminals keep their output.
            let token = TerminalSafeText.make(service.places.stateDirectory + "/token")
            let page = TerminalSafeText.make(pages.joined(separator: ", "))
            output.write("The web page is \(page). Its access token is in the file \(token).\n")
        }
    }

    /// The arguments for `towd`. systemd's manager does not see the environment of this shell, so paths that depend on
    /// it are passed explicitly.
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

struct ServiceRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: """
            Stop towd, however it was started, and remove its systemd unit. The list of downloads and all files are \
            kept.
            """)

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let hadUnit = try Installation.remove()
        guard try await Installation(service: service).stop() || hadUnit else {
            let file = TerminalSafeText.make(Installation.file.path)
            throw TowlineError(
                .commandFailed,
                "there is nothing to remove: the unit file \(file) does not exist, and towd is not running")
        }
        var output = OutputDescriptor(STDOUT_FILENO)
        let result = hadUnit ? "systemd no longer starts towd" : "towd stopped. It had no systemd unit"
        output.write("\(result). The list of downloads and all files are kept.\n")
    }
}

struct ServiceStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show whether towd is running and whether systemd starts it.",
        discussion: "Exit status: 0 if towd is running; 1 if it is not.")

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let manager = UserManager()
        let file = Installation.file
        let unit: String =
            switch file.kind {
            case .absent: "none installed by 'tow service install'"
            case .ours: file.path
            case .foreign: "\(file.path) (not written by 'tow service install')"
            }
        let client = service.client
        // Without this question, a process that does not respond costs a minute.
        let settings: Wire.Settings? = if await client.isRunning { try? await client.settings } else { nil }
        let pages = settings?.pages ?? []
        let socket = service.places.socket
        // The process may have just started, it may be stopped (SIGSTOP), or its socket is gone.
        let holder = Installation.owner(of: service.places.stateDirectory).map { ", but process \($0) is towd" } ?? ""
        var lines = [
            ("running", settings.map { "yes: towd \($0.version) at \(socket)" } ?? "no response at \(socket)\(holder)"),
            ("page", pages.isEmpty ? "none" : pages.joined(separator: ", ")), ("unit", unit),
        ]
        if let absence = manager.absence {
            lines.append(("systemd", absence))
            lines.append(("at boot", "no. 'tow add' and 'tow service start' start towd"))
        } else {
            let enabled = manager.word("is-enabled")
            lines += [
                ("enabled", enabled), ("state", manager.word("is-active")), ("at boot", atBoot(enabled: enabled)),
            ]
        }
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(lines.map { DownloadLines.padded($0, 8) + "  " + TerminalSafeText.make($1) + "\n" }.joined())
        if settings == nil { throw ExitCode(ExitStatus.failed.rawValue) }
    }

    private func atBoot(enabled: String) -> String {
        guard enabled == "enabled" else {
            return "no, because the unit is not enabled. 'tow service install' enables it"
        }
        if UserManager.lingers { return "yes" }
        return "no, only at login. To start towd at boot, run: \(UserManager.lingerCommand)"
    }
}

struct ServiceStopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Stop towd, however it was started. The list of downloads and all files are kept.",
        discussion: """
            The next 'tow add' starts towd again. If the unit is enabled, systemd also starts towd at the next login \
            or boot.
            """)

    @OptionGroup(title: "Service")
    var service: ServiceOptions

    func run() async throws {
        let wasRunning = try await Installation(service: service).stop()
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(
            wasRunning ? "towd stopped. Its downloads resume when it runs again.\n" : "towd is not running.\n"
        )
    }
}
