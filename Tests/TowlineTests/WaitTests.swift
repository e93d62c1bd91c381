import FaultServer
import Foundation
import Testing
import Towline

/// Downloads wait for the network and the server, and resume automatically.
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

    /// The number of received bytes stays in the snapshots after the end, until the process ends.
    @Test func theReceivedBytesOfAFinishedDownloadAreKnown() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        var downloader = try await site.downloader()
        var download = try await downloader.add(try site.request("/file"))
        let finished = try await download.reaches { $0.state == .finished }
        #expect(finished.receivedBytes >= Self.version.length)
        #expect(try await download.snapshot.receivedBytes == finished.receivedBytes)
        #expect(try await downloader.page().downloads.map(\.receivedBytes) == [finished.receivedBytes])
        await downloader.close()
        downloader = try await site.downloader()
        download = try #require(try await downloader.download(download.id))
        #expect(try await download.snapshot.receivedBytes == 0)
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

    @Test func aWaitingDownloadCausesFewEvents() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .first(1, .retryAfter("9")))])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.state == .waiting(.server) }
        let events = downloader.events
        let counter = Task {
            var count = 0
            for await case .changed in events { count += 1 }
            return count
        }
        // The number of events in a time is measured, so the time must pass.
        try await Task.sleep(for: .seconds(3))
        await downloader.close()
        #expect(await counter.value <= 3)
        await site.server.stop()
    }

    /// A long `Retry-After` makes room for other downloads, and the download resumes afterwards. The time is long
    /// enough that more than ten seconds are left when the last download starts, even on a slow machine.
    @Test(.timeLimit(.minutes(1))) func aLongWaitForTheServerMakesRoomForOthers() async throws {
        let site = try await Site([
            "/file": Resource(Self.version, behaviour: .first(1, .retryAfter("25"))),
            "/other": Resource(Self.version),
        ])
        let other = try await Site(["/other": Resource(Self.version)])
        let downloader = try await site.downloader { $0.maximumRunning = 1 }
        let download = try await downloader.add(try site.request("/file"))
        let second = try await downloader.add(try other.request("/other"))
        // A download from the same host waits too, and does not count as running meanwhile.
        let third = try await downloader.add(try site.request("/other"))
        _ = try await second.file
        let waiting = try await download.snapshot
        #expect(waiting.state == .waiting(.server))
        #expect(waiting.waitsUntil.map { (1...25).contains($0.timeIntervalSinceNow) } == true)
        #expect(waiting.reason?.isEmpty == false)
        try await third.reaches { $0.state == .waiting(.server) && $0.waitsUntil.map { $0 > .now } == true }
        while try await downloader.totals.counts[.waiting] != 2 { try await Task.sleep(for: .milliseconds(20)) }
        _ = try await download.file
        _ = try await third.file
        #expect(site.server.log.requests("/file").count { $0.status == 429 } == 1)
        await downloader.close()
        await site.server.stop()
        await other.server.stop()
    }

    /// A resume by the user overrides the `Retry-After` of the host.
    @Test(.timeLimit(.minutes(1)), arguments: ["5", "600"], [false, true])
    func aWaitForTheServerIsOverruled(_ time: String, _ isLedThere: Bool) async throws {
        let asking = Resource(Self.version, behaviour: .first(1, .retryAfter(time)))
        let other = try await FaultServer.start(["/file": asking])
        let leading = Behaviour { [url = other.url("/file")] _ in Reply(302, [("Location", url)]) }
        let site = try await Site(["/file": isLedThere ? Resource(Self.version, behaviour: leading) : asking])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.state == .waiting(.server) }
        let clock = ContinuousClock()
        let took = try await clock.measure {
            try await download.resume()
            _ = try await download.file
        }
        #expect(took < .seconds(4), "\(took)")
        await downloader.close()
        await site.server.stop()
        await other.stop()
    }

    /// A waiting download that is paused does not resume automatically.
    @Test func whatWaitsCanBePaused() async throws {
        let site = try await Site(["/file": Resource(Self.version)])
        await site.server.refuseConnections()
        let downloader = try await site.downloader { $0.networkRetryInterval = .seconds(0.3) }
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.state == .waiting(.network) }
        try await download.pause()
        try await site.server.acceptConnections()
        // No request may be sent within two retry intervals.
        try await Task.sleep(for: .milliseconds(700))
        #expect(try await download.snapshot.state == .paused)
        #expect(site.server.log.requests.isEmpty)
        try await download.resume()
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }
}
