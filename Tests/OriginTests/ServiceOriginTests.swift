import FaultServer
import Foundation
import Testing

/// Row O4: downloads continue in the background, even if the program that added them ends or the service is killed.
@Suite(.serialized) struct ServiceOriginTests {
    private static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    private static let kills = isTorture ? 200 : 4
    private static let count = isTorture ? 50 : 6
    /// The maximum number of bytes that are received twice for each connection that a kill ends.
    private static let bound: Int64 = (256 + 16) * 1024

    @Test func o4_downloadsGoOnWhateverIsKilled() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("o4-" + UUID().uuidString)
        let home = try ServiceHome(folder)
        defer {
            try? home.kill()
            try? FileManager.default.removeItem(at: folder)
        }
        var versions: [String: Version] = [:]
        for number in 0..<Self.count {
            versions["f\(number)"] = Version(seed: UInt64(number + 1), length: 2_500_000 + Int64(number) * 777_777)
        }
        var options = ServerOptions()
        options.sharedRate = Self.isTorture ? 1_000_000 : 6_000_000
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: versions.map { ("/\($0)", Resource($1)) }), options: options)
        let urls = versions.keys.sorted().map { server.url("/\($0)") }
        let names = try await home.add(urls)
        #expect(names.count == Self.count)

        var kills = 0
        var isDone = false
        while kills < Self.kills, !isDone {
            // The random time of the kill is the purpose of the test.
            try await Task.sleep(for: .milliseconds(.random(in: 100...800)))
            let before = try await home.list()
            try home.kill()
            // The server refuses connections once, so that the progress in the list can only come from this machine.
            if kills == 0 { await server.refuseConnections() }
            await server.closeConnections(reset: true)
            let asked = server.log.requests.count
            kills += 1
            // Adding the same URL starts the service again and creates no new download.
            _ = try await home.add([urls[0]])
            let rows = try await home.list()
            #expect(Set(rows.keys) == names, "after \(kills) kills")
            if kills == 1 {
                #expect(server.log.requests.count == asked)
                #expect(rows.values.contains { $0.heldBytes > 0 }, "progress before any request: \(rows)")
                try await server.acceptConnections()
            }
            isDone = rows.values.allSatisfy { $0.state == "finished" }
            expectKept(before, rows)
        }
        if Self.isTorture { #expect(kills == Self.kills, "the downloads ended before all kills") }
        server.liftSharedRate()
        for _ in 0..<1000 where !isDone {
            try await Task.sleep(for: .milliseconds(100))
            isDone = try await home.list().values.allSatisfy { $0.state == "finished" }
        }
        try expectWhole(versions, folder, server, kills)
        await server.stop()
    }

    /// Checks that downloads keep their bytes after a kill. A download with less than 1 MiB may restart. Other
    /// downloads lose a limited number of bytes.
    private func expectKept(_ before: [String: ServiceHome.Row], _ rows: [String: ServiceHome.Row]) {
        for row in rows.values {
            let old = before[row.id]?.heldBytes ?? 0
            #expect(old < 1 << 20 || row.heldBytes > old - 16 * Self.bound, "\(row)")
        }
    }

    /// Checks that every file is correct and that few bytes were received twice.
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
}
