import FaultServer
import Foundation
import Testing
import Towline

/// What a download waits for, and that it goes on by itself.
@Suite struct WaitTests {
    private static let version = Version(seed: 31, length: 2_000_000)

    @Test func aNetworkThatIsGoneIsWaitedFor() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.heldBytes > 500_000 }
        await site.server.refuseConnections()
        await site.server.closeConnections(reset: true)
        let waiting = try await download.reaches { $0.state == .waiting(.network) }
        #expect(waiting.reason?.isEmpty == false)
        #expect(waiting.waitsUntil != nil)
        #expect(waiting.heldBytes > 400_000)
        try await site.server.acceptConnections()
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    @Test func aNumberOfTriesIsALimit() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .always(.status(503)))])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file") { $0.maximumTries = 1 })
        let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
        #expect(error?.code == .transient)
        await downloader.close()
        await site.server.stop()
    }

    @Test func theServersWishIsVisible() async throws {
        let site = try await Site([
            "/file": Resource(Self.version, behaviour: .first(1, .retryAfter("2")))
        ])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        let waiting = try await download.reaches { $0.state == .waiting(.server) }
        #expect(waiting.waitsUntil.map { $0.timeIntervalSinceNow > 0.5 } == true)
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// A pause that comes while it waits is a pause: nothing goes on by itself.
    @Test func whatWaitsCanBePaused() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        await site.server.refuseConnections()
        let downloader = try await site.downloader { $0.networkRetryInterval = 0.3 }
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.state == .waiting(.network) }
        try await download.pause()
        try await site.server.acceptConnections()
        try await Task.sleep(for: .milliseconds(700))
        #expect(try await download.snapshot.state == .paused)
        #expect(site.server.log.requests.isEmpty)
        try await download.resume()
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }

    /// A pause may come at any moment between two tries: while the end of one is written down, while the next is taken
    /// from the list. What was paused stays so.
    @Test(.timeLimit(.minutes(1))) func aPauseIsNeverLost() async throws {
        let site = try await Site([:])
        await site.server.refuseConnections()
        let downloader = try await site.downloader {
            $0.networkRetryInterval = 0.001
            $0.maximumRunning = 20
            $0.maximumRunningPerHost = 20
        }
        var downloads: [Download] = []
        for number in 0..<20 {
            downloads.append(try await downloader.add(try site.request("/f\(number)") { $0.maximumTries = nil }))
        }
        for round in 0..<6 {
            try await Task.sleep(for: .milliseconds(7 * round))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for download in downloads { group.addTask { try await download.pause() } }
                try await group.waitForAll()
            }
            for download in downloads { try await download.reaches { $0.state == .paused } }
            try await Task.sleep(for: .milliseconds(30))
            for (number, download) in downloads.enumerated() {
                let state = try await download.snapshot.state
                #expect(state == .paused, "round \(round), download \(number)")
            }
            try await downloader.resumeAll()
        }
        await downloader.close()
        await site.server.stop()
    }
}
