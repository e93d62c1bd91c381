import FaultServer
import Foundation
import TestServers
import Testing

/// The programs and commands in the documents of the service work as they stand.
struct ServiceDocumentTests {
    private static let documents = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("docs")

    /// Returns the code blocks of a document in one language.
    private static func blocks(_ language: String, in name: String) throws -> [String] {
        let text = try String(contentsOf: documents.appendingPathComponent(name), encoding: .utf8)
        return text.components(separatedBy: "\n```\(language)\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```\n").first
        }
    }

    /// The environment of a user with a home directory and a free port for the page.
    private static func home(_ place: TestDirectory, port: UInt16) throws -> [String: String] {
        try FileManager.default.createDirectory(
            atPath: place.path(".config/towline"), withIntermediateDirectories: true)
        try Data("listen: \(port)\n".utf8).write(to: place.file(".config/towline/towd.yaml"))
        return [
            "HOME": place.url.path, "PATH": CommandRun.products.path + ":/usr/bin:/bin",
            "TOWD_URL": "http://127.0.0.1:\(port)",
        ]
    }

    @Test(.timeLimit(.minutes(2)), arguments: [("python", "python3", "client.py"), ("js", "node", "client.mjs")])
    func theClientsOfTheDocumentDownload(_ language: String, _ program: String, _ name: String) async throws {
        let server = try await FaultServer.start([
            "/a.bin": Resource(length: 3 << 20, seed: 7, rate: 4 << 20),
            "/none.bin": Resource(length: 1, behaviour: .always(.status(404))),
        ])
        let place = try TestDirectory()
        let environment = try Self.home(place, port: Loopback.freePort())
        #expect(try await CommandRun.run(["service", "start"], environment: environment).status == 0)
        let client = try #require(try Self.blocks(language, in: "api.md").first)
        try Data(client.utf8).write(to: place.file(name))
        let interpreter = URL(fileURLWithPath: "/usr/bin/" + program)
        func run(_ link: String) async throws -> CommandRun.Result {
            try await CommandRun([place.path(name), link], environment: environment, program: interpreter).finish()
        }
        // The second run finds a finished download.
        for _ in 0..<2 {
            let result = try await run(server.url("/a.bin"))
            #expect(result.status == 0 && result.text == place.path("Downloads/a.bin") + "\n", "\(result.stderr)")
        }
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: place.path("Downloads/a.bin"), length: 3 << 20) == nil)
        let failed = try await run(server.url("/none.bin"))
        #expect(failed.status == 1 && failed.stderr.contains("404"), "\(failed.stderr)")
        _ = try await CommandRun.run(["service", "stop"], environment: environment)
        await server.stop()
    }

    /// The commands of the section on backups keep the list, the finished files and the token. An unfinished download
    /// completes: its copied part file is not trusted.
    @Test(.timeLimit(.minutes(2))) func theListIsBackedUpAndMoved() async throws {
        var options = ServerOptions()
        options.sharedRate = 1 << 18
        let server = try await FaultServer.start(
            ["/a.bin": Resource(length: 6 << 20, seed: 7), "/b.bin": Resource(length: 1000, seed: 8)], options: options)
        let commands = try Self.blocks("sh", in: "registry.md").filter { $0.contains("towline-backup") }
        try #require(commands.count == 2)
        let (old, new) = (try TestDirectory(), try TestDirectory())
        let before = try Self.home(old, port: Loopback.freePort())
        func shell(_ text: String, _ environment: [String: String]) async throws {
            let run = try await CommandRun(
                ["-e", "-c", text], directory: old.url, environment: environment,
                program: URL(fileURLWithPath: "/bin/sh")
            ).finish()
            #expect(run.status == 0, "\(run.stderr)")
        }
        _ = try await CommandRun.run(["add", server.url("/b.bin"), server.url("/a.bin")], environment: before)
        let end = ContinuousClock.now + .seconds(60)
        func rows(_ environment: [String: String]) async throws -> [String: [String: Any]] {
            let rows = try await CommandRun.run(["list", "--json"], environment: environment).objects
            // Downloads have no name before their first responses.
            return Dictionary(rows.map { ($0["name"] as? String ?? "", $0) }) { first, _ in first }
        }
        while ContinuousClock.now < end {
            let rows = try await rows(before)
            if rows["a.bin"]?["heldBytes"] as? Int ?? 0 > 1 << 18, rows["b.bin"]?["state"] as? String == "finished" {
                break
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        _ = try await CommandRun.run(["pause", "a.bin"], environment: before)
        try await shell(commands[0], before)
        #expect(try await rows(before).count == 2, "the commands start towd again")
        _ = try await CommandRun.run(["service", "stop"], environment: before)
        let token = try Data(contentsOf: old.file(".local/state/towline/token"))

        try FileManager.default.moveItem(atPath: old.path("Downloads"), toPath: old.path("gone"))

        // The other machine: another home directory, so another downloads directory.
        let after = try Self.home(new, port: Loopback.freePort())
        try await shell(commands[1], after)
        var moved = try await rows(after)
        #expect(moved.count == 2 && moved["b.bin"]?["state"] as? String == "finished")
        #expect(try Data(contentsOf: new.file(".local/state/towline/token")) == token)
        #expect(moved["a.bin"]?["state"] as? String == "paused")
        #expect(try FaultContent(seed: 8).firstMismatch(inFile: new.path("Downloads/b.bin"), length: 1000) == nil)
        let result = try await CommandRun.run(["move", "a.bin", new.path("Downloads")], environment: after)
        #expect(result.status == 0, "\(result.stderr)")
        server.liftSharedRate()
        _ = try await CommandRun.run(["resume", "a.bin"], environment: after)
        while ContinuousClock.now < end {
            moved = try await rows(after)
            if moved["a.bin"]?["state"] as? String == "finished" { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(try FaultContent(seed: 7).firstMismatch(inFile: new.path("Downloads/a.bin"), length: 6 << 20) == nil)
        _ = try await CommandRun.run(["service", "stop"], environment: after)
        await server.stop()
    }
}
