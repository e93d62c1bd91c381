import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineDisk
import TowlineEngine

@testable import Towline

/// Tests of a list that was rebuilt from journals.
@Suite struct RebuiltListTests {
    /// The download may belong to a client on another machine, which must not reach services on this machine. A crash
    /// may have left the earlier part file alone.
    @Test(arguments: [false, true], [false, true])
    func aRebuiltListKeepsToPublicAddresses(_ isRestricted: Bool, _ isEarlier: Bool) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("towline-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let storage = FileStorage()
        let record = DownloadRecord(
            source: "http://example.test/file", resolved: "http://example.test/file", name: "file",
            representation: Representation(completeLength: 4 << 20), checksums: [], generation: 1,
            publicAddressesOnly: isRestricted)
        let part = try storage.create(
            Place(directory: directory, name: "file"), record: record, terms: CreateTerms(journaled: true))
        part.sink.close()
        for suffix in isEarlier ? ["", "-journal"] : [] {
            let name = directory + "/file.tow"
            try FileManager.default.moveItem(atPath: name + suffix, toPath: name + "-old" + suffix)
        }
        let found = try #require(LocalFiles(storage: storage).orphans(in: directory).first)
        #expect(found.name == "file")
        #expect(try StoredRequest.decode(found.options).publicAddressesOnly == isRestricted)
    }

    /// A directory was copied with its journals: one of the downloads keeps the ID, and both are in the list.
    @Test func aCopiedDirectoryHasDownloadsOfItsOwn() throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("towline-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        let (first, second) = (root.appendingPathComponent("first"), root.appendingPathComponent("second"))
        try FileManager.default.createDirectory(at: first, withIntermediateDirectories: true)
        let storage = FileStorage()
        var record = DownloadRecord(
            source: "http://example.test/file", resolved: "http://example.test/file", name: "file",
            representation: Representation(completeLength: 4 << 20), checksums: [], generation: 1)
        record.download = IDSource().next()
        try storage.create(
            Place(directory: first.path, name: "file"), record: record, terms: CreateTerms(journaled: true)
        ).sink.close()
        try FileManager.default.copyItem(at: first, to: second)
        let entries = LostEntries(files: LocalFiles(storage: storage)).entries(in: [first.path, second.path])
        #expect(entries.map(\.directory) == [first.path, second.path])
        #expect(entries.first?.id == record.download)
        #expect(Set(entries.map(\.id)).count == 2)
    }

    /// Returns the downloads of the list by their names.
    private static func list(_ downloader: Downloader) async throws -> [String: DownloadSnapshot] {
        let downloads = try await downloader.page().downloads
        return Dictionary(downloads.map { ($0.name ?? "", $0) }) { first, _ in first }
    }

    /// Overwrites every page of a database with zeros, except the first of the file, and the log of newer pages.
    private static func damage(_ state: URL) throws {
        for (name, start) in [("registry.sqlite", 4096), ("registry.sqlite-wal", 32)] {
            let file = try FileHandle(forUpdating: state.appendingPathComponent(name))
            let length = Int(try file.seekToEnd())
            try file.seek(toOffset: UInt64(start))
            try file.write(contentsOf: Data(count: max(0, length - start)))
            try file.close()
        }
    }

    /// The list is lost while a download runs and another one is paused. Both keep their IDs, the running one keeps
    /// running, and the user learns of it.
    @Test(.timeLimit(.minutes(1))) func aListThatIsRebuiltKeepsItsIDs() async throws {
        let version = Version(seed: 4, length: 8 << 20)
        let resource = Resource(version, rate: 2 << 20)
        let site = try await Site(["/a.bin": resource, "/b.bin": resource])
        let (told, telling) = AsyncStream.makeStream(of: String.self)
        let downloader = try await site.downloader { $0.onTrouble = { telling.yield($0.message) } }
        let events = downloader.events
        let paused = try await downloader.add(site.request("/b.bin"))
        try await paused.reaches { $0.heldBytes > 1 << 20 }
        try await paused.pause()
        let running = try await downloader.add(site.request("/a.bin"))
        try await running.reaches { $0.heldBytes > 1 << 20 }
        let state = site.root.appendingPathComponent("state")
        try Self.damage(state)
        // Another connection changed the database: the caches of the pages are no longer valid.
        try await downloader.setRateLimit(1 << 30)
        _ = try await downloader.page()
        #expect(await told.first { _ in true }?.contains("rebuilt") == true)
        let list = try await Self.list(downloader)
        #expect(list["a.bin"]?.id == running.id && list["a.bin"]?.state == .downloading)
        #expect(list["b.bin"]?.id == paused.id && list["b.bin"]?.state == .paused)
        // A download that runs is not paused in the list: it resumes after a kill.
        let totals = try await downloader.totals
        #expect(totals.counts[.active] == 1 && totals.counts[.paused] == 1, "\(totals)")
        #expect(downloader.notices.count == 1)
        var isTold = (notice: false, list: false)
        for await event in events {
            if case .troubled = event { isTold.notice = true }
            if case .listChanged = event { isTold.list = true }
            if isTold == (true, true) { break }
        }
        try await running.reaches { $0.state == .finished }
        #expect(site.holds("a.bin", version))
        let left = try FileManager.default.contentsOfDirectory(atPath: state.path)
        #expect(!left.contains { $0.contains("rebuilding") }, "\(left)")
        await downloader.close()
        await site.server.stop()
    }
}
