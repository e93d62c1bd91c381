import FaultServer
import Foundation
import TestServers
import Testing

/// Tests of random SIGKILLs of each example program: the list keeps all downloads, the progress is shown before any
/// request, every file is correct, and few bytes are received twice.
@Suite(.serialized) struct KillTests {
    /// Larger files and more of them, so that downloads are running at every kill.
    private static let scale: Int64 = KillRounds.isTorture ? 10 : 1

    private func start(_ versions: [String: Version], rate: Int64) async throws -> FaultServer {
        var options = ServerOptions()
        options.sharedRate = rate
        let resources = versions.map { ("/\($0)", Resource($1)) }
        let server = try await FaultServer.start(Dictionary(uniqueKeysWithValues: resources), options: options)
        await server.refuseConnections()
        return server
    }

    @Test(arguments: [[], ["--url-session"]]) func pauseAndResume(_ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let film = Version(seed: 1, length: 12_000_000 * Self.scale)
        let server = try await start(["film": film], rate: 2_500_000)
        let rounds = KillRounds(
            example: .pauseAndResume, arguments: [place.path, server.url("/film")] + transport, server: server,
            commands: ["start"], isReady: { Row($0) != nil })
        try await rounds.run()
        server.liftSharedRate()
        let run = try ExampleRun(rounds.example, rounds.arguments)
        try run.send("start")
        try await run.path(report: "saved as ")
        #expect(try await run.quit() == 0)
        #expect(place.holds("film", film))
        #expect(try place.names() == ["film"])
        rounds.expectLittleRework(["film": film])

        await rounds.stopServer()
        let asked = server.log.requests.count
        let again = try ExampleRun(rounds.example, rounds.arguments)
        try await again.row { $0.state == "finished" && $0.percent == 100 }
        try again.send("start")
        #expect(try await again.quit() == 0)
        #expect(server.log.requests.count == asked, "a finished file sends no request")
        await server.stop()
    }

    @Test func fileList() async throws {
        let place = try Place()
        defer { place.remove() }
        var versions: [String: Version] = [:]
        for number in 0..<(KillRounds.isTorture ? 50 : 12) {
            // The lengths range from small files without a journal to files with several segments.
            let length = [40_000, 700_000, 2_500_000, 6_000_000][number % 4] + Int64(number) * 777
            versions["f\(number)"] = Version(seed: UInt64(number + 1), length: length)
        }
        let server = try await start(versions, rate: 3_000_000)
        let links = versions.keys.sorted().map { server.url("/\($0)") }.joined(separator: " ")
        let rounds = KillRounds(
            example: .fileList, arguments: [place.path], server: server, commands: ["add \(links)", "start"],
            isReady: { $0.hasSuffix(" files") })
        try await rounds.run()
        server.liftSharedRate()
        let run = try ExampleRun(.fileList, [place.path])
        _ = try await run.line { $0 == "\(versions.count) files" }
        #expect(Set(run.output().compactMap { Row($0)?.name }) == Set(versions.keys), "the list is complete")
        for command in rounds.commands { try run.send(command) }
        for name in versions.keys { try await run.row(name, within: .seconds(120)) { $0.state == "finished" } }
        for (name, version) in versions { #expect(place.holds(name, version), "\(name)") }
        #expect(try place.names() == versions.keys.sorted())
        #expect(try await run.quit() == 0)
        rounds.expectLittleRework(versions)

        let asked = server.log.requests.count
        let again = try ExampleRun(.fileList, [place.path])
        for command in rounds.commands { try again.send(command) }
        for link in links.split(separator: " ") {
            _ = try await again.line { $0 == "already complete: \(link)" }
        }
        #expect(try await again.quit() == 0)
        #expect(server.log.requests.count == asked, "a finished file sends no request")
        await server.stop()
    }

    @Test func oneObjectPerURL() async throws {
        let place = try Place()
        defer { place.remove() }
        let film = Version(seed: 3, length: 12_000_000 * Self.scale)
        let server = try await start(["film": film], rate: 2_500_000)
        let link = server.url("/film")
        let rounds = KillRounds(
            example: .oneObjectPerURL, arguments: [place.path], server: server, opening: ["open \(link)"],
            commands: ["start \(link)"], isReady: { $0.hasPrefix("\(link) ") && $0.hasSuffix("%") },
            progress: { line in
                guard line.hasPrefix("\(link) "), line.hasSuffix("%") else { return nil }
                let percent = line.dropFirst(link.count + 1).dropLast()
                return Int64(percent).map { (name: "film", held: $0 * film.length / 100) }
            })
        try await rounds.run()
        server.liftSharedRate()
        let run = try ExampleRun(.oneObjectPerURL, [place.path])
        try run.send("start \(link)")
        try await run.path(report: "saved as ")
        #expect(try await run.quit() == 0)
        #expect(place.holds("film", film))
        #expect(try place.names() == ["film"])
        rounds.expectLittleRework(["film": film])

        let asked = server.log.requests.count
        let again = try ExampleRun(.oneObjectPerURL, [place.path])
        try again.send("start \(link)")
        #expect(try await again.path(report: "saved as ") == place.path + "/film")
        #expect(try await again.quit() == 0)
        #expect(server.log.requests.count == asked, "a finished file sends no request")
        await server.stop()
    }

    @Test(arguments: [[], ["--url-session"]]) func background(_ transport: [String]) async throws {
        let place = try Place()
        defer { place.remove() }
        let versions = Dictionary(
            uniqueKeysWithValues: (1...3).map {
                ("f\($0)", Version(seed: UInt64($0), length: 4_000_000 * Self.scale + Int64($0) * 777))
            })
        let server = try await start(versions, rate: 2_500_000)
        let links = versions.keys.sorted().map { server.url("/\($0)") }
        let rounds = KillRounds(
            example: .background, arguments: [place.path] + transport, server: server,
            commands: ["add \(links.joined(separator: " "))", "play \(links[0]) \(place.path)/list/played"],
            stopsServerEvery: 5, isReady: { $0 == "ready" })
        try await rounds.run()
        server.liftSharedRate()
        // Downloads continue without a command.
        let run = try ExampleRun(.background, rounds.arguments)
        for name in versions.keys { try await run.row(name) { $0.state == "finished" } }
        for (name, version) in versions { #expect(place.holds(name, version), "\(name)") }
        try run.send(rounds.commands[1])
        _ = try await run.line { $0 == "played all of \(links[0])" }
        #expect(place.holds("list/played", versions["f1"] ?? Version(length: 0)))
        #expect(try await run.quit() == 0)
        #expect(try place.names() == versions.keys.sorted())
        rounds.expectLittleRework(versions)

        let asked = server.log.requests.count
        let again = try ExampleRun(.background, rounds.arguments)
        try again.send(rounds.commands[0])
        _ = try await again.line { $0 == "ready" }
        #expect(try await again.quit() == 0)
        #expect(again.output().compactMap { Row($0)?.state }.allSatisfy { $0 == "finished" })
        #expect(server.log.requests.count == asked, "a finished file sends no request")
        await server.stop()
    }

    @Test func archive() async throws {
        let place = try Place()
        defer { place.remove() }
        let film = Version(seed: 5, length: 10_000_000 * Self.scale)
        let server = try await start(["film": film], rate: 2_000_000)
        let link = server.url("/film")
        let rounds = KillRounds(
            example: .archive, arguments: [place.path], server: server, commands: ["move \(link) moved"],
            stopsServerEvery: 5, isReady: { $0.hasSuffix(" archives") },
            // The move changes the name.
            progress: { line in Row(line).map { ("film", $0.held) } })
        try await rounds.run()
        server.liftSharedRate()
        let run = try ExampleRun(.archive, [place.path])
        #expect(try await run.path(report: "ready: ") == place.path + "/moved")
        #expect(try await run.quit() == 0)
        #expect(place.holds("moved", film))
        #expect(try place.names() == ["moved"])
        rounds.expectLittleRework(["film": film])

        let asked = server.log.requests.count
        let again = try ExampleRun(.archive, [place.path])
        try again.send(rounds.commands[0])
        #expect(try await again.path(report: "ready: ") == place.path + "/moved")
        #expect(try await again.quit() == 0)
        #expect(server.log.requests.count == asked, "a finished file sends no request")
        await server.stop()
    }
}
