import Foundation
import Testing

/// Servers and tools of the distribution that tests run on loopback.
enum Programs {
    static let nginx = "/usr/sbin/nginx"
    static let tinyproxy = "/usr/bin/tinyproxy"
    static let danted = "/usr/sbin/danted"
    static let openssl = "/usr/bin/openssl"
    static let python = "/usr/bin/python3"

    /// Whether all of `programs` are there. In CI they must be: there a missing one fails the test.
    static func areThere(_ programs: String...) -> Bool {
        ProcessInfo.processInfo.environment["CI"] != nil
            || programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// A folder of its own, gone with its owner.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "towline-curl-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let file = path + "/" + name
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        return file
    }

    func read(_ name: String) -> String { (try? String(contentsOfFile: path + "/" + name, encoding: .utf8)) ?? "" }
}

/// A child process with a group and a signal mask of its own: threads of a Swift program block signals, and a child
/// would inherit that.
struct ChildProcess {
    let identifier: pid_t

    /// Starts `program`, its output going to the file `log`.
    init(_ program: String, _ arguments: [String], log: String) throws {
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
        try #require(code == 0, "\(program): \(String(cString: strerror(code)))")
        self.identifier = identifier
    }

    /// Waits for the end. Returns the exit status, or `nil` if a signal ended it.
    func wait() -> Int32? {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
    }

    var isRunning: Bool { waitpid(identifier, nil, WNOHANG) == 0 }
}

/// A running server program, ended with its owner.
final class ServerProgram: Sendable {
    private let process: ChildProcess

    /// Starts `program` and waits until it listens on `port`.
    init(_ program: String, _ arguments: [String], port: UInt16, log: String) async throws {
        process = try ChildProcess(program, arguments, log: log)
        // Nothing tells when a foreign program listens, so it is asked.
        for _ in 0..<500 where !Loopback.accepts(port) {
            try #require(
                process.isRunning, "\(program) ended: \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    deinit {
        kill(-process.identifier, SIGKILL)
        _ = process.wait()
    }

    /// Runs a tool to its end; throws if it fails.
    static func run(_ program: String, _ arguments: [String]) throws {
        let log = NSTemporaryDirectory() + UUID().uuidString
        defer { unlink(log) }
        let status = try ChildProcess(program, arguments, log: log).wait()
        try #require(status == 0, "\(arguments): \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
    }
}

/// A certificate authority of the test's own and certificates for loopback.
struct Certificates {
    let folder: TemporaryFolder
    var authority: String { folder.path + "/authority.pem" }

    init(in folder: TemporaryFolder) throws {
        self.folder = folder
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=Towline test authority",
            ]
                + ["-keyout", folder.path + "/authority.key", "-out", authority])
        try issue("good", host: "IP:127.0.0.1,DNS:localhost")
        try issue("other-host", host: "DNS:other.example")
        try issue("expired", host: "IP:127.0.0.1", days: "-1")
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=127.0.0.1",
            ]
                + ["-addext", "subjectAltName=IP:127.0.0.1"]
                + ["-keyout", folder.path + "/self-signed.key", "-out", folder.path + "/self-signed.pem"])
    }

    private func issue(_ name: String, host: String, days: String = "2") throws {
        let base = folder.path + "/" + name
        try ServerProgram.run(
            Programs.openssl,
            [
                "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=\(name)",
                "-addext", "subjectAltName=\(host)",
            ]
                + ["-keyout", base + ".key", "-out", base + ".csr"])
        try ServerProgram.run(
            Programs.openssl,
            ["x509", "-req", "-in", base + ".csr", "-CA", authority, "-CAkey", folder.path + "/authority.key"]
                + ["-CAcreateserial", "-days", days, "-copy_extensions", "copy", "-out", base + ".pem"])
    }
}
