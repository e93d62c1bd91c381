import CTowline
import Glibc
package import TowlineCore
internal import TowlineThreads

/// A runner of programs after a download. Commands never pass through a shell: a file name from a server is one
/// argument, regardless of its characters.
package struct CommandRunner: Sendable {
    /// The way a command ended.
    package enum End: Hashable, Sendable {
        /// The command exited with this status.
        case exited(Int32)
        /// This signal ended the command.
        case killed(Int32)
        /// The command was stopped at its time limit or because of a cancellation.
        case timedOut
    }

    /// The result of a command.
    package struct Outcome: Hashable, Sendable {
        /// The way the command ended.
        package let end: End
        /// The end of its standard output and standard error together, at most `CommandRunner.tailLength` bytes.
        package let tail: [UInt8]
        /// Returns whether the command exited with status 0.
        package var succeeded: Bool { end == .exited(0) }
    }

    /// The maximum number of output bytes that are kept.
    package static let tailLength = 64 << 10

    private let timeLimit: Duration
    private let grace: Duration

    /// - Parameter timeLimit: the time after which the process group of the command gets SIGTERM.
    /// - Parameter grace: the time from SIGTERM to SIGKILL for processes of the group that still run.
    package init(timeLimit: Duration = .seconds(3600), grace: Duration = .seconds(5)) {
        self.timeLimit = timeLimit
        self.grace = grace
    }

    /// Runs the program `arguments[0]` with the other arguments and waits for its end, on a separate thread.
    ///
    /// The program runs in a new process group, has no input, and inherits only the descriptors of its output. Its
    /// working directory is `/`, because many programs read settings or code from their working directory, and the
    /// download directory contains files from servers. The environment contains only the `inherited` variables.
    /// Background processes of the program may stay, unless a time limit or a cancellation ends its process group.
    ///
    /// - Throws: `commandFailed` if the program cannot be started; `cancelled` if the task was cancelled. A failed exit
    ///   status is not an error.
    package func run(_ arguments: [String]) async throws(TowlineError) -> Outcome {
        guard let program = arguments.first, !program.isEmpty, !arguments.contains(where: { $0.utf8.contains(0) })
        else {
            throw TowlineError(
                .commandFailed,
                "the follow-up program was not run because its path is empty or an argument contains a NUL character. "
                    + "Correct the command of the download")
        }
        let (timeLimit, grace) = (timeLimit, grace)
        return try await WorkThread.run { (flag) throws(TowlineError) in
            try flag.check(program)
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw Self.failure(program, errno) }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            let environment = Self.inherited.compactMap { name in
                getenv(name).map { "\(name)=\(String(cString: $0))" }
            }
            let process = ChildProcess.start(
                arguments, environment: environment, output: ends[1], directory: "/", group: .new)
            Glibc.close(ends[1])
            guard process > 0 else {
                Glibc.close(ends[0])
                throw Self.failure(program, -process)
            }
            var child = RunningCommand(process: process, output: ends[0], timeLimit: timeLimit, grace: grace)
            let outcome = child.wait(flag)
            if flag.isSet, outcome.end == .timedOut {
                throw TowlineError(.cancelled, "the follow-up program \(program) was cancelled and stopped")
            }
            return outcome
        }
    }

    private static func failure(_ program: String, _ number: Int32) -> TowlineError {
        let reason = String(cString: strerror(number))
        return TowlineError(
            .commandFailed,
            "the follow-up program \(program) cannot be started: \(reason). "
                + "Correct the cause, then retry the download to run only this program again",
            systemError: number)
    }

    /// The environment variables that a program inherits if they are set: the user, the locale and the desktop session.
    /// Other variables may contain secrets.
    package static let inherited = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
        "LC_COLLATE",
        "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY",
        "WAYLAND_DISPLAY", "XAUTHORITY",
    ]
}

/// A running command. Used on one thread, which sleeps until output arrives and checks every 100 ms for the end.
private struct RunningCommand {
    let process: Int32
    let output: Int32
    let deadline: ContinuousClock.Instant
    let grace: Duration
    private var tail: [UInt8] = []
    private var isOpen = true
    /// The time when SIGKILL follows; `nil` before SIGTERM was sent.
    private var killAt: ContinuousClock.Instant?
    /// The next delay between two checks for the end, in milliseconds, after the process closed its output.
    private var pause: Int32 = 1

    init(process: Int32, output: Int32, timeLimit: Duration, grace: Duration) {
        self.process = process
        self.output = output
        self.grace = grace
        deadline = .now + timeLimit
    }

    mutating func wait(_ flag: CancelFlag) -> CommandRunner.Outcome {
        defer { Glibc.close(output) }
        var code: Int32 = 0
        var status: Int32 = 0
        while true {
            let found = towline_peek_end(process, &code, &status)
            if found > 0 { break }
            // Other code in this process has already waited for the child.
            if found < 0, found != -EINTR { return outcome(.exited(-1)) }
            end(flag)
            sleep()
        }
        readAll()
        // The system cannot reuse the group number before `waitpid`, so this signal reaches only this group.
        if killAt != nil { kill(-process, SIGKILL) }
        var ignored: Int32 = 0
        while waitpid(process, &ignored, 0) < 0, errno == EINTR {}
        if killAt != nil { return outcome(.timedOut) }
        return outcome(code == Int32(CLD_EXITED) ? .exited(status) : .killed(status))
    }

    private func outcome(_ end: CommandRunner.End) -> CommandRunner.Outcome {
        CommandRunner.Outcome(end: end, tail: tail.suffix(CommandRunner.tailLength))
    }

    /// Stops the command at its time limit or if the task was cancelled.
    private mutating func end(_ flag: CancelFlag) {
        if let killAt {
            if .now >= killAt { kill(-process, SIGKILL) }
        } else if flag.isSet || .now >= deadline {
            killAt = .now + grace
            kill(-process, SIGTERM)
        }
    }

    private mutating func sleep() {
        guard isOpen else {
            _ = poll(nil, 0, pause)
            pause = min(pause * 2, 100)
            return
        }
        var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        if poll(&watched, 1, 100) > 0 { readAll() }
    }

    private mutating func readAll() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        // The limit lets the caller check the time even if the command writes without end.
        for _ in 0..<64 where isOpen {
            let count = read(output, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else {
                isOpen = false
                return
            }
            tail += buffer[..<count]
            if tail.count > 4 * CommandRunner.tailLength { tail = tail.suffix(CommandRunner.tailLength) }
        }
    }
}
