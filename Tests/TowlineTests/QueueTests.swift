import FaultServer
import Foundation
import Testing
import Towline

/// Tests of the order in which downloads run: limits, priorities, groups, positions.
@Suite struct QueueTests {
    private func resources(_ count: Int, length: Int64 = 400_000) -> [String: Resource] {
        Dictionary(
            uniqueKeysWithValues: (0..<count).map {
                ("/f\($0)", Resource(Version(seed: UInt64($0 + 1), length: length)))
            })
    }

    /// Returns the requested paths, in the order of their first requests.
    private func order(_ site: Site) -> [String] {
        var seen: [String] = []
        for request in site.server.log.requests where !seen.contains(request.path) { seen.append(request.path) }
        return seen
    }

    @Test func noMoreRunAtOnceThanAllowed() async throws {
        let site = try await Site(resources(8), rate: 3_000_000)
        let downloader = try await site.downloader { configuration in
            configuration.maximumRunning = 2
            configuration.maximumRunningPerHost = 8
        }
        var most = 0
        let events = downloader.events
        let downloads = try await downloader.add(contentsOf: (0..<8).map { try site.request("/f\($0)") })
        var running: Set<DownloadID> = []
        var over = 0
        for await event in events {
            guard case .changed(let snapshot) = event else { continue }
            if snapshot.isOver {
                running.remove(snapshot.id)
                over += 1
            } else if [.connecting, .downloading, .verifying, .publishing].contains(snapshot.state) {
                running.insert(snapshot.id)
            }
            most = max(most, running.count)
            if over == downloads.count { break }
        }
        #expect(most == 2)
        await downloader.close()
        await site.server.stop()
    }

    @Test func higherPrioritiesGoFirstAndOrderCanBeChanged() async throws {
        let site = try await Site(resources(5))
        let downloader = try await site.downloader { $0.maximumRunning = 1 }
        try await downloader.setLimit(0, forGroup: "held")
        let downloads = try await downloader.add(
            contentsOf: (0..<5).map { number in try site.request("/f\(number)") { $0.group = "held" } })
        try await downloads[3].setPriority(5)
        try await downloads[4].move(before: downloads[1].id)
        #expect(site.server.log.requests.isEmpty, "no download of the group may run")
        try await downloader.setLimit(nil, forGroup: "held")
        for download in downloads { _ = try await download.file }
        #expect(order(site) == ["/f3", "/f0", "/f4", "/f1", "/f2"])
        await downloader.close()
        await site.server.stop()
    }

    @Test func aHostsLimitHoldsItsOwnBackOnly() async throws {
        let slow = try await Site(resources(3, length: 2_000_000), rate: 500_000)
        let other = try await Site(resources(1))
        let downloader = try await slow.downloader { configuration in
            configuration.maximumRunning = 4
            configuration.maximumRunningPerHost = 1
        }
        _ = try await downloader.add(contentsOf: (0..<3).map { try slow.request("/f\($0)") })
        let quick = try await downloader.add(try other.request("/f0"))
        _ = try await quick.file
        #expect(order(slow) == ["/f0"], "the download of the other host did not wait for those of the slow host")
        await downloader.close()
        await slow.server.stop()
        await other.server.stop()
    }

    @Test func pauseAllAndResumeAll() async throws {
        let site = try await Site(resources(4, length: 1_500_000), rate: 2_000_000)
        let downloader = try await site.downloader { $0.maximumRunning = 2 }
        let downloads = try await downloader.add(
            contentsOf: (0..<4).map { number in try site.request("/f\(number)") { $0.group = number < 2 ? "a" : "b" } })
        try await downloads[0].reaches { $0.heldBytes > 100_000 }
        try await downloader.pauseAll()
        for download in downloads { try await download.reaches { $0.state == .paused } }
        try await downloader.startAll(group: "b")
        _ = try await downloads[2].file
        _ = try await downloads[3].file
        #expect(try await downloads[0].snapshot.state == .paused)
        try await downloader.startAll()
        for download in downloads { _ = try await download.file }
        #expect(try await downloader.totals.counts[.finished] == 4)
        await downloader.close()
        await site.server.stop()
    }

    /// The totals are current, although the list is updated only every few seconds.
    @Test func totalsKeepUpWithWhatRuns() async throws {
        let site = try await Site(resources(2, length: 2_000_000), rate: 400_000)
        let downloader = try await site.downloader()
        let downloads = try await downloader.add(contentsOf: (0..<2).map { try site.request("/f\($0)") })
        for download in downloads { try await download.reaches { $0.heldBytes > 150_000 } }
        let before = try await downloads.held
        let totals = try await downloader.totals
        #expect(totals.heldBytes >= before && totals.completeLength == 4_000_000, "\(totals), \(before)")
        #expect(totals.heldBytes <= (try await downloads.held))
        await downloader.close()
        await site.server.stop()
    }

    @Test func limitsAreKeptAndChangedWhileItRuns() async throws {
        let site = try await Site(resources(1, length: 4_000_000))
        var downloader = try await site.downloader()
        try await downloader.setMaximumRunning(7)
        try await downloader.setRateLimit(200_000)
        await downloader.close()
        downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/f0"))
        let start = ContinuousClock.now
        try await download.reaches { $0.heldBytes > 300_000 }
        #expect(ContinuousClock.now - start > .milliseconds(400), "the earlier limit is in effect")
        try await downloader.setRateLimit(0)
        _ = try await download.file
        #expect(ContinuousClock.now - start < .seconds(15), "the limit ends immediately")
        await downloader.close()
        await site.server.stop()
    }

    @Test func pagesComeInEveryOrder() async throws {
        let site = try await Site(resources(6))
        let downloader = try await site.downloader()
        _ = try await downloader.add(
            contentsOf: (0..<6).map { number in try site.request("/f\(number)") { $0.startsPaused = true } })
        for order in DownloadQuery.Order.allCases {
            var query = DownloadQuery()
            query.order = order
            query.limit = 4
            let first = try await downloader.page(query)
            query.cursor = first.next
            let second = try await downloader.page(query)
            #expect(first.downloads.count == 4 && second.downloads.count == 2 && second.next == nil, "\(order)")
            #expect(Set((first.downloads + second.downloads).map(\.id)).count == 6)
        }
        var query = DownloadQuery()
        query.text = "F3"
        #expect(try await downloader.page(query).downloads.count == 1)
        query.text = nil
        query.filters = [.finished]
        #expect(try await downloader.page(query).downloads.isEmpty)
        await downloader.close()
        await site.server.stop()
    }

    /// Readers of queued downloads receive a snapshot when all downloads are paused or resumed.
    @Test(.timeLimit(.minutes(1))) func whatWaitsForItsTurnHearsOfAPauseOfAll() async throws {
        let site = try await Site(resources(3), rate: 50_000)
        let downloader = try await site.downloader { $0.maximumRunning = 1 }
        let downloads = try await downloader.add(contentsOf: (0..<3).map { try site.request("/f\($0)") })
        try await downloads[0].reaches { $0.state == .downloading }
        var snapshots = await downloads[2].snapshots.makeAsyncIterator()
        #expect(await snapshots.next()?.state == .queued)
        try await downloader.pauseAll()
        #expect(await snapshots.next()?.state == .paused)
        try await downloader.startAll()
        #expect(await snapshots.next()?.state == .queued)
        await downloader.close()
        await site.server.stop()
    }
}

extension [Download] {
    /// The number of downloaded bytes of all downloads together.
    fileprivate var held: Int64 {
        get async throws {
            var sum: Int64 = 0
            for download in self { sum += try await download.snapshot.heldBytes }
            return sum
        }
    }
}
