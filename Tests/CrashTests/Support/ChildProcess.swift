import Glibc
import Synchronization

/// A program of the build or of the system that runs during a test.
final class ChildProcess: Sendable {
    /// The way the program ended, and its output.
    struct Ending: Sendable {
        /// The exit status; `nil` if a signal ended the program.
        var status: Int32?
        /// The signal that ended the program; `nil` if the program exited.
        var signal: Int32?
        /// The text that the program wrote to standard output and standard error.
        var output: String
        /// `true` if the program did not end in time and was killed.
        var isLate: Bool

        /// Returns whether the exit status is 0.
        var isSuccess: Bool { status == 0 }
    }

    struct SpawnError: Error {
        let program: String
        let code: Int32
    }

    let pid: pid_t
    private let output: Int32
    /// `true` after `waitpid`. The system may then give the process number to another process.
    private let isCollected = Mutex(false)

    /// The directory of the built programs, which is the directory of the running tests.
    static let products: String = {
        var path = [UInt8](repeating: 0, count: 4096)
        let count = path.withUnsafeMutableBytes { buffer in
            readlink("/proc/self/exe", buffer.baseAddress!.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        let whole = path[..<max(0, count)]
        return String(decoding: whole[..<(whole.lastIndex(of: 0x2F) ?? 0)], as: UTF8.self)
    }()

    /// Starts a program of the build by its name, or another program by its path. `stdout` is a descriptor for standard
    /// output; `nil` includes standard output in `Ending.output`.
    init(_ program: String, _ arguments: [String], stdout: Int32? = nil) throws {
        let path = program.contains("/") ? program : ChildProcess.products + "/" + program
        // A child that starts between creating a pipe and setting FD_CLOEXEC would keep the pipe open.
        (pid, output) = try ChildProcess.spawning.withLock { _ in try ChildProcess.spawn(path, arguments, stdout) }
    }

    private static let spawning = Mutex(())

    /// Creates a pipe that no child inherits. Returns the read end and the write end.
    static func pipe() throws -> [Int32] {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw SpawnError(program: "pipe", code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return ends
    }

    private static func spawn(_ path: String, _ arguments: [String], _ stdout: Int32?) throws -> (pid_t, Int32) {
        let ends = try pipe()
        defer { Glibc.close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, stdout ?? ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        var words = pointers([path] + arguments)
        var variables = pointers(["PATH=/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"])
        defer { for pointer in words + variables { free(pointer) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, path, &actions, nil, &words, &variables)
        guard code == 0 else {
            Glibc.close(ends[0])
            throw SpawnError(program: path, code: code)
        }
        return (pid, ends[0])
    }

    private static func pointers(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { text -> UnsafeMutablePointer<CChar>? in strdup(text) } + [nil]
    }

    /// Sends a signal, unless the process has ended and `waitpid` has returned.
    func signal(_ number: Int32) {
        isCollected.withLock { if !$0 { _ = Glibc.kill(pid, number) } }
    }

    /// Returns whether signals are pending (`ShdPnd`, proc(5)).
    var hasPendingSignals: Bool {
        guard let file = fopen("/proc/\(pid)/status", "re") else { return false }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 4096)
        let count = fread(&text, 1, text.count, file)
        let lines = String(decoding: text[..<count], as: UTF8.self).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("ShdPnd:") }) else { return false }
        return line.dropFirst(7).contains { ("1"..."9").contains($0) || ("a"..."f").contains($0) }
    }

    /// Waits for the end. Kills the program after `seconds` and then sets `isLate`. Must be called once.
    func end(within seconds: Int = 60) async -> Ending {
        await withCheckedContinuation { continuation in
            Waiter.run {
                continuation.resume(returning: self.wait(seconds))
            }
        }
    }

    /// Reads the output until the program ends: only the program has the write end of the pipe.
    private func wait(_ seconds: Int) -> Ending {
        let deadline = ContinuousClock.now + .seconds(seconds)
        var ending = Ending(output: "", isLate: false)
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let left = (deadline - .now).components
            let milliseconds = max(0, left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000)
            var request = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            if poll(&request, 1, Int32(milliseconds)) == 0, !ending.isLate {
                ending.isLate = true
                signal(SIGKILL)
            }
            guard request.revents != 0 else { continue }
            let count = Glibc.read(output, &buffer, buffer.count)
            if count <= 0 { break }
            bytes += buffer[..<count]
        }
        Glibc.close(output)
        var status: Int32 = 0
        isCollected.withLock {
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            $0 = true
        }
        if status & 0x7F == 0 { ending.status = (status >> 8) & 0xFF } else { ending.signal = status & 0x7F }
        ending.output = String(decoding: bytes, as: UTF8.self)
        return ending
    }

    /// Runs a program and waits for its end.
    static func run(_ program: String, _ arguments: [String], within seconds: Int = 60) async throws -> Ending {
        try await ChildProcess(program, arguments).end(within: seconds)
    }
}

/// Runs blocking work on a separate thread, so that the cooperative threads stay free for the server.
private enum Waiter {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    static func run(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(Work(body)).toOpaque()
        let code = pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, argument)
        precondition(code == 0, "no thread: \(code)")
        pthread_detach(thread)
    }
}
