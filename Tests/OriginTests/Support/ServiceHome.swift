import Foundation
import TestServers
import Testing

/// A home directory where `tow` starts `towd`. The tests use the built programs.
struct ServiceHome {
    let path: URL
    /// A shell command that runs before each program, for example to set another boot ID; `nil` for none.
    var prelude: String?
    /// The directory of the socket, which does not survive a reboot.
    var runtime: URL

    private static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()

    /// Creates a home directory with a service that listens only on its socket.
    init(_ path: URL) throws {
        self.path = path
        runtime = path
        try FileManager.default.createDirectory(
            at: path.appendingPathComponent("towline"), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        try Data("listen: none\n".utf8).write(to: path.appendingPathComponent("towline/towd.yaml"))
    }

    private var lock: String { path.appendingPathComponent(".local/state/towline/registry.lock").path }

    /// Runs `tow`, waits for its end, and returns the JSON objects that it prints.
    @discardableResult
    func tow(_ arguments: [String]) async throws -> [[String: Any]] {
        let process = Process()
        let program = Self.products.appendingPathComponent("tow")
        if let prelude {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
            process.arguments = ["-m", "/bin/sh", "-ec", prelude + "\nexec \"$@\"", "sh", program.path] + arguments
        } else {
            process.executableURL = program
            process.arguments = arguments
        }
        process.environment = [
            "HOME": path.path, "XDG_CONFIG_HOME": path.path, "XDG_RUNTIME_DIR": runtime.path,
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        ]
        let data = try await process.runToEnd()
        #expect(process.terminationStatus == 0, "\(arguments)")
        return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    /// Starts `tow` without waiting for its end.
    func begin(_ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = Self.products.appendingPathComponent("tow")
        process.arguments = arguments
        process.environment = ["HOME": path.path, "XDG_RUNTIME_DIR": runtime.path, "PATH": "/usr/bin:/bin"]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// Adds URLs and returns the identifiers of the downloads.
    func add(_ urls: [String]) async throws -> Set<String> {
        Set(try await tow(["add", "--json"] + urls).compactMap { $0["id"] as? String })
    }

    /// Returns the entries of the list by identifier.
    func list() async throws -> [String: Row] {
        let rows = try await tow(["list", "--json"]).compactMap { Row($0) }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.id, $0) })
    }

    /// An entry of the list.
    struct Row {
        let id: String
        let state: String
        let heldBytes: Int64

        init?(_ object: [String: Any]) {
            guard let id = object["id"] as? String, let state = object["state"] as? String else { return nil }
            (self.id, self.state, heldBytes) = (id, state, object["heldBytes"] as? Int64 ?? 0)
        }
    }

    /// Kills `towd` with SIGKILL and waits for its end.
    func kill() throws {
        let words = try String(contentsOfFile: lock, encoding: .utf8).split(separator: " ")
        let process = try #require(words.first.flatMap { Int32($0) })
        let descriptor = open(lock, O_RDONLY)
        defer { close(descriptor) }
        Glibc.kill(process, SIGKILL)
        // Only the end of the process releases its lock.
        flock(descriptor, LOCK_EX)
    }
}
