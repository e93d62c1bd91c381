import FaultServer
import Foundation
import Testing
import Towline

/// What a launch finds, and what an end leaves.
@Suite(.serialized) struct LaunchTests {
    private static let version = Version(seed: 9, length: 4_000_000)

    @Test func whatRanGoesOnAfterARelaunch() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        var downloader = try await site.downloader()
        let id = try await downloader.add(try site.request("/file") { $0.metadata = ["a": "b"] }).id
        try await #require(try await downloader.download(id)).reaches { $0.heldBytes > 1_000_000 }
        await downloader.close()
        await downloader.close()
        let served = site.server.log.bodyBytesServed("/file")

        downloader = try await site.downloader()
        let download = try #require(try await downloader.download(id))
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        #expect(try await download.snapshot.metadata == ["a": "b"])
        #expect(site.server.log.bodyBytesServed("/file") - served < Self.version.length - 900_000)
        await downloader.close()
        await site.server.stop()
    }

    @Test func twoOnOneStateDirectoryIsAClearError() async throws {
        let site = try await Site([:])
        let first = try await site.downloader()
        let error = await #expect(throws: TowlineError.self) { _ = try await site.downloader() }
        #expect(error?.code == .registryBusy)
        #expect(error?.message.contains("this process") == true, "\(error?.message ?? "")")
        await first.close()
        let second = try await site.downloader()
        await second.close()
        await site.server.stop()
    }

    /// O1: everything is released, by `close` and by letting go: no thread, no descriptor.
    @Test func closingLeaksNothing() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 8_000_000)
        func use(closing: Bool) async throws {
            let downloader = try await site.downloader()
            let download = try await downloader.add(try site.request("/file"))
            try await download.reaches { $0.heldBytes > 50_000 || $0.isOver }
            if closing { await downloader.close() }
        }
        // The first use makes what the process keeps: the pool's threads, libcurl's and SQLite's globals.
        for _ in 0..<2 { try await use(closing: true) }
        let before = try await Resources.settled { _ in true }
        for _ in 0..<5 { try await use(closing: true) }
        let after = try await Resources.settled { $0.descriptors <= before.descriptors && $0.threads <= before.threads }
        #expect(after.descriptors <= before.descriptors && after.threads <= before.threads, "\(before) → \(after)")
        try await use(closing: false)
        let released = try await Resources.settled {
            $0.descriptors <= before.descriptors && $0.threads <= before.threads
        }
        #expect(
            released.descriptors <= before.descriptors && released.threads <= before.threads, "\(before) → \(released)")
        await site.server.stop()
    }

    @Test func anUnfinishedFileOfTheCommandIsAdopted() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        var downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.heldBytes > 1_000_000 }
        try await download.pause()
        try await download.reaches { $0.state == .paused }
        try await download.remove()
        #expect(try await downloader.downloads().downloads.isEmpty)
        let adopted = try await downloader.adoptUnfinished(in: site.downloads)
        #expect(adopted.count == 1)
        #expect(try await downloader.adoptUnfinished(in: site.downloads).isEmpty, "once")
        let snapshot = try await #require(adopted.first).snapshot
        #expect(snapshot.state == .paused && snapshot.heldBytes > 900_000)
        try await adopted[0].resume()
        _ = try await adopted[0].file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        downloader = try await site.downloader()
        #expect(try await downloader.adoptUnfinished(in: site.downloads).isEmpty)
        await downloader.close()
        await site.server.stop()
    }

    @Test func aFinishedFileThatIsGoneIsFetchedAgainWhenAskedFor() async throws {
        let version = Version(seed: 4, length: 90_000)
        let site = try await Site(["/file": Resource(version)])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        let file = try await download.file
        let asked = site.server.log.requests.count
        #expect(try await downloader.add(try site.request("/file")) == download)
        #expect(site.server.log.requests.count == asked)
        try FileManager.default.removeItem(at: file)
        let again = try await downloader.add(try site.request("/file"))
        #expect(again == download)
        _ = try await again.file
        #expect(site.holds("file", version))
        await downloader.close()
        await site.server.stop()
    }
}

/// What this process has open.
struct Resources: CustomStringConvertible {
    let descriptors: Int
    let threads: Int

    var description: String { "\(descriptors) descriptors, \(threads) threads" }

    static var now: Resources {
        get throws {
            Resources(
                descriptors: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
                threads: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count)
        }
    }

    /// Once it is like that, or after a while: what was let go of ends a little later.
    static func settled(_ fits: (Resources) -> Bool) async throws -> Resources {
        var now = try Resources.now
        for _ in 0..<100 where !fits(now) {
            try await Task.sleep(for: .milliseconds(50))
            now = try Resources.now
        }
        return now
    }
}
