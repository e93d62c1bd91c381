import Foundation
import Testing

/// A network for one test: a namespace for the client and one for the server, joined by a pair of virtual interfaces.
/// The network has no connection to any other.
final class NetworkNamespace: Sendable {
    static let canMake = Thoroughness.isRequired || (geteuid() == 0 && Thoroughness.areThere("/usr/sbin/ip"))

    private static let tools = "/usr/sbin/"
    let client: String
    let server: String
    let clientLink = "towc"
    let serverLink = "tows"
    static let serverAddress = "10.77.0.1"

    private init() {
        let mark = String(UInt32.random(in: 0...(.max)), radix: 36)
        client = "tow-c-\(mark)"
        server = "tow-s-\(mark)"
    }

    static func with(_ body: (NetworkNamespace) async throws -> Void) async throws {
        let network = NetworkNamespace()
        do {
            try await network.make()
            try await body(network)
        } catch {
            await network.remove()
            throw error
        }
        await network.remove()
    }

    private func make() async throws {
        for name in [client, server] {
            try await Self.ip("netns", "add", name)
            try await Self.ip("-n", name, "link", "set", "lo", "up")
        }
        try await Self.ip(
            "link", "add", clientLink, "netns", client, "type", "veth", "peer", "name", serverLink, "netns", server)
        try await Self.ip("-n", client, "addr", "add", "10.77.0.2/24", "dev", clientLink)
        try await Self.ip("-n", server, "addr", "add", Self.serverAddress + "/24", "dev", serverLink)
        try await Self.ip("-n", client, "link", "set", clientLink, "up")
        try await Self.ip("-n", server, "link", "set", serverLink, "up")
    }

    private func remove() async {
        for name in [client, server] {
            _ = try? await ChildRun.run([Self.tools + "ip", "netns", "del", name])
            try? FileManager.default.removeItem(atPath: "/etc/netns/\(name)")
        }
    }

    static func ip(_ arguments: String...) async throws {
        let result = try await ChildRun.run([tools + "ip"] + arguments)
        try #require(result.status == 0, "ip \(arguments): \(result.stderr)")
    }

    /// Returns the words that run a command in a namespace.
    static func inside(_ name: String) -> [String] { [tools + "ip", "netns", "exec", name] }

    /// Gives the client's namespace its own resolver.
    func setResolver(_ text: String) throws {
        let folder = "/etc/netns/\(client)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try text.write(toFile: folder + "/resolv.conf", atomically: true, encoding: .utf8)
    }

    /// Limits the rate at which the server sends (`tc-tbf(8)`).
    func limit(_ rate: String, isFirst: Bool) async throws {
        let result = try await ChildRun.run(
            [
                Self.tools + "tc", "-n", server, "qdisc", isFirst ? "add" : "change", "dev", serverLink, "root", "tbf",
                "rate", rate, "burst", "64kb", "latency", "400ms",
            ])
        try #require(result.status == 0, "tc: \(result.stderr)")
    }
}

/// The fault server as a program, in a namespace.
final class ServerProgram: Sendable {
    private let run: ChildRun
    private let scratch: Scratch
    let port: Int

    init(in namespace: String, _ arguments: [String]) async throws {
        scratch = try Scratch()
        let program = URL(fileURLWithPath: ChildRun.tow).deletingLastPathComponent().appendingPathComponent(
            "fault-server")
        run = try ChildRun(
            NetworkNamespace.inside(namespace) + [program.path, "--log", scratch.file("log")] + arguments)
        // The server prints its port when it listens. A program's output sends no notification, so it is polled.
        var found: Int?
        for _ in 0..<1000 where found == nil {
            try await Task.sleep(for: .milliseconds(20))
            found = run.stdoutSoFar.split(separator: " ").last.flatMap {
                Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
            }
        }
        port = try #require(found, "fault-server: \(run.stderrSoFar)")
    }

    var log: String { scratch.read("log") }

    func stop() async throws {
        run.signal(SIGTERM)
        _ = try await run.finish()
    }
}
