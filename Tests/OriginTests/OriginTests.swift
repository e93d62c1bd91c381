import FaultServer
import Foundation
import TestServers
import Testing

/// Tests of the example programs, which do what the five systems in `origins.md` do. `KillTests` kills them, and
/// `ServiceOriginTests` tests O4 with `towd`.
@Suite(.serialized) struct OriginTests {
    static let version = Version(seed: 11, length: 6_000_000)
    private static let transports = [[], ["--url-session"]]

    /// Starts a server that needs several seconds for each file.
    private func slowServer(_ resources: [String: Resource]) async throws -> FaultServer {
        var options = ServerOptions()
        options.sharedRate = 2_000_000
        return try await FaultServer.start(resources, options: options)
    }

    /// O1: the bar is shown before anything is pressed. Pause keeps the bytes, start continues from them, cancel
    /// deletes them, and the server may stop meanwhile.
    @Test(arguments: transports) func o1_startPauseContinueCancel(_ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let server = try await slowServer(["/film": Resource(Self.version)])
        let arguments = [place.path, server.url("/film")] + transport
        let first = try ExampleRun(.pauseAndResume, arguments)
        try await first.row { $0.state == "paused" && $0.held == 0 }
        #expect(server.log.requests.isEmpty, "no request before start")
        try first.send("start")
        try await first.row { $0.held > 1_500_000 }
        var position = first.position
        try first.send("pause")
        let paused = try await first.row(after: position) { $0.state == "paused" }
        await server.log.wait { $0.requests.allSatisfy { $0.ended != nil } }
        let asked = server.log.requests.count
        #expect(try await first.quit() == 0)
        #expect(first.output().last == "closed")

        let second = try ExampleRun(.pauseAndResume, arguments)
        #expect(try await second.row { _ in true } == paused, "the earlier progress, before anything is pressed")
        #expect(server.log.requests.count == asked)
        await server.refuseConnections()
        position = second.position
        try second.send("start")
        try await second.row(after: position) { $0.state == "connecting" || $0.state.hasPrefix("waiting") }
        try await server.acceptConnections()
        let resumed = try await second.row(after: position) { $0.state == "downloading" }
        #expect(resumed.held >= paused.held && resumed.length == 6_000_000)
        try await second.row(after: position) { $0.held > 4_000_000 }
        position = second.position
        try second.send("cancel")
        try await second.row(after: position) { $0.state == "cancelled" && $0.held == 0 }
        #expect(try place.names() == [])
        try second.send("start")
        server.liftSharedRate()
        #expect(try await second.path(report: "saved as ") == place.path + "/film")
        #expect(place.holds("film", Self.version))
        #expect(try await second.quit() == 0)
        await server.stop()
    }

    /// Faults of servers that the five systems do not handle: bytes are never joined without proof, and the size never
    /// comes from an error page.
    struct ServerFault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The replies to requests after the pause.
        let behaviour: Behaviour
        /// The version after the pause; `nil` if the file does not change.
        var newVersion: Version?
        /// The server is correct again after the download has reported the fault.
        var isTemporary = false
    }

    static let faults = [
        ServerFault(testDescription: "200 to a Range request", behaviour: .onResume(.ignoresRange)),
        ServerFault(
            testDescription: "changed ETag", behaviour: .correct, newVersion: version.replaced(seed: 12)),
        ServerFault(
            testDescription: "416 for a range of the file",
            behaviour: .onResume(.unsatisfiable(total: version.length))),
        ServerFault(testDescription: "206 that starts elsewhere", behaviour: .onResume(.startsLater())),
        ServerFault(testDescription: "no Content-Length", behaviour: .always(.chunked())),
        ServerFault(
            testDescription: "page with the ETag of the file", behaviour: .onResume(.pageWithETag), isTemporary: true),
    ]

    @Test(arguments: faults, transports)
    func o1_aServerFaultAfterAPause(_ fault: ServerFault, _ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let server = try await slowServer(["/film": Resource(Self.version)])
        let run = try ExampleRun(.pauseAndResume, [place.path, server.url("/film")] + transport)
        try run.send("start")
        try await run.row { $0.held > 1_500_000 }
        let position = run.position
        try run.send("pause")
        try await run.row(after: position) { $0.state == "paused" }
        server.liftSharedRate()
        server.set(fault.behaviour, for: "/film")
        if let version = fault.newVersion { server.replace("/film", with: version) }
        try run.send("start")
        if fault.isTemporary {
            try await run.row(after: position) { $0.state == "waiting(retry)" }
            server.set(.correct, for: "/film")
        }
        try await run.path(report: "saved as ")
        #expect(place.holds("film", fault.newVersion ?? Self.version))
        let rows = run.output().compactMap { Row($0) }
        #expect(rows.allSatisfy { $0.length == nil || $0.length == 6_000_000 }, "\(rows)")
        #expect(rows.allSatisfy { $0.percent.map { (0...100).contains($0) } ?? true })
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// The size is not known before the file is complete, and an error page with a length comes first.
    @Test(arguments: transports) func o1_anErrorPageAndThenNoLength(_ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let behaviour = Behaviour.first(1, .always(.unavailable), then: .always(.closeDelimitedWhole))
        let server = try await slowServer(["/film": Resource(Self.version, behaviour: behaviour)])
        let run = try ExampleRun(.pauseAndResume, [place.path, server.url("/film")] + transport)
        try run.send("start")
        try await run.row { $0.held > 500_000 && $0.percent == nil && $0.length == nil }
        server.liftSharedRate()
        try await run.path(report: "saved as ")
        #expect(place.holds("film", Self.version))
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O2: many files, also two with one name. The same link is the same download, and a finished one sends no request,
    /// even if the server would now refuse it (416).
    @Test func o2_aFinishedFileSendsNoRequest() async throws {
        let place = try Place()
        defer { place.remove() }
        var resources: [String: Resource] = [:]
        for number in 1...6 {
            resources["/f\(number)"] = Resource(length: Int64(number) * 200_000, seed: UInt64(number))
        }
        resources["/other/f6"] = Resource(length: 500_000, seed: 7)
        let server = try await slowServer(resources)
        let paths = resources.keys.sorted()
        let links = paths.map { server.url($0) }
        let first = try ExampleRun(.fileList, [place.path])
        _ = try await first.line { $0 == "0 files" }
        try first.send("add \(links.joined(separator: " "))")
        let row = try await first.row("f5") { $0.held > 100_000 }
        try first.send("pause \(row.number ?? "")")
        try await first.row("f5") { $0.state == "paused" }
        for name in ["f1", "f2", "f3", "f4", "f6", "f6 (1)"] {
            _ = try await first.line { $0.contains(" \(name) 100% ") && $0.hasSuffix(", finished") }
        }
        try first.send("start \(row.number ?? "")")
        try await first.row("f5") { $0.state == "finished" }
        #expect(try await first.quit() == 0)
        for number in 1...5 {
            let version = Version(seed: UInt64(number), length: Int64(number) * 200_000)
            #expect(place.holds("f\(number)", version))
        }
        let asked = server.log.requests.count
        for path in paths { server.set(.always(.unsatisfiable(total: nil)), for: path) }

        let second = try ExampleRun(.fileList, [place.path])
        _ = try await second.line { $0 == "7 files" }
        try second.send("start")
        try second.send("add \(links.joined(separator: " "))")
        for link in links { _ = try await second.line { $0 == "already complete: \(link)" } }
        let position = second.position
        try second.send("list")
        for _ in 0..<7 { _ = try await second.line(after: position) { $0.hasSuffix(", finished") } }
        #expect(server.log.requests.count == asked)
        try second.send("remove 1")
        try second.send("start 8")
        _ = try await second.line { $0 == "error: the list has no download 8" }
        #expect(try await second.quit() == 0)
        #expect(try place.names().count == 6)
        await server.stop()
    }

    /// O3: progress and completion arrive on the main actor without polling. Suspending keeps the bytes, also for an
    /// object that a later launch creates for the same URL.
    @Test func o3_oneObjectForOneURL() async throws {
        let place = try Place()
        defer { place.remove() }
        let server = try await slowServer(["/film": Resource(Self.version), "/gone": Resource(length: 1)])
        server.set(.always(.notFound), for: "/gone")
        let (link, gone) = (server.url("/film"), server.url("/gone"))
        let first = try ExampleRun(.oneObjectPerURL, [place.path])
        try first.send("open \(link)")
        _ = try await first.line { $0 == "\(link) ?%" }
        #expect(server.log.requests.isEmpty)
        try first.send("start \(link)")
        try first.send("start \(gone)")
        _ = try await first.line { $0.hasPrefix("\(gone) failed: ") }
        for percent in ["2", "3", "4"] { _ = try await first.line { $0.hasPrefix("\(link) \(percent)") } }
        try first.send("suspend \(link)")
        await server.log.wait { $0.requests.allSatisfy { $0.ended != nil } }
        #expect(try await first.quit() == 0)
        let served = server.log.bodyBytesServed("/film")

        let second = try ExampleRun(.oneObjectPerURL, [place.path])
        try second.send("open \(link)")
        let shown = try await second.line { $0.hasPrefix("\(link) ") && $0.hasSuffix("%") }
        #expect(Int(shown.dropFirst(link.count + 1).dropLast()).map { $0 >= 40 } == true, "\(shown)")
        #expect(server.log.bodyBytesServed("/film") == served)
        server.liftSharedRate()
        try second.send("start \(link)")
        #expect(try await second.path(report: "\(link) saved as ") == place.path + "/film")
        #expect(place.holds("film", Self.version))
        #expect(try place.names() == ["film"])
        #expect(try await second.quit() == 0)
        await server.stop()
    }

    /// O4: a player reads the file while it arrives, also while the server stops and starts again.
    @Test(arguments: transports) func o4_aFileIsPlayedWhileItArrives(_ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let server = try await slowServer(["/film": Resource(Self.version)])
        let link = server.url("/film")
        let run = try ExampleRun(.background, [place.path] + transport)
        try run.send("add \(link)")
        _ = try await run.row("film") { $0.held > 100_000 }
        try run.send("play \(link) \(place.path)/played")
        _ = try await run.line { $0.hasPrefix("played ") && $0.hasSuffix(" bytes of \(link)") }
        #expect(!FileManager.default.fileExists(atPath: place.path + "/film"), "bytes are read before the end")
        await server.refuseConnections()
        await server.closeConnections(reset: true)
        let position = run.position
        try await run.row("film", after: position) { $0.state.hasPrefix("waiting(") || $0.state == "connecting" }
        try await server.acceptConnections()
        try await run.row("film", after: position) { $0.state == "finished" }
        #expect(place.holds("film", Self.version))
        _ = try await run.line { $0 == "played all of \(link)" }
        #expect(place.holds("played", Self.version))
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O5: the server is lost and returns. The download reports this, waits, and resumes automatically. The moved file
    /// exists when it is reported, and its checksum was verified.
    @Test func o5_aConnectionIsLostAndReturns() async throws {
        let place = try Place()
        defer { place.remove() }
        let server = try await slowServer(["/archive": Resource(Self.version)])
        let link = server.url("/archive")
        let run = try ExampleRun(.archive, [place.path])
        try run.send("move \(link) moved")
        let before = try await run.row("archive") { $0.held > 1_000_000 }
        await server.refuseConnections()
        await server.closeConnections(reset: true)
        _ = try await run.line { $0.hasPrefix("connection lost: ") }
        let waiting = try await run.row("archive") { $0.state == "waiting(network)" }
        #expect(waiting.held > before.held - 272 * 1024, "the bytes are kept: \(waiting)")
        try await server.acceptConnections()
        _ = try await run.line { $0 == "connected again: \(link)" }
        #expect(try await run.path(report: "ready: ") == place.path + "/moved")
        #expect(place.holds("moved", Self.version))
        #expect(try place.names() == ["moved"])

        try run.send("move \(server.url("/archive?2")) wrong \(String(repeating: "0", count: 64))")
        let failure = try await run.line { $0.hasPrefix("failed: ") }
        #expect(failure.contains("checksum"), "\(failure)")
        #expect(!FileManager.default.fileExists(atPath: place.path + "/wrong"))
        #expect(try await run.quit() == 0)
        await server.stop()
    }

    /// O5: the loss of the machine's network is an event of its own, reported within two seconds.
    @Test(.enabled(if: getuid() == 0, "namespaces are made by root alone"))
    func o5_theNetworkOfTheMachineIsLostAndReturns() async throws {
        let place = try Place()
        defer { place.remove() }
        let link =
            "ip link add wire type veth peer name other; ip addr add 192.0.2.2/24 dev wire;"
            + " ip link set wire up; ip link set other up"
        let run = try ExampleRun(
            .archive, [place.path], prefix: ["/usr/bin/unshare", "-n", "/bin/sh", "-ec", link + "; exec \"$0\" \"$@\""])
        _ = try await run.line { $0 == "network: available" }
        for (change, state) in [("down", "unavailable"), ("up", "available")] {
            let position = run.position
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
            process.arguments = ["-t", "\(run.identifier)", "-n", "ip", "link", "set", "wire", change]
            _ = try await process.runToEnd()
            #expect(process.terminationStatus == 0)
            _ = try await run.line(after: position, within: .seconds(10)) { $0 == "network: \(state)" }
        }
        #expect(try await run.quit() == 0)
    }

    /// O5: an archive is unpacked once and deleted, and not downloaded again after a relaunch.
    @Test func o5_theArchiveIsUnpacked() async throws {
        let place = try Place()
        defer { place.remove() }
        let nginx = try await Nginx()
        let content = place.root.appendingPathComponent("list/pictures")
        try FileManager.default.createDirectory(
            at: content.appendingPathComponent("raw"), withIntermediateDirectories: true)
        let bytes = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
        try bytes.write(to: content.appendingPathComponent("raw/one.bin"))
        try Data("hello\n".utf8).write(to: content.appendingPathComponent("read me.txt"))
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/bin/tar")
        tar.arguments = ["-C", place.path + "/list", "-czf", nginx.folder.path + "/pictures.tar.gz", "pictures"]
        _ = try await tar.runToEnd()
        #expect(tar.terminationStatus == 0)

        let run = try ExampleRun(.archive, [place.path])
        let command = "unpack \(nginx.url("pictures.tar.gz")) out"
        try run.send(command)
        let out = try await run.path(report: "ready: ")
        #expect(out == place.path + "/out")
        #expect(try Data(contentsOf: URL(fileURLWithPath: out + "/pictures/raw/one.bin")) == bytes)
        #expect(try String(contentsOfFile: out + "/pictures/read me.txt", encoding: .utf8) == "hello\n")
        #expect(try place.names() == ["out"])
        #expect(try await run.quit() == 0)
        let asked = nginx.log.count
        let second = try ExampleRun(.archive, [place.path])
        #expect(try await second.path(report: "ready: ") == out)
        try second.send(command)
        #expect(try await second.quit() == 0)
        #expect(nginx.log.count == asked)
    }

    /// An app that imports the library links no web server. The fault server proves that the test would detect one.
    @Test func aClientLinksNoWebServer() throws {
        func names(_ program: String) throws -> Bool {
            let file = ExampleRun.products.appendingPathComponent(program)
            return try Data(contentsOf: file).range(of: Data("NIOPosix".utf8)) != nil
        }
        for example in Example.allCases { #expect(try !names(example.program)) }
        #expect(try names("fault-server"))
    }
}
