import CTowline
import Glibc
package import TowlineCore
internal import TowlineThreads

/// Runs a command after a download: a program and its arguments, never a line for a shell. A name that a server chose
/// is one argument, whatever is in it.
package struct CommandRunner: Sendable {
    /// How a command ended.
    package enum End: Hashable, Sendable {
        /// It ended by itself.
        case exited(Int32)
        /// A signal ended it.
        case killed(Int32)
        /// It was ended because it took too long.
        case timedOut
    }

    /// What a command did.
    package struct Outcome: Hashable, Sendable {
        /// How it ended.
        package let end: End
        /// The last of what it wrote, both outputs together, at most `CommandRunner.tailLength` bytes.
        package let tail: [UInt8]
        /// It ended with status 0.
        package var succeeded: Bool { end == .exited(0) }
    }

    /// So much is kept of what a command writes.
    package static let tailLength = 64 << 10

    private let timeLimit: Duration
    private let grace: Duration

    /// - Parameter timeLimit: a command that runs longer gets SIGTERM, it and all it started.
    /// - Parameter grace: what is still there so long after SIGTERM gets SIGKILL.
    package init(timeLimit: Duration = .seconds(3600), grace: Duration = .seconds(5)) {
        self.timeLimit = timeLimit
        self.grace = grace
    }

    /// Runs `arguments[0]` with the rest as its arguments and waits for its end, on a thread of its own.
    ///
    /// It leads a process group of its own, reads nothing, and inherits no descriptor but those it writes to. Its
    /// working directory is `/`: many programs take their settings, or code, from the directory they are started in,
    /// and that of the download holds files of servers. Of the environment it gets `inherited` only. What it leaves in
    /// the background may stay, unless it ran out of time or was cancelled: then its group goes with it.
    ///
    /// - Throws: `commandFailed` if it cannot be started, `cancelled` if the task was. A command that ran and failed
    ///   is no error here.
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
            let process = Self.spawn(arguments, ends[1])
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

    /// The variables that a program gets, as far as they are set: who and where the user is, and how to reach the
    /// desktop. Ours may hold secrets of any kind.
    package static let inherited = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
        "LC_COLLATE",
        "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY",
        "WAYLAND_DISPLAY", "XAUTHORITY",
    ]

    private static func spawn(_ arguments: [String], _ output: Int32) -> Int32 {
        let environment = inherited.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
        let words = pointers(to: arguments)
        let variables = pointers(to: environment)
        defer { (words + variables).forEach { free($0) } }
        return towline_spawn(words, variables, output)
    }

    private static func pointers(to texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }
}

/// A command under way. Used on one thread, which sleeps until there is output, and looks now and then for an end.
private struct RunningCommand {
    let process: Int32
    let output: Int32
    let deadline: ContinuousClock.Instant
    let grace: Duration
    private var tail: [UInt8] = []
    private var isOpen = true
    /// When SIGKILL follows on SIGTERM.
    private var killAt: ContinuousClock.Instant?
    /// A process says so at its end; one that only closes its output does not.
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
            // Somebody else in this process took its end.
            if found < 0, found != -EINTR { return outcome(.exited(-1)) }
            end(flag)
            sleep()
        }
        readAll()
        // While it is not yet waited for, the group's number is nobody else's.
        if killAt != nil { kill(-process, SIGKILL) }
        var ignored: Int32 = 0
        while waitpid(process, &ignored, 0) < 0, errno == EINTR {}
        if killAt != nil { return outcome(.timedOut) }
        return outcome(code == Int32(CLD_EXITED) ? .exited(status) : .killed(status))
    }

    private func outcome(_ end: CommandRunner.End) -> CommandRunner.Outcome {
        CommandRunner.Outcome(end: end, tail: tail.suffix(CommandRunner.tailLength))
    }

    /// Ends it if its time is over or nobody waits for it any more.
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
        // A bound, since one that writes without end would keep us from looking at the clock.
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
