import FaultServer
import Foundation
import Testing
import Towline

/// Tests of launch and close: resuming, rebuilding the list, and releasing resources.
@Suite(.serialized) struct LaunchTests {
    private static let version = Version(seed: 9, length: 4_000_000)

    @Test func whatRanGoesOnAfterARelaunch() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        var downloader = try await site.downloader()
        let id = try await downloader.add(
            try site.request("/file") {
                $0.metadata = ["a": "b"]
                $0.connections = 1
            }
        ).id
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

    /// A rebuilt list has one entry for a download that is in the damaged list and has a journal.
    @Test(arguments: [false, true]) func aListThatIsRebuiltHasNothingTwice(hasSecrets: Bool) async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        var downloader = try await site.downloader()
        var request = try site.request("/file")
        if hasSecrets {
            let text = request.url.absoluteString.replacingOccurrences(of: "://", with: "://me:secret@")
            request.url = try #require(URL(string: text))
            request.destination = .file(site.downloads.appendingPathComponent("file"))
        }
        let id = try await downloader.add(request).id
        try await #require(try await downloader.download(id)).reaches { $0.heldBytes > 1_500_000 }
        await downloader.close()
        let list = try FileHandle(forWritingTo: site.root.appendingPathComponent("state/registry.sqlite"))
        try list.write(contentsOf: Data(repeating: 0x5A, count: 100))
        try list.close()

        downloader = try await site.downloader { $0.resumesAtLaunch = false }
        #expect(downloader.notices.count == 1, "\(downloader.notices)")
        #expect(try await downloader.page().downloads.map(\.id) == [id])
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

    /// O1: `close`, or releasing the downloader, releases all threads and descriptors.
    @Test func closingLeaksNothing() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 8_000_000)
        func use(closing: Bool) async throws {
            let downloader = try await site.downloader()
            let download = try await downloader.add(try site.request("/file"))
            try await download.reaches { $0.heldBytes > 50_000 || $0.isOver }
            if closing { await downloader.close() }
        }
        // The first use creates resources that the process keeps: pool threads, and globals of libcurl and SQLite.
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

    /// The connection limit of a host is kept across launches: the second process causes no refused connection.
    @Test func whatAHostBearsIsRememberedAcrossLaunches() async throws {
        let limited = Resource(Self.version, rate: 1_000_000, behaviour: .always(.connectionLimit(1)))
        let site = try await Site(["/one": limited, "/two": limited])
        func refusals(_ path: String) -> Int { site.server.log.requests(path).count { $0.status == 503 } }
        for (path, isKnown) in [("/one", false), ("/two", true)] {
            let downloader = try await site.downloader()
            let request = try site.request(path) { $0.connections = 4 }
            _ = try await downloader.add(request).file
            await downloader.close()
            #expect((refusals(path) == 0) == isKnown, "\(path): \(refusals(path))")
        }
        #expect(site.holds("one", Self.version) && site.holds("two", Self.version))
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
        #expect(try await downloader.page().downloads.isEmpty)
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

    /// Row 106: a state directory from a backup is older or newer than the journals. The journals take precedence.
    @Test func row106ABackupIsReconciledWithTheJournals() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        let state = site.root.appendingPathComponent("state")
        let backup = site.root.appendingPathComponent("backup")
        var downloader = try await site.downloader()
        let id = try await downloader.add(
            try site.request("/file") {
                $0.startsPaused = true
                $0.connections = 2
            }
        ).id
        await downloader.close()
        try FileManager.default.copyItem(at: state, to: backup)

        downloader = try await site.downloader()
        var download = try #require(try await downloader.download(id))
        try await download.resume()
        try await download.reaches { $0.heldBytes > 1_500_000 }
        try await download.pause()
        let held = try await download.reaches { $0.state == .paused }.heldBytes
        await downloader.close()
        let newer = site.root.appendingPathComponent("newer")
        try FileManager.default.copyItem(at: state, to: newer)

        // The list is older than the journal: only the journal contains the progress.
        try FileManager.default.removeItem(at: state)
        try FileManager.default.copyItem(at: backup, to: state)
        downloader = try await site.downloader()
        download = try #require(try await downloader.download(id))
        try await download.resume()
        let before = site.server.log.bodyBytesServed("/file")
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        #expect(site.server.log.bodyBytesServed("/file") - before < Self.version.length - held + 400_000)
        await downloader.close()

        // The list is newer than the disk: the list contains bytes that do not exist.
        for name in site.names { try FileManager.default.removeItem(at: site.downloads.appendingPathComponent(name)) }
        try FileManager.default.removeItem(at: state)
        try FileManager.default.copyItem(at: newer, to: state)
        downloader = try await site.downloader()
        download = try #require(try await downloader.download(id))
        #expect(try await download.snapshot.heldBytes == 0, "no bytes exist, although the list contains some")
        try await download.resume()
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        await downloader.close()
        await site.server.stop()
    }

    /// Rows 104, 110: a lost list is rebuilt from the journals, and the bytes are not downloaded again.
    @Test func row110ALostListIsMadeOfTheJournals() async throws {
        let site = try await Site(["/file": Resource(Self.version)], rate: 2_000_000)
        var downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file"))
        try await download.reaches { $0.heldBytes > 1_500_000 }
        await downloader.close()
        let database = site.root.appendingPathComponent("state/registry.sqlite")
        try Data(repeating: 0x5A, count: 8192).write(to: database)
        let served = site.server.log.bodyBytesServed("/file")

        downloader = try await site.downloader()
        #expect(!downloader.notices.isEmpty, "a notice reports the rebuilt list")
        let id = try #require(try await downloader.page().downloads.first?.id)
        let found = try #require(try await downloader.download(id))
        let snapshot = try await found.snapshot
        #expect(snapshot.state == .paused && snapshot.heldBytes > 1_200_000, "\(snapshot)")
        try await found.resume()
        _ = try await found.file
        #expect(site.holds("file", Self.version))
        #expect(site.server.log.bodyBytesServed("/file") - served < Self.version.length - 1_000_000)
        await downloader.close()
        await site.server.stop()
    }

    /// Row 120: two URLs with the same file name result in two files.
    @Test func row120TwoLinksOneName() async throws {
        let (one, two) = (Version(seed: 51, length: 900_000), Version(seed: 52, length: 1_900_000))
        let site = try await Site(["/a/same": Resource(one), "/b/same": Resource(two)], rate: 4_000_000)
        let downloader = try await site.downloader()
        let downloads = try await downloader.add(
            contentsOf: [try site.request("/a/same"), try site.request("/b/same")])
        let files = [try await downloads[0].file, try await downloads[1].file]
        #expect(Set(files).count == 2)
        #expect(site.names.count == 2)
        for (file, version) in zip(files, [one, two]) { #expect(site.holds(file.lastPathComponent, version)) }
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

/// The number of descriptors and threads of this process.
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

    /// Returns the resources when they fit, or after 5 seconds. Released threads and descriptors end with a delay.
    static func settled(_ fits: (Resources) -> Bool) async throws -> Resources {
        var now = try Resources.now
        for _ in 0..<100 where !fits(now) {
            try await Task.sleep(for: .milliseconds(50))
            now = try Resources.now
        }
        return now
    }
}
