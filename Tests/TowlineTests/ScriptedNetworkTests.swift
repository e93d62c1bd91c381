import Foundation
import Testing
import Towline
import TowlineTesting

/// The tests of an app, as the documentation shows them: the library over a network in memory.
@Suite(.timeLimit(.minutes(1))) struct ScriptedNetworkTests {
    private static let data = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    private static let link = "https://example.org/film.mp4"

    private func withDownloader(
        retriesAfter interval: Duration = .milliseconds(50), renewal: (any LinkRenewal)? = nil,
        _ body: (Downloader, ScriptedNetwork, DownloadRequest) async throws -> Void
    ) async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("scripted-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let network = ScriptedNetwork()
        var configuration = Downloader.Configuration()
        configuration.networkRetryInterval = interval
        configuration.linkRenewal = renewal
        let downloader = try await Downloader(
            stateDirectory: root.appendingPathComponent("state"), configuration: configuration,
            transport: network.transport)
        let link = try #require(URL(string: Self.link))
        try await body(downloader, network, DownloadRequest(from: link, to: .directory(root)))
        await downloader.close()
    }

    @Test func aFileArrives() async throws {
        try await withDownloader { downloader, network, request in
            network[Self.link] = .init(Self.data)
            let file = try await downloader.add(request).file
            #expect(try Data(contentsOf: file) == Self.data)
            #expect(network.requests.first?.range == "bytes=0-")
        }
    }

    @Test func aPausedDownloadContinuesWhereItStopped() async throws {
        try await withDownloader { downloader, network, request in
            network[Self.link] = .init(Self.data, bytesPerSecond: 2_000_000)
            let download = try await downloader.add(request)
            try await download.reaches { $0.heldBytes > 200_000 }
            try await download.pause()
            let before = network.requests.count
            try await download.start()
            #expect(try Data(contentsOf: try await download.file) == Self.data)
            #expect(network.requests.dropFirst(before).allSatisfy { $0.range != "bytes=0-" })
        }
    }

    @Test func aLostNetworkIsWaitedFor() async throws {
        try await withDownloader { downloader, network, request in
            network[Self.link] = .init(Self.data, bytesPerSecond: 2_000_000)
            let download = try await downloader.add(request)
            try await download.reaches { $0.heldBytes > 100_000 }
            network.isConnected = false
            try await download.reaches { if case .waiting = $0.state { true } else { false } }
            network.isConnected = true
            #expect(try Data(contentsOf: try await download.file) == Self.data)
        }
    }

    /// The transfer waits between its attempts, and the download waits after the transfer ended.
    @Test(arguments: [Duration.seconds(60), .milliseconds(1)])
    func aReconnectedNetworkEndsAnyWaitAtOnce(_ wait: Duration) async throws {
        try await withDownloader(retriesAfter: .seconds(3600)) { downloader, network, request in
            network[Self.link] = .init(Self.data, bytesPerSecond: 2_000_000)
            var request = request
            request.retryWait = wait
            let download = try await downloader.add(request)
            try await download.reaches { $0.heldBytes > 100_000 }
            #expect(downloader.network == .available)
            network.isConnected = false
            #expect(downloader.network == .unavailable)
            try await download.reaches { snapshot in
                snapshot.state == .waiting(.network)
                    && snapshot.waitsUntil.map { $0.timeIntervalSinceNow > 40 } == true
            }
            let start = ContinuousClock.now
            network.isConnected = true
            #expect(try Data(contentsOf: try await download.file) == Self.data)
            #expect(ContinuousClock.now - start < .seconds(30))
        }
    }

    // MARK: The clock

    @Test(arguments: [nil, "3600"]) func aWaitEndsWhenTheClockIsAdvanced(_ retryAfter: String?) async throws {
        try await withDownloader(retriesAfter: .seconds(300)) { downloader, network, request in
            var busy = ScriptedNetwork.Resource(status: 503)
            busy.fields = retryAfter.map { ["Retry-After": $0] } ?? [:]
            network[Self.link] = busy
            var request = request
            request.retryWait = .milliseconds(1)
            let download = try await downloader.add(request)
            let waiting = try await download.reaches { snapshot in
                snapshot.waitsUntil.map { $0.timeIntervalSince(network.clock.now) > 200 } == true
            }
            #expect(waiting.state == .waiting(retryAfter == nil ? .retry : .server))
            network[Self.link] = .init(Self.data)
            let start = network.clock.now
            network.clock.advance(by: .seconds(3600))
            #expect(network.clock.now.timeIntervalSince(start) >= 3600)
            #expect(try Data(contentsOf: try await download.file) == Self.data)
            let endedAt = try #require(try await download.snapshot.endedAt)
            #expect(abs(endedAt.timeIntervalSince(network.clock.now)) < 60)
        }
    }

    /// A connection is not silent in the time that the clock skips.
    @Test func theBytesOfTheAdvancedTimeArrive() async throws {
        try await withDownloader { downloader, network, request in
            network[Self.link] = .init(Self.data, bytesPerSecond: 20_000)
            var request = request
            request.connections = 1
            let download = try await downloader.add(request)
            try await download.reaches { $0.heldBytes > 0 }
            network.clock.advance(by: .seconds(100))
            #expect(try Data(contentsOf: try await download.file) == Self.data)
            #expect(network.requests.count == 1)
        }
    }

    /// Links with an expiry time are renewed shortly before.
    @Test func aLinkExpiresWhenTheClockIsAdvanced() async throws {
        final class Renewal: LinkRenewal {
            func renewedLink(for request: DownloadRequest, reason: LinkRenewalReason) async -> RenewedLink? {
                guard case .expires = reason, let url = URL(string: ScriptedNetworkTests.link) else { return nil }
                return RenewedLink(url: url)
            }
        }
        try await withDownloader(renewal: Renewal()) { downloader, network, request in
            let expiry = Int(network.clock.now.timeIntervalSince1970) + 600
            let old = "\(Self.link)?Expires=\(expiry)&Signature=a"
            network[old] = .init(Self.data, bytesPerSecond: 1000)
            network[Self.link] = .init(Self.data)
            var request = request
            request.url = try #require(URL(string: old))
            // A single connection: the file does not end before the link does.
            request.connections = 1
            let download = try await downloader.add(request)
            try await download.reaches { $0.heldBytes > 0 }
            network.clock.advance(by: .seconds(600))
            #expect(try Data(contentsOf: try await download.file) == Self.data)
            #expect(network.requests.last?.url == Self.link)
        }
    }

    @Test func aMissingFileIsAnError() async throws {
        try await withDownloader { downloader, network, request in
            network[Self.link] = .init(status: 404)
            let download = try await downloader.add(request)
            let error = await #expect(throws: TowlineError.self) { _ = try await download.file }
            #expect(error?.code == .notFound && error?.status == 404)
        }
    }

    @Test func withoutRangesAPauseLosesBytesAndSaysSo() async throws {
        try await withDownloader { downloader, network, request in
            var resource = ScriptedNetwork.Resource(Self.data, entityTag: nil, bytesPerSecond: 1_000_000)
            resource.supportsRanges = false
            network[Self.link] = resource
            let download = try await downloader.add(request)
            let snapshot = try await download.reaches { $0.heldBytes > 100_000 }
            #expect(!snapshot.canPauseWithoutLoss)
        }
    }
}
