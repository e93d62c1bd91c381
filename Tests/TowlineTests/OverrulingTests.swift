import FaultServer
import Foundation
import Testing
@testable import Towline
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineRegistry

/// A word of the caller's between the reading of the list and what is started by it.
@Suite struct OverrulingTests {
    typealias Word = @Sendable (DownloadCenter, DownloadID) async throws -> Void

    static let words: [(String, DownloadState?, Word)] = [
        ("pause", .paused, { try await $0.pause($1) }),
        ("cancel", .cancelled, { try await $0.cancel($1) }),
        ("remove", nil, { try await $0.remove($1, deletingFiles: true) }),
        ("pause all", .paused, { center, _ in try await center.pauseAll(group: nil) }),
    ]

    @Test(.timeLimit(.minutes(1)), arguments: words.indices)
    func aWordDuringTheLookIsObeyed(_ number: Int) async throws {
        let (name, state, word) = Self.words[number]
        let site = try await Site(["/file": Resource(Version(seed: 7, length: 4_000_000), rate: 200_000)])
        let registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        let center = Self.center(registry)
        await registry.keepBack()
        let id = try await center.add([try site.request("/file")])[0]
        await registry.somethingWasRead()
        try await word(center, id)
        // The look ends with what it read before; the word makes it look once more, and then nothing is left to start.
        await registry.handOver()
        await registry.somethingWasRead()
        let record = try await registry.download(id)
        #expect(record.map { DownloadSnapshot($0).state } == state, "\(name)")
        #expect(site.server.log.requests.isEmpty, "\(name)")
        await registry.letGo()
        await center.close()
        await site.server.stop()
    }

    /// Paused, and resumed while the pause is being written down.
    @Test(.timeLimit(.minutes(1))) func aResumeDuringTheEndIsObeyed() async throws {
        let site = try await Site(["/file": Resource(Version(seed: 7, length: 5_000_000), rate: 1_000_000)])
        let registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        let center = Self.center(registry)
        let id = try await center.add([try site.request("/file")])[0]
        await site.server.log.wait { $0.bodyBytesServed("/file") > 200_000 }
        await registry.holdBack(.paused)
        try await center.pause(id)
        await registry.somethingWasRead()
        // Nothing overtakes what is being written: the word waits for it.
        async let resumed: Void = center.resume(id)
        try await Task.sleep(for: .milliseconds(50))
        await registry.letGo()
        try await resumed
        while try await center.snapshot(id).state != .finished { try await Task.sleep(for: .milliseconds(20)) }
        #expect(await registry.written.count { $0 == .paused } == 1)
        await center.close()
        await site.server.stop()
    }

    private static func center(_ registry: any Registry) -> DownloadCenter {
        let storage = FileStorage()
        return DownloadCenter(
            registry: registry,
            services: TransferServices(
                transport: CurlTransport(), storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0)),
            files: LocalFiles(storage: storage), performer: LocalFollowUps(), configuration: Configuration(),
            hub: SnapshotHub())
    }
}
