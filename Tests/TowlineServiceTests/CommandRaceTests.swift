import FaultServer
import Testing
import Towline

/// Two concurrent commands for one download have the result of some sequential order.
@Suite struct CommandRaceTests {
    @Test(.timeLimit(.minutes(2)), arguments: ["resume", "pause"]) func aCancelledDownloadStaysCancelled(
        _ other: String
    ) async throws {
        let site = try await ServiceSite(["/a.bin": Resource(length: 100_000_000, rate: 1_000_000)])
        for round in 0..<40 {
            let id = try await site.add("/a.bin?\(round)", ["startsPaused": other == "resume"])
            async let cancelled = site.ask("POST", "/downloads/\(id)/actions/cancel").status
            async let answer = site.ask("POST", "/downloads/\(id)/actions/\(other)").status
            #expect(try await cancelled == 200)
            #expect([200, 409].contains(try await answer))
            #expect(try await site.ask("GET", "/downloads/\(id)").object["state"] as? String == "cancelled")
            #expect(try await site.ask("DELETE", "/downloads/\(id)").status == 204)
        }
        #expect(try await site.service.downloader.totals.counts.values.allSatisfy { $0 == 0 })
        try await site.stop()
    }

    /// After concurrent commands, the response of the next command matches the state at once.
    @Test(.timeLimit(.minutes(2))) func aPauseAndAResumeAreBothTrue() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(length: 100_000_000, rate: 1_000_000)])
        let id = try await site.add("/a.bin")
        for round in 0..<40 {
            async let paused = site.ask("POST", "/downloads/\(id)/actions/pause").status
            async let resumed = site.ask("POST", "/downloads/\(id)/actions/resume").status
            #expect(try await [paused, resumed] == [200, 200])
            let command = round.isMultiple(of: 2) ? "pause" : "resume"
            #expect(try await site.ask("POST", "/downloads/\(id)/actions/\(command)").status == 200)
            let state = try await site.ask("GET", "/downloads/\(id)").object["state"] as? String
            #expect((state == "paused") == (command == "pause"), "\(round): \(state as Any)")
        }
        try await site.stop()
    }
}
