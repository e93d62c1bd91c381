import Glibc
import TowlineClient
import TowlineCore
import TowlineWire

/// The installation of `towd` as a unit of systemd's user manager.
struct Installation {
    let service: ServiceOptions
    private let manager = UserManager()

    private static let interval = Duration.milliseconds(50)
    private static let patience = Duration.seconds(15)
    private static let commands = "systemctl --user daemon-reload && systemctl --user enable --now \(ServiceUnit.name)"

    static var file: UnitFile {
        let variables = Environment.variables(["XDG_CONFIG_HOME"])
        let given = variables["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return UnitFile(configurationHome: given ?? ServicePlaces.home + "/.config")
    }

    /// Writes the unit and has systemd start it. Returns when `towd` responds.
    ///
    /// - Returns: the unit that was written, without the restrictions that the system does not allow.
    /// - Throws: `commandFailed` with the remaining steps if the manager does not respond. The unit is written in this
    ///   case.
    func install(_ unit: ServiceUnit) async throws -> ServiceUnit {
        var unit = unit
        guard ProgramRun.run(["systemctl", "--version"]).status == 0 else {
            throw TowlineError(
                .commandFailed,
                """
                systemd is not available on this system. 'tow add URL' starts towd without systemd, and \
                'tow service install --print' prints the unit file
                """)
        }
        let file = Self.file
        guard file.kind != .foreign else {
            throw TowlineError(
                .destinationExists,
                """
                the unit file \(TerminalSafeText.make(file.path)) was not written by 'tow service install', so it was \
                not replaced. Move it away and run the command again
                """)
        }
        unit.usesNamespaces = unit.usesNamespaces && manager.allowsNamespaces(unit.program)
        try file.write(unit)
        do {
            try manager.reload()
        } catch {
            throw TowlineError(
                .commandFailed,
                """
                the unit file \(TerminalSafeText.make(file.path)) was written, but systemd's user manager could \
                not load it (\(error.reason)). In a login session of this user, run: \(Self.commands)
                """)
        }
        // A towd that was started in another way has locked the list, and a second one could not open it.
        if !manager.isActive { try await stop() }
        do {
            try manager.enable()
            try manager.restartIfRunning()
        } catch {
            throw TowlineError(
                .commandFailed,
                "systemd could not start towd: \(error.reason). For details, run: journalctl --user -u towd")
        }
        try await waitUntil(
            isRunning: true,
            "systemd started towd, but towd does not respond. Its log shows why: journalctl --user -u towd")
        return unit
    }

    /// Stops the `towd` that systemd runs, and removes the unit file.
    ///
    /// - Returns: `false` if there is no unit, and systemd does not run `towd`.
    static func remove() throws -> Bool {
        let file = file
        switch file.kind {
        case .absent: return try removePackaged(file)
        case .foreign:
            throw TowlineError(
                .destinationExists,
                """
                the unit file \(TerminalSafeText.make(file.path)) was not written by 'tow service install', so it was \
                not removed. Disable it with 'systemctl --user disable --now towd' and delete it
                """)
        case .ours: break
        }
        let manager = UserManager()
        do {
            try manager.disable()
        } catch {
            // Without a user manager, no towd runs under systemd.
            try file.remove()
            throw TowlineError(
                .commandFailed,
                """
                the unit file \(TerminalSafeText.make(file.path)) was removed, but systemd could not stop towd \
                (\(error.reason)). Stop towd with 'tow service stop'
                """)
        }
        try file.remove()
        try? manager.reload()
        return true
    }

    /// Disables and stops the unit of a package. Its file stays.
    private static func removePackaged(_ file: UnitFile) throws -> Bool {
        let manager = UserManager()
        guard file.isEnabled || manager.isActive else { return false }
        do {
            try manager.disable()
            return true
        } catch {
            throw TowlineError(
                .commandFailed,
                "systemd could not stop towd: \(error.reason). For details, run: systemctl --user status towd")
        }
    }

    /// Stops the running `towd`, however it was started. Downloads and the list are kept. The unit restarts `towd` only
    /// after a failure, and this is not a failure.
    ///
    /// - Returns: `false` if no `towd` was running.
    @discardableResult
    func stop() async throws -> Bool {
        // A towd that does not respond may still hold the lock, for example while it starts or ends.
        guard await service.client.isRunning || !Self.isFree(service.places.stateDirectory) else { return false }
        guard let process = Self.owner(of: service.places.stateDirectory) else {
            let state = TerminalSafeText.make(service.places.stateDirectory)
            guard !Self.isFree(service.places.stateDirectory) else {
                throw TowlineError(
                    .commandFailed,
                    """
                    the towd that listens on \(TerminalSafeText.make(service.places.socket)) does not use the state \
                    directory \(state). Give its state directory with --state
                    """)
            }
            throw TowlineError(
                .commandFailed,
                """
                the list of downloads in \(state) is in use, but the process of towd was not found. It may run in a \
                container, or another program may use the list. Stop it where it was started
                """)
        }
        kill(process, SIGTERM)
        let complaint = """
            towd (process \(process)) received SIGTERM but did not stop. End it with 'kill -KILL \(process)' and run \
            the command again
            """
        try await waitUntil(isRunning: false, complaint)
        // towd stops responding before it ends, and locks the list until it has ended.
        try await wait(complaint) { Self.isFree(service.places.stateDirectory) }
        return true
    }

    /// Returns whether no process has locked the list of downloads.
    private static func isFree(_ stateDirectory: String) -> Bool {
        let lock = open(stateDirectory + "/registry.lock", O_RDONLY | O_CLOEXEC)
        guard lock >= 0 else { return errno == ENOENT }
        defer { close(lock) }
        return flock(lock, LOCK_EX | LOCK_NB) == 0
    }

    /// Returns the process ID of the `towd` that has locked the list, from the registry's lock file; `nil` if it
    /// was not found. The number of a process that has ended stays in the file.
    static func owner(of stateDirectory: String) -> pid_t? {
        guard !isFree(stateDirectory),
            let text = TextFile.read(stateDirectory + "/registry.lock", limit: 4096),
            let process = text.split(separator: " ").first.flatMap({ pid_t($0) }), process > 1,
            TextFile.read("/proc/\(process)/comm", limit: 64) == "towd\n"
        else { return nil }
        return process
    }

    private func waitUntil(isRunning: Bool, _ complaint: String) async throws {
        try await wait(complaint) { await service.client.isRunning == isRunning }
    }

    private func wait(_ complaint: String, until isSo: () async -> Bool) async throws {
        let end = ContinuousClock.now + Self.patience
        while await !isSo() {
            guard ContinuousClock.now < end else { throw TowlineError(.commandFailed, complaint) }
            try await Task.sleep(for: Self.interval)
        }
    }
}
