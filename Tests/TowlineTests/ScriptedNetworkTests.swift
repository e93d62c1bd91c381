import Foundation
import Testing
import Towline
import TowlineTesting

/// The tests of an app, as the documentation shows them: the library over a network in memory.
@Suite(.timeLimit(.minutes(1))) struct ScriptedNetworkTests {
    private static let data = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    private static let link = "https://example.org/film.mp4"

    private func withDownloader(
        retriesAfter interval: Duration = .milliseconds(50),
        _ body: (Downloader, ScriptedNetwork, DownloadRequest) async throws -> Void
    ) async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("scripted-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let network = ScriptedNetwork()
        var configuration = Downloader.Configuration()
        configuration.networkRetryInterval = interval
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
    @Test(arguments: [Duration.seconds(3600), .milliseconds(1)])
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
                    && snapshot.waitsUntil.map { $0.timeIntervalSinceNow > 100 } == true
            }
            network.isConnected = true
            #expect(try Data(contentsOf: try await download.file) == Self.data)
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
