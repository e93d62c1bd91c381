import FaultServer
import Foundation
import Testing
@testable import Towline
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineRegistry

/// Commands that arrive between reading the list and starting downloads, or during another change, take effect.
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
        // The scheduler continues with the earlier result. The command makes it read the list again, without a result.
        await registry.handOver()
        await registry.somethingWasRead()
        let record = try await registry.download(id)
        #expect(record.map { DownloadSnapshot($0).state } == state, "\(name)")
        #expect(site.server.log.requests.isEmpty, "\(name)")
        await registry.letGo()
        await center.close()
        await site.server.stop()
    }

    /// A download is resumed while its pause is being written.
    @Test(.timeLimit(.minutes(1))) func aResumeDuringTheEndIsObeyed() async throws {
        let site = try await Site(["/file": Resource(Version(seed: 7, length: 5_000_000), rate: 1_000_000)])
        let registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        let center = Self.center(registry)
        let id = try await center.add([try site.request("/file")])[0]
        await site.server.log.wait { $0.bodyBytesServed("/file") > 200_000 }
        await registry.holdBack(.paused)
        async let paused: Void = center.pause(id)
        await registry.somethingWasRead()
        // The resume waits until the pause is written. The beginning of its wait cannot be observed.
        async let resumed: Void = center.resume(id)
        try await Task.sleep(for: .milliseconds(50))
        await registry.letGo()
        try await paused
        try await resumed
        while try await center.list.snapshot(id).state != .finished { try await Task.sleep(for: .milliseconds(20)) }
        #expect(await registry.written.count { $0 == .paused } == 1)
        await center.close()
        await site.server.stop()
    }

    /// A SIGKILL after `pause` returned must not cause the download to continue.
    @Test(.timeLimit(.minutes(1))) func aPauseIsInTheListWhenItIsAnswered() async throws {
        let site = try await Site(["/file": Resource(Version(seed: 7, length: 5_000_000), rate: 1_000_000)])
        let registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        let center = Self.center(registry)
        for all in [false, true] {
            let id = try await center.add([try site.request("/file")])[0]
            await site.server.log.wait { $0.bodyBytesServed("/file") > 200_000 }
            if all { try await center.pauseAll(group: nil) } else { try await center.pause(id) }
            #expect(try await registry.download(id)?.state == .paused)
            #expect(try await center.list.snapshot(id).state == .paused)
            try await center.remove(id, deletingFiles: true)
        }
        await center.close()
        await site.server.stop()
    }

    /// A command that is delayed before its write decides again with the new state.
    @Test(.timeLimit(.minutes(1)), arguments: [true, false]) func aCommandDuringAnother(_ cancelIsLate: Bool)
        async throws
    {
        let site = try await Site(["/file": Resource(Version(seed: 7, length: 5_000_000), rate: 1_000_000)])
        let registry = LateRegistry(
            try await SQLiteRegistry.open(
                stateDirectory: site.root.appendingPathComponent("state").path, rebuild: { _ in [] }))
        let center = Self.center(registry)
        var request = try site.request("/file")
        request.startsPaused = true
        let id = try await center.add([request])[0]
        await registry.holdBack(cancelIsLate ? .cancelled : .queued)
        async let late: Void = cancelIsLate ? center.cancel(id) : center.resume(id)
        await registry.somethingWasRead()
        if cancelIsLate { try await center.resume(id) } else { try await center.cancel(id) }
        await registry.letGo()
        if cancelIsLate {
            try await late
        } else {
            do {
                try await late
                Issue.record("a cancelled download was resumed")
            } catch let error as TowlineError {
                #expect(error.code == .illegalTransition)
            }
        }
        #expect(try await registry.download(id)?.state == .cancelled)
        #expect(try await center.list.snapshot(id).state == .cancelled)
        await center.close()
        await site.server.stop()
    }

    private static func center(_ registry: any Registry) -> DownloadCenter {
        let storage = FileStorage()
        return DownloadCenter(
            registry: registry,
            services: TransferServices(
                transport: CurlTransport(), storage: storage, board: HostBoard(), limiter: RateLimiter(rate: 0)),
            files: LocalFiles(storage: storage), performer: LocalFollowUps(), configuration: Downloader.Configuration(),
            hub: SnapshotHub())
    }
}
