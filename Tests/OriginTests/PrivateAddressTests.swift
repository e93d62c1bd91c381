import Foundation
import TestServers
import Testing

/// Fault 124: a remote client with the token makes `towd` send requests to services on this machine or its network.
@Suite(.enabled(if: getuid() == 0, "namespaces are made by root alone")) struct PrivateAddressTests {
    private struct Result: Decodable {
        let refused: [String: String]
        let reached: [String]
        let `public`: String
        let redirected: String
        let link: String
        let local: String
    }

    private func run(_ policy: String) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ssrf-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("private_addresses.py")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        process.arguments = [
            "-mn", "/usr/bin/python3", "-B", script.path, products.appendingPathComponent("towd").path, folder.path,
            policy,
        ]
        let data = try await process.runToEnd()
        try #require(process.terminationStatus == 0)
        return try JSONDecoder().decode(Result.self, from: data)
    }

    @Test(.timeLimit(.minutes(2))) func row124AddressesThatAreNotPublicAreRefusedToOthers() async throws {
        let result = try await run("")
        #expect(result.reached.isEmpty, "what was asked in vain: \(result.reached)")
        for (url, outcome) in result.refused {
            #expect(["addressRefused", "400"].contains(outcome), "\(url): \(outcome)")
        }
        #expect(result.refused.values.count { $0 == "addressRefused" } >= 24, "\(result.refused)")
        #expect(result.refused.keys.count { $0.contains(":8083/") } == 6, "routes of type local, IPv4 and IPv6")
        #expect(result.public == "finished")
        #expect(result.redirected == "finished")
        #expect(result.link == "addressRefused")
        #expect(result.local == "finished", "local users may use private addresses")
    }

    /// Without the restriction, private addresses are reached. This shows that the test detects such requests.
    @Test(.timeLimit(.minutes(2))) func row124EverybodyMayIfTheOwnerSaysSo() async throws {
        let result = try await run("everybody")
        #expect(!result.reached.isEmpty)
        #expect(result.refused.values.contains("finished"))
    }
}
