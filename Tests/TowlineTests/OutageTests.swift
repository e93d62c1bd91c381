import FaultServer
import Foundation
import Testing
import TowlineEngine
import TowlineTesting

@testable import Towline
@testable import TowlineCore

/// The state of a download while no bytes arrive, because the network or the server is gone.
@Suite(.timeLimit(.minutes(2))) struct OutageTests {
    private static let version = Version(seed: 32, length: 2_000_000)

    /// The report of a transfer.
    private struct Report {
        let state: DownloadState
        var received: Int64 = 0
        var lacksNetwork = true

        var snapshot: TransferSnapshot {
            var snapshot = TransferSnapshot()
            (snapshot.state, snapshot.receivedBytes) = (state, received)
            if state == .waiting(.retry) {
                snapshot.wait = .init(remaining: .seconds(1), reason: "refused", lacksNetwork: lacksNetwork)
            }
            return snapshot
        }
    }

    /// Returns the states that are shown for reports with an interval of 600 ms.
    private static func states(
        _ reports: [Report], _ network: NetworkState, after wait: DownloadState.WaitReason? = nil
    ) -> [DownloadState] {
        var now = Duration.zero
        var outage = Outage(wait, now: now)
        return reports.map { report in
            now += .milliseconds(600)
            return outage.state(report.snapshot, network, now: now)
        }
    }

    @Test(arguments: [true, false]) func attemptsAfterAFailureAreOneWait(_ lacksNetwork: Bool) {
        let reports = [
            Report(state: .downloading, received: 5), Report(state: .waiting(.retry), received: 5),
            Report(state: .connecting, received: 5), Report(state: .downloading, received: 5),
            Report(state: .waiting(.retry), received: 5), Report(state: .downloading, received: 6),
        ]
        let states = Self.states(
            reports.map { Report(state: $0.state, received: $0.received, lacksNetwork: lacksNetwork) }, .available)
        let wait = DownloadState.waiting(lacksNetwork ? .network : .retry)
        #expect(states == [.downloading, wait, wait, wait, wait, .downloading])
    }

    @Test func aSilentDownloadWaitsForALostNetwork() {
        let reports = (0..<4).map { _ in Report(state: .downloading, received: 5) }
        #expect(
            Self.states(reports, .unavailable)
                == [.downloading, .downloading, .waiting(.network), .waiting(.network)])
        #expect(Self.states(reports, .available) == reports.map(\.state))
    }

    /// Bytes arrive from a server on this machine, or over a network that the system does not report.
    @Test func bytesProveThatTheServerCanBeReached() {
        let reports = (1...5).map { Report(state: .downloading, received: Int64($0)) }
        #expect(Self.states(reports, .unavailable) == reports.map(\.state))
    }

    @Test func theNextTransferContinuesTheWait() {
        let states: [DownloadState] = [.connecting, .downloading, .downloading]
        let reports = zip(states, [0, 0, 1]).map { Report(state: $0, received: $1) }
        #expect(
            Self.states(reports, .available, after: .network)
                == [.waiting(.network), .waiting(.network), .downloading])
    }

    /// The states of a download from now until its end, without repetitions.
    private static func states(of download: Download) -> Task<[DownloadState], Never> {
        Task {
            var states: [DownloadState] = []
            for await snapshot in await download.snapshots {
                if states.last != snapshot.state { states.append(snapshot.state) }
                if snapshot.isOver { break }
            }
            return states
        }
    }

    /// The connection stays open and silent, as after the loss of a link.
    @Test func aLostNetworkIsReportedAndItsConnectionsAreReplaced() async throws {
        let site = try await Site([
            "/file": Resource(Self.version, behaviour: .first(1, .stall(after: 1_500_000)))
        ])
        let monitor = ScriptedMonitor()
        let downloader = try await site.downloader(monitor: monitor)
        var changes = downloader.networkChanges.makeAsyncIterator()
        let download = try await downloader.add(try site.request("/file") { $0.connections = 1 })
        try await download.reaches { $0.receivedBytes >= 1_000_000 }
        let states = Self.states(of: download)
        let clock = ContinuousClock()
        let loss = clock.now
        monitor.set(.unavailable)
        #expect(await changes.next() == .unavailable)
        #expect(downloader.network == .unavailable)
        let waiting = try await download.reaches { $0.state == .waiting(.network) }
        #expect(clock.now - loss < .seconds(2))
        #expect(waiting.reason == Outage.noNetwork && waiting.rate == nil && waiting.waitsUntil == nil)
        let took = try await clock.measure {
            monitor.set(.available)
            _ = try await download.file
        }
        #expect(took < .seconds(5), "\(took)")
        #expect(await changes.next() == .available)
        #expect(await states.value.count { $0 == .waiting(.network) } == 1)
        #expect(site.server.log.requests("/file").count == 2)
        await downloader.close()
        await site.server.stop()
    }

    /// Several transfers fail in this time, each after several attempts.
    @Test func aServerThatIsGoneIsOneStateUntilBytesArrive() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        let downloader = try await site.downloader(monitor: ScriptedMonitor())
        let request = try site.request("/file") { $0.retryWait = .milliseconds(100) }
        let download = try await downloader.add(request)
        try await download.reaches { $0.heldBytes > 500_000 }
        let states = Self.states(of: download)
        await site.server.refuseConnections()
        await site.server.closeConnections(reset: true)
        try await download.reaches { $0.state == .waiting(.network) }
        // The states of some time are tested, so the time must pass.
        try await Task.sleep(for: .seconds(6))
        try await site.server.acceptConnections()
        _ = try await download.file
        let seen = await states.value
        let first = try #require(seen.firstIndex(of: .waiting(.network)))
        #expect(seen[(first + 1)...].first == .downloading, "\(seen)")
        #expect(!seen[(first + 1)...].contains(.waiting(.network)), "\(seen)")
        await downloader.close()
        await site.server.stop()
    }
}
