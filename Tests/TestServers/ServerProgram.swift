import Foundation

/// A child process with its own process group and signal mask. A child would otherwise inherit the blocked signals of
/// the threads of a Swift program.
package struct ChildProcess {
    package let identifier: pid_t

    /// Starts `program` and appends its output to the file `log`.
    package init(_ program: String, _ arguments: [String], log: String) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var identifier: pid_t = 0
        let code = posix_spawn(&identifier, program, &actions, &attributes, &words, environ)
        guard code == 0 else { throw ProgramFailure("\(program): \(String(cString: strerror(code)))") }
        self.identifier = identifier
    }

    /// Waits for the end. Returns the exit status, or `nil` if a signal ended it.
    package func wait() -> Int32? {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
    }

    package var isRunning: Bool { waitpid(identifier, nil, WNOHANG) == 0 }
}

/// A running server program. The program is killed when the object is released.
package final class ServerProgram: Sendable {
    private let process: ChildProcess

    /// Starts `program` and waits until it listens on `port`.
    package init(_ program: String, _ arguments: [String], port: UInt16, log: String) async throws {
        process = try ChildProcess(program, arguments, log: log)
        // The program does not report when it listens, so the port is polled.
        for _ in 0..<6000 {
            // One success is enough, because each check is a connection that the program must handle.
            if Loopback.accepts(port) { return }
            guard process.isRunning else {
                throw ProgramFailure("\(program) ended: \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw ProgramFailure("\(program) does not listen on \(port)")
    }

    deinit {
        kill(-process.identifier, SIGKILL)
        _ = process.wait()
    }

    /// Runs a tool and waits for its end. Throws if the exit status is not 0.
    package static func run(_ program: String, _ arguments: [String]) throws {
        let log = NSTemporaryDirectory() + UUID().uuidString
        defer { unlink(log) }
        let status = try ChildProcess(program, arguments, log: log).wait()
        guard status == 0 else {
            throw ProgramFailure("\(arguments): \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
        }
    }
}

/// The failure of a server or a tool.
package struct ProgramFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
