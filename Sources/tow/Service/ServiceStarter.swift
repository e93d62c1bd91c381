import Glibc
import TowlineClient
import TowlineCore
import TowlineThreads
import TowlineWire

/// A starter of `towd`, detached from this terminal.
struct ServiceStarter {
    let places: ServicePlaces
    /// The arguments for `towd`: the state directory and the socket, if they were given.
    let arguments: [String]

    private static let interval = Duration.milliseconds(20)
    private static let patience = Duration.seconds(15)

    /// Starts `towd` and waits until it responds. Throws `commandFailed` if `towd` is not found or does not start; the
    /// message says what to do or contains the last line of its log.
    ///
    /// - Parameter client: returns the client for the current socket, which a started `towd` may have changed.
    func start(_ client: () -> ServiceClient) async throws {
        if try await startByManager(client) { return }
        guard let program = Self.program() else { throw Self.noProgram }
        var process = try spawn(program)
        var waitsSince: ContinuousClock.Instant?
        let end = ContinuousClock.now + Self.patience
        while ContinuousClock.now < end {
            if await client().isRunning { return }
            var status: Int32 = 0
            if waitpid(process, &status, WNOHANG) == process {
                // If two start at once, one of them locks the state directory, and either one will do.
                guard Self.exitStatus(status) == ExitStatus.destinationBusy.rawValue else { throw failure() }
                waitsSince = .now
            }
            // If no towd responds after that, the other one was just ending.
            if let since = waitsSince, .now - since > .milliseconds(500) {
                process = try spawn(program)
                waitsSince = nil
            }
            try await Task.sleep(for: Self.interval)
        }
        throw failure()
    }

    /// Has systemd start `towd` if the unit is enabled, so that no second `towd` runs besides that of systemd.
    ///
    /// - Returns: `true` if `towd` responds now.
    private func startByManager(_ client: () -> ServiceClient) async throws -> Bool {
        // With arguments, another service than that of the unit is meant.
        guard arguments.isEmpty, Installation.file.isEnabled, (try? UserManager().start()) != nil else { return false }
        let end = ContinuousClock.now + Self.patience
        while ContinuousClock.now < end {
            if await client().isRunning { return true }
            try await Task.sleep(for: Self.interval)
        }
        return false
    }

    /// The error for a missing `towd` program.
    static let noProgram = TowlineError(
        .commandFailed,
        "towd was not found, neither in the directory of tow nor in PATH. Install both with 'make install-service'")

    private static func exitStatus(_ status: Int32) -> Int32? { status & 0x7F == 0 ? status >> 8 & 0xFF : nil }

    private func failure() -> TowlineError {
        let log = TerminalSafeText.make(places.log)
        let lines = TextFile.read(places.log, limit: 1 << 20)?.split(separator: "\n") ?? []
        guard let last = lines.last else {
            return TowlineError(.commandFailed, "towd did not start. See its log file \(log)")
        }
        let line = TerminalSafeText.make(String(last), width: 300)
        return TowlineError(.commandFailed, "towd did not start. The last line of its log file \(log) is: \(line)")
    }

    /// Returns the path of `towd` in the directory of this program, else in `PATH`. `nil` if it is not found.
    static func program() -> String? {
        var candidates: [String] = []
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        if length > 0 {
            let own = String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if let slash = own.lastIndex(of: "/") { candidates.append(own[..<slash] + "/towd") }
        }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
        for directory in path.split(separator: ":") where directory.hasPrefix("/") {
            candidates.append(directory + "/towd")
        }
        return candidates.first { access($0, X_OK) == 0 }
    }

    private func spawn(_ program: String) throws -> pid_t {
        try makeStateDirectory()
        let log = open(places.log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        // towd must outlive this terminal.
        let process = log < 0 ? -errno : ChildProcess.start([program] + arguments, output: log, group: .newSession)
        close(log)
        guard process > 0 else {
            throw TowlineError(
                .commandFailed,
                "cannot start towd (\(TerminalSafeText.make(program))): \(String(cString: strerror(-process)))")
        }
        return process
    }

    /// Creates the directory for the log, which is opened before `towd` starts.
    private func makeStateDirectory() throws {
        var path = ""
        for component in places.stateDirectory.split(separator: "/") {
            path += "/" + component
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw TowlineError(
                    .unusableDestination,
                    """
                    cannot create the directory \(TerminalSafeText.make(path)) for the state of towd: \
                    \(String(cString: strerror(errno))). Check the permissions, or choose another directory with --state
                    """)
            }
        }
    }
}
