import FaultServer
import Foundation
import Testing

/// Row O4: downloads go on in the background, whatever happens to the program that asked for them, and to the service.
@Suite(.serialized) struct ServiceOriginTests {
    private static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    private static let kills = isTorture ? 200 : 4
    private static let count = isTorture ? 50 : 6
    /// What may come twice for each connection that a kill ends.
    private static let bound: Int64 = (256 + 16) * 1024

    private static let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()

    /// Runs `tow` to its end; it is gone when this returns.
    private func tow(_ home: URL, _ arguments: [String]) async throws -> [[String: Any]] {
        let process = Process()
        let output = Pipe()
        process.executableURL = Self.products.appendingPathComponent("tow")
        process.arguments = arguments
        process.environment = [
            "HOME": home.path, "XDG_CONFIG_HOME": home.path, "XDG_RUNTIME_DIR": home.path, "PATH": "/usr/bin:/bin",
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

    private func processOfService(_ home: URL) throws -> Int32 {
        let lock = home.appendingPathComponent(".local/state/towline/registry.lock")
        let words = try String(contentsOf: lock, encoding: .utf8).split(separator: " ")
        return try #require(words.first.flatMap { Int32($0) })
    }

    private func kill(_ home: URL) throws {
        let descriptor = open(home.appendingPathComponent(".local/state/towline/registry.lock").path, O_RDONLY)
        defer { close(descriptor) }
        Glibc.kill(try processOfService(home), SIGKILL)
        // Its lock is let go of by its end, and by nothing else.
        flock(descriptor, LOCK_EX)
    }

    @Test func o4_downloadsGoOnWhateverIsKilled() async throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent("o4-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
        defer {
            try? kill(home)
            try? FileManager.default.removeItem(at: home)
        }
        try Data("listen: none\n".utf8).write(to: try folder(home, "towline").appendingPathComponent("towd.yaml"))
        var versions: [String: Version] = [:]
        for number in 0..<Self.count {
            versions["f\(number)"] = Version(seed: UInt64(number + 1), length: 2_500_000 + Int64(number) * 777_777)
        }
        var options = ServerOptions()
        options.sharedRate = Self.isTorture ? 1_000_000 : 6_000_000
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: versions.map { ("/\($0)", Resource($1)) }), options: options)
        let urls = versions.keys.sorted().map { server.url("/\($0)") }
        let names = Set(try await tow(home, ["add", "--json"] + urls).compactMap { $0["id"] as? String })
        #expect(names.count == Self.count)

        var kills = 0
        var isDone = false
        while kills < Self.kills, !isDone {
            try await Task.sleep(for: .milliseconds(.random(in: 100...800)))
            let before = try await tow(home, ["list", "--json"])
            try kill(home)
            // Once nobody answers at first: the progress in the list comes from this machine alone.
            if kills == 0 { await server.refuseConnections() }
            await server.closeConnections(reset: true)
            let asked = server.log.requests.count
            kills += 1
            // The same link once more: the same download, and the service is there again.
            _ = try await tow(home, ["add", "--json", urls[0]])
            let rows = try await tow(home, ["list", "--json"])
            #expect(Set(rows.compactMap { $0["id"] as? String }) == names, "after \(kills) kills")
            if kills == 1 {
                #expect(server.log.requests.count == asked)
                #expect(rows.contains { ($0["heldBytes"] as? Int64 ?? 0) > 0 }, "progress before any request: \(rows)")
                try await server.acceptConnections()
            }
            isDone = rows.allSatisfy { $0["state"] as? String == "finished" }
            expectKept(before, rows)
        }
        while !isDone {
            try await Task.sleep(for: .milliseconds(100))
            isDone = try await tow(home, ["list", "--json"]).allSatisfy { $0["state"] as? String == "finished" }
        }
        try expectWhole(versions, home, server, kills)
        await server.stop()
    }

    /// What is there after a kill, by what was there before. One under 1 MiB may start over; of others a bounded part is
    /// fetched again.
    private func expectKept(_ before: [[String: Any]], _ rows: [[String: Any]]) {
        for row in rows {
            let old = before.first { $0["id"] as? String == row["id"] as? String }?["heldBytes"] as? Int64 ?? 0
            let new = row["heldBytes"] as? Int64 ?? 0
            #expect(old < 1 << 20 || new > old - 16 * Self.bound, "\(row)")
        }
    }

    /// Every file is right, and little of them came twice.
    private func expectWhole(_ versions: [String: Version], _ home: URL, _ server: FaultServer, _ kills: Int) throws {
        for (name, version) in versions {
            let path = home.appendingPathComponent("Downloads/" + name).path
            #expect(try version.content.firstMismatch(inFile: path, length: version.length) == nil)
        }
        let served = versions.keys.reduce(Int64(0)) { $0 + server.log.bodyBytesServed("/" + $1) }
        let lengths = versions.values.reduce(Int64(0)) { $0 + $1.length }
        let allowance = Int64(kills) * 5 * 16 * Self.bound
        #expect(served <= lengths + allowance, "\(served - lengths) bytes came twice in \(kills) kills")
    }

    private func folder(_ home: URL, _ name: String) throws -> URL {
        let folder = home.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return folder
    }
}
