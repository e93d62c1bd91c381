import Foundation
import Testing

/// A user's home in which `tow` starts `towd`: the built programs, from outside.
struct ServiceHome {
    let path: URL
    /// What a shell does before each program, such as giving the machine another boot id.
    var prelude: String?
    /// Where the socket is; gone after a reboot.
    var runtime: URL

    private static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()

    /// A home with a service that listens at its socket alone.
    init(_ path: URL) throws {
        self.path = path
        runtime = path
        try FileManager.default.createDirectory(
            at: path.appendingPathComponent("towline"), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        try Data("listen: none\n".utf8).write(to: path.appendingPathComponent("towline/towd.yaml"))
    }

    private var lock: String { path.appendingPathComponent(".local/state/towline/registry.lock").path }

    /// Runs `tow` to its end; it is gone when this returns.
    @discardableResult
    func tow(_ arguments: [String]) async throws -> [[String: Any]] {
        let process = Process()
        let output = Pipe()
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
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let data = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: output.fileHandleForReading.readDataToEndOfFile())
            }
        }
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(arguments)")
        return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    /// Begins `tow`, whose end is the caller's to wait for.
    func begin(_ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = Self.products.appendingPathComponent("tow")
        process.arguments = arguments
        process.environment = ["HOME": path.path, "XDG_RUNTIME_DIR": runtime.path, "PATH": "/usr/bin:/bin"]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        return process
    }

    /// Adds links and gives the downloads' names.
    func add(_ urls: [String]) async throws -> Set<String> {
        Set(try await tow(["add", "--json"] + urls).compactMap { $0["id"] as? String })
    }

    /// The list, by name.
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

    /// SIGKILL for `towd`; it is gone when this returns.
    func kill() throws {
        let words = try String(contentsOfFile: lock, encoding: .utf8).split(separator: " ")
        let process = try #require(words.first.flatMap { Int32($0) })
        let descriptor = open(lock, O_RDONLY)
        defer { close(descriptor) }
        Glibc.kill(process, SIGKILL)
        // Its lock is let go of by its end, and by nothing else.
        flock(descriptor, LOCK_EX)
    }
}
