import FaultServer
import Foundation
import Testing

/// Tests of random SIGKILLs of a program with a long list: the list keeps all downloads, every file is correct, and few
/// bytes are received twice.
@Suite(.serialized) struct KillTests {
    private static let isTorture = ProcessInfo.processInfo.environment["TOWLINE_TORTURE"] != nil
    private static let kills = isTorture ? 200 : 8
    private static let count = isTorture ? 50 : 12
    /// The maximum number of bytes that are received twice for each connection that a kill ends.
    private static let bound: Int64 = (256 + 16) * 1024

    @Test func nothingIsLostByKills() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        var versions: [String: Version] = [:]
        for number in 0..<Self.count {
            // The lengths range from small files without a journal to files with several segments.
            let length = [40_000, 700_000, 2_500_000, 6_000_000][number % 4] + Int64(number) * 777
            versions["f\(number)"] = Version(seed: UInt64(number + 1), length: length)
        }
        var options = ServerOptions()
        options.sharedRate = Self.isTorture ? 600_000 : 4_000_000
        let server = try await FaultServer.start(
            Dictionary(uniqueKeysWithValues: versions.map { ("/\($0)", Resource($1)) }), options: options)
        var run = try await TerminalRun.start(place)
        var names: Set<String> = []
        for name in versions.keys.sorted() { names.insert(try await run.add(server.url("/\(name)"))) }

        var kills = 0
        var isDone = false
        while kills < Self.kills, !isDone {
            // The random time of the kill is the purpose of the test.
            try await Task.sleep(for: .milliseconds(.random(in: 50...700)))
            await run.kill()
            await server.closeConnections(reset: true)
            kills += 1
            run = try await TerminalRun.start(place)
            let rows = try await run.list()
            #expect(Set(rows.map(\.id)) == names, "nothing is lost from the list, after \(kills) kills")
            isDone = rows.allSatisfy { $0.state == "finished" }
        }
        #expect(!isDone, "downloads are running at every kill, because the server is slow")
        server.liftSharedRate()
        for id in names { try await run.settledRow(id, within: .seconds(120)) { $0.state == "finished" } }
        for (name, version) in versions { #expect(place.holds(name, version), "\(name)") }
        #expect(try await run.quit() == 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: place.downloads)
        #expect(Set(left) == Set(versions.keys))
        var rework: Int64 = 0
        for (name, version) in versions { rework += server.log.bodyBytesServed("/\(name)") - version.length }
        // Three downloads of one host run at once, each with at most 16 connections. Small files may restart.
        let allowed = Int64(kills) * 3 * (16 * Self.bound + 1_048_576)
        print(
            "list kills: \(kills) kills, \(Self.count) downloads, \(rework / 1024) KiB came twice,"
                + " \(rework / Int64(kills) / 1024) KiB for each kill")
        #expect(rework <= allowed)
        await server.stop()
    }
}
