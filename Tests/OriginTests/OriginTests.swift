import FaultServer
import Foundation
import TestServers
import Testing

/// Tests of the five use cases in `origins.md`, with the example program that embeds the library: O1, O2, O3 and O5.
/// `ServiceOriginTests` tests O4.
@Suite(.serialized) struct OriginTests {
    private static let version = Version(seed: 11, length: 8_000_000)

    /// Starts a server that needs several seconds for each file.
    private func slowServer(_ resources: [String: Resource]) async throws -> FaultServer {
        var options = ServerOptions()
        options.sharedRate = 2_000_000
        return try await FaultServer.start(resources, options: options)
    }

    /// O1: after a SIGKILL and a relaunch, the list shows the earlier progress before any request is sent. The download
    /// stays paused until it is started, and then resumes from this progress.
    @Test func o1_progressIsThereAfterARelaunchBeforeAnythingIsPressed() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let server = try await slowServer(["/film.bin": Resource(Self.version)])
        let first = try await TerminalRun.start(place)
        let id = try await first.add(server.url("/film.bin"))
        try await first.row(id) { $0.held > 2_000_000 }
        await first.kill()
        await server.closeConnections(reset: true)
        let asked = server.log.requests.count
        let served = server.log.bodyBytesServed("/film.bin")

        let second = try await TerminalRun.start(place, hold: true)
        let row = try #require(try await second.list().first)
        #expect(row.id == id)
        #expect(row.held > 1_700_000, "\(row)")
        #expect(row.length == 8_000_000)
        #expect(row.percent.map { $0 > 20 } == true)
        #expect(row.state == "paused")
        #expect(server.log.requests.count == asked, "the list is shown without a request")

        let start = second.position
        try second.send("start \(id)")
        try await second.row(id, after: start) { $0.state == "finished" }
        #expect(place.holds("film.bin", Self.version))
        let again = server.log.bodyBytesServed("/film.bin") - served
        #expect(again < 8_000_000 - row.held + 2_000_000, "it went on from there: \(again) bytes more")
        #expect(try await second.quit() == 0)
        await server.stop()
    }

    /// O1: pause stops the transfer, resume continues it, and cancel deletes the bytes.
    @Test func o1_pauseContinueCancel() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let server = try await slowServer(["/a": Resource(Self.version), "/b": Resource(Self.version)])
        let run = try await TerminalRun.start(place)
        let id = try await run.add(server.url("/a"))
        try await run.row(id) { $0.held > 1_000_000 }
        var start = run.position
        try run.send("pause \(id)")
        let paused = try await run.row(id, after: start) { $0.state == "paused" }
        // Another download runs meanwhile, as a measure of time.
        let other = try await run.add(server.url("/b"))
        let served = server.log.bodyBytesServed("/a")
        try await run.row(other) { $0.held > 1_000_000 }
        #expect(server.log.bodyBytesServed("/a") - served < 300_000, "no bytes are sent to a paused download")
        #expect(try await run.list().first { $0.id == id }?.held == paused.held)

        start = run.position
        try run.send("cancel \(other)")
        try await run.row(other, after: start) { $0.state == "cancelled" }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.downloads).allSatisfy { !$0.hasPrefix("b") })
        try run.send("resume \(id)")
        try await run.row(id, after: start) { $0.state == "finished" }
        #expect(place.holds("a", Self.version))
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O2: a list with many files. A finished download sends no request.
    @Test func o2_aFinishedDownloadSendsNoRequest() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let versions = (1...6).map { Version(seed: UInt64($0), length: Int64($0) * 100_000) }
        let resources = Dictionary(uniqueKeysWithValues: versions.enumerated().map { ("/f\($0)", Resource($1)) })
        let server = try await FaultServer.start(resources)
        let first = try await TerminalRun.start(place)
        for (number, version) in versions.enumerated() {
            let id = try await first.add(server.url("/f\(number)"))
            try await first.row(id) { $0.state == "finished" }
            #expect(place.holds("f\(number)", version))
        }
        #expect(try await first.quit() == 0)
        let asked = server.log.requests.count

        let second = try await TerminalRun.start(place)
        let before = try await second.list()
        #expect(before.count == 6)
        #expect(before.allSatisfy { $0.state == "finished" && $0.percent == 100 })
        for number in versions.indices { _ = try await second.add(server.url("/f\(number)")) }
        #expect(try await second.list().map(\.id) == before.map(\.id), "the same downloads, not new ones")
        #expect(server.log.requests.count == asked)
        #expect(try await second.quit() == 0)
        await server.stop()
    }

    /// O3: the same URL and destination is the same download, even while it runs. Progress arrives without polling.
    @Test func o3_theSameLinkIsTheSameDownload() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let server = try await slowServer(["/same": Resource(Self.version)])
        let run = try await TerminalRun.start(place)
        let id = try await run.add(server.url("/same"))
        try await run.row(id) { $0.held > 500_000 }
        #expect(try await run.add(server.url("/same")) == id)
        #expect(try await run.list().count == 1)
        // The program prints these lines automatically, without a command.
        var last: Int64 = 0
        for step in 1...3 {
            let row = try await run.row(id) { $0.held > last }
            last = row.held + Int64(step)
        }
        try await run.row(id) { $0.state == "finished" }
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.downloads) == ["same"])
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O5: the network fails and recovers. The download waits, reports this, and resumes automatically.
    @Test func o5_theNetworkGoesAwayAndComesBack() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let server = try await slowServer(["/archive": Resource(Self.version)])
        let run = try await TerminalRun.start(place)
        let id = try await run.add(server.url("/archive"))
        try await run.row(id) { $0.held > 1_000_000 }
        await server.refuseConnections()
        await server.closeConnections(reset: true)
        let start = run.position
        let waiting = try await run.row(id, after: start) { $0.state.hasPrefix("waiting(") && $0.rest.count > 8 }
        #expect(waiting.held > 800_000, "what came is kept: \(waiting)")
        try await server.acceptConnections()
        try await run.row(id, after: start) { $0.state == "finished" }
        #expect(place.holds("archive", Self.version))
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O5: a downloaded archive is unpacked once, and not again after a relaunch.
    @Test func o5_theArchiveIsUnpacked() async throws {
        let place = try TerminalRun.Place()
        defer { place.remove() }
        let nginx = try await Nginx()
        let content = place.root.appendingPathComponent("pictures")
        try FileManager.default.createDirectory(
            at: content.appendingPathComponent("raw"), withIntermediateDirectories: true)
        let bytes = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
        try bytes.write(to: content.appendingPathComponent("raw/one.bin"))
        try Data("hello\n".utf8).write(to: content.appendingPathComponent("read me.txt"))
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/bin/tar")
        tar.arguments = ["-C", place.root.path, "-czf", nginx.folder.path + "/pictures.tar.gz", "pictures"]
        try tar.run()
        tar.waitUntilExit()
        #expect(tar.terminationStatus == 0)

        let run = try await TerminalRun.start(place)
        let id = try await run.add(nginx.url("pictures.tar.gz"), "unpack out")
        try await run.row(id) { $0.state == "finished" && $0.rest.hasPrefix("done") }
        let out = URL(fileURLWithPath: place.downloads).appendingPathComponent("out/pictures")
        #expect(try Data(contentsOf: out.appendingPathComponent("raw/one.bin")) == bytes)
        #expect(try String(contentsOf: out.appendingPathComponent("read me.txt"), encoding: .utf8) == "hello\n")
        let names = try FileManager.default.contentsOfDirectory(atPath: place.downloads).sorted()
        #expect(names == ["out", "pictures.tar.gz"])
        #expect(try await run.quit() == 0)
        let asked = nginx.log.count
        let second = try await TerminalRun.start(place)
        #expect(try await second.list().map(\.rest) == ["done"])
        #expect(try await second.quit() == 0)
        #expect(nginx.log.count == asked)
    }

    /// An app that imports the library links no web server. The fault server proves that the test would detect one.
    @Test func aClientLinksNoWebServer() throws {
        let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        func names(_ program: String) throws -> Bool {
            try Data(contentsOf: folder.appendingPathComponent(program)).range(of: Data("NIOPosix".utf8)) != nil
        }
        #expect(try !names("towline-terminal"))
        #expect(try names("fault-server"))
    }
}
