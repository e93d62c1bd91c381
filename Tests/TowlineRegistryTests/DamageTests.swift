import Foundation
import GRDB
import Synchronization
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineRegistry

/// Rows 104 to 106 of the catalogue: opening damaged or missing files of the registry.
@Suite struct DamageTests {
    private let state = TemporaryState()
    private static let count = 400

    /// Returns the download `number` as rebuilt from a journal, with metadata that marks its source.
    private static func found(_ number: Int) -> RegisteredDownload {
        var download = Sample.download(number)
        download.metadata = ["from": "journal"]
        return download
    }

    /// Creates a registry with 400 downloads, closed normally, or with a log as after a kill.
    private func make(isKilled: Bool = false) async throws {
        let registry = try await state.open()
        for start in Swift.stride(from: 0, to: Self.count, by: 20) {
            _ = try await registry.add((start..<start + 20).map { Sample.download($0) })
            try await registry.apply([
                RegistryChange(Sample.id(start), entries: [TimelineNote(time: 1, kind: "k", message: "m")])
            ])
        }
        try await registry.setValue("5", for: "limit")
        if isKilled {
            let copies = state.names.map { ($0, state.bytes($0)) }
            await registry.close()
            for (name, bytes) in copies { writeFile(state.directory + "/" + name, bytes) }
            unlink(state.database + "-shm")
        } else {
            await registry.close()
        }
    }

    /// Opens the registry. The journals contain the first 390 downloads and one more. Returns the registry and the
    /// directories that were searched for journals.
    private func reopen() async throws -> (SQLiteRegistry, [String]) {
        let asked = Mutex<[String]>([])
        let registry = try await state.open { directories in
            asked.withLock { $0 = directories }
            return (0..<390).map { Self.found($0) } + [Self.found(9_999)]
        }
        return (registry, asked.withLock { $0 })
    }

    private func corrupt(_ name: String, _ range: Range<Int>, zeros: Bool = false) {
        var bytes = state.bytes(name)
        var generator = SeededGenerator(seed: 3)
        for index in range.clamped(to: bytes.indices) {
            bytes[index] = zeros ? 0 : UInt8.random(in: 0...255, using: &generator)
        }
        writeFile(state.directory + "/" + name, bytes)
    }

    private func expectRebuilt(_ registry: SQLiteRegistry, _ directories: [String], fewest: Int) async throws {
        let page = try await allDownloads(registry)
        #expect(directories == (0..<5).map { "/downloads/\($0)" })
        #expect(page.contains { $0.id == Sample.id(9_999) })
        // The list contains all downloads with journals. Readable entries of the old list are unchanged.
        for number in 0..<390 { #expect(page.contains { $0.id == Sample.id(number) }, "\(number)") }
        #expect(page.count { $0.metadata["from"] == nil } >= fewest)
        for download in page where download.metadata["from"] == nil {
            #expect(download == Sample.download(Int(download.addedAt - 1_700_000_000_000)))
        }
        #expect(Set(page.map(\.identity)).count == page.count)
        #expect(try await registry.totals().counts == [.queued: page.count])
        #expect(registry.notices.contains { $0.contains("rebuilt") && $0.contains("registry.sqlite.damaged-1") })
        #expect(state.names.contains("registry.sqlite.damaged-1"))
        _ = try await registry.add([Sample.download(777_777)])
        await registry.close()
        let again = try await state.open()
        #expect(again.notices.isEmpty)
        #expect(try await allDownloads(again).count == page.count + 1)
    }

    @Test func row104GarbageInTheHeader() async throws {
        try await make()
        corrupt("registry.sqlite", 0..<100)
        let (registry, directories) = try await reopen()
        #expect(try await registry.values(prefix: "") == ["limit": "5"])
        #expect(try await registry.timeline(of: Sample.id(20), after: 0, limit: 9).map(\.message) == ["m"])
        try await expectRebuilt(registry, directories, fewest: 400)
    }

    @Test func row104AllOfItIsGarbage() async throws {
        try await make()
        corrupt("registry.sqlite", 0..<10_000_000)
        let (registry, directories) = try await reopen()
        try await expectRebuilt(registry, directories, fewest: 0)
    }

    @Test func row104CutShort() async throws {
        try await make()
        let bytes = state.bytes("registry.sqlite")
        writeFile(state.database, Array(bytes.prefix(bytes.count * 2 / 3)))
        let (registry, directories) = try await reopen()
        try await expectRebuilt(registry, directories, fewest: 50)
    }

    /// The rebuilt list is complete before it gets its name, even while its log is not merged into the database.
    @Test func theNewListIsWholeBeforeItHasItsName() async throws {
        try await make()
        corrupt("registry.sqlite", 0..<100)
        let other = Mutex<DatabaseQueue?>(nil)
        let path = state.database + ".rebuilding"
        let registry = try await state.open { _ in
            // SQLite merges the log when the last connection closes. This connection prevents the merge.
            let queue = try? DatabaseQueue(path: path)
            _ = try? queue?.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM downloads") }
            other.withLock { $0 = queue }
            return []
        }
        #expect(try await allDownloads(registry).count == 400)
        try other.withLock { try $0?.close() }
        await registry.close()
    }

    /// A download from a journal is not added if the list contains it with another identity or without a name.
    @Test func whatIsListedIsNotFoundAgain() async throws {
        let registry = try await state.open()
        var unnamed = Sample.download(1)
        unnamed.name = nil
        _ = try await registry.add([unnamed, Sample.download(2), Sample.download(3)])
        await registry.close()
        corrupt("registry.sqlite", 0..<100)
        let again = try await state.open { _ in
            func found(_ number: Int, _ change: (inout RegisteredDownload) -> Void = { _ in }) -> RegisteredDownload {
                var download = Sample.download(number)
                download.id = Sample.id(number + 100)
                download.identity = "found \(number)"
                change(&download)
                return download
            }
            return [
                // This download differs only in secrets, and has a name that the list did not contain.
                found(1) { $0.source = "\($0.host)/files/1.iso?X-Amz-Signature=other&part=1" },
                found(2) { $0.source = "\($0.host)/elsewhere" },
                // The list contains none of the following downloads.
                found(1) { ($0.source, $0.id) = ($0.source.replacing("files", with: "FILES"), Sample.id(201)) },
                found(3) { $0.name = "another" },
                found(4),
            ]
        }
        #expect(
            Set(try await allDownloads(again).map(\.id)) == [
                Sample.id(1), Sample.id(2), Sample.id(3), Sample.id(201), Sample.id(103), Sample.id(104),
            ])
        await again.close()
    }

    @Test func row104TheDatabaseIsGone() async throws {
        try await make()
        unlink(state.database)
        let (registry, directories) = try await reopen()
        #expect(directories.count == 5)
        #expect(try await allDownloads(registry).count == 391)
        #expect(registry.notices.contains { $0.contains("because its file was missing") })
    }

    private static let stride = getenv("TOWLINE_TORTURE") == nil ? 5 : 1

    /// Damages one page at a time. The list is rebuilt, at the opening or at a later call, and no call fails
    /// permanently.
    @Test(arguments: [false, true])
    func row104GarbageInAPage(zeros: Bool) async throws {
        try await make()
        let sound = state.names.map { ($0, state.bytes($0)) }
        let pages = state.bytes("registry.sqlite").count / 4096
        var rebuilt = 0
        var damaged = 0
        for page in Swift.stride(from: zeros ? 1 : 3, to: pages, by: Self.stride) {
            damaged += 1
            for name in state.names { unlink(state.directory + "/" + name) }
            for (name, bytes) in sound { writeFile(state.directory + "/" + name, bytes) }
            corrupt("registry.sqlite", page * 4096..<(page + 1) * 4096, zeros: zeros)
            let (registry, _) = try await reopen()
            for order in DownloadQuery.Order.allCases {
                var query = DownloadQuery()
                (query.limit, query.order) = (10_000, order)
                let found = try await registry.page(query).downloads
                #expect(found.count >= 390, "page \(page), \(order)")
            }
            for number in 0..<390 {
                #expect(try await registry.download(Sample.id(number)) != nil, "page \(page), \(number)")
            }
            _ = try await registry.nextQueued(limit: 500, blockedHosts: [], blockedGroups: [])
            _ = try await registry.add([Sample.download(500), Sample.download(3)])
            try await registry.apply([
                RegistryChange(Sample.id(500), entries: [TimelineNote(time: 1, kind: "k", message: "m")])
            ])
            if !registry.notices.isEmpty {
                rebuilt += 1
                #expect(registry.notices.count == 1 && registry.notices[0].contains("damaged-1"))
            }
            await registry.close()
        }
        print("registry: \(rebuilt) of \(damaged) damaged pages made it rebuild (zeros: \(zeros))")
        #expect(rebuilt > damaged / 2)
    }

    @Test func row104TheLogIsGone() async throws {
        try await make(isKilled: true)
        unlink(state.database + "-wal")
        let (registry, directories) = try await reopen()
        #expect(directories.count == 5)
        #expect(registry.notices.count == 1 && registry.notices[0].contains("-wal is missing"))
        #expect(try await allDownloads(registry).count >= 391)
        await registry.close()
        #expect(try await state.open().notices.isEmpty)
    }

    @Test func row104GarbageInTheMiddleOfTheLog() async throws {
        try await make(isKilled: true)
        let size = state.bytes("registry.sqlite-wal").count
        #expect(size > 20 * 4120)
        corrupt("registry.sqlite-wal", 32 + 8 * 4120 + 500..<32 + 8 * 4120 + 600)
        let (registry, directories) = try await reopen()
        #expect(state.names.contains("registry.sqlite.damaged-1-wal"))
        try await expectRebuilt(registry, directories, fewest: 0)
    }

    /// A power failure can truncate the log. This is not damage, and no durable change is lost.
    @Test func aTornEndOfTheLogIsNoDamage() async throws {
        try await make(isKilled: true)
        let bytes = state.bytes("registry.sqlite-wal")
        writeFile(state.database + "-wal", Array(bytes.dropLast(700)))
        let (registry, _) = try await reopen()
        #expect(registry.notices.isEmpty)
        #expect(try await allDownloads(registry).count == 400)
    }

    @Test func aRebuildThatWasKilledIsFinished() async throws {
        try await make()
        rename(state.database, state.database + ".rebuilt")
        writeFile(state.database, [1, 2, 3])
        writeFile(state.database + "-wal", [4, 5, 6])
        let (registry, _) = try await reopen()
        #expect(registry.notices.count == 1)
        #expect(try await allDownloads(registry).count == 400)
        #expect(state.bytes("registry.sqlite.damaged-1") == [1, 2, 3])
        #expect(state.bytes("registry.sqlite.damaged-1-wal") == [4, 5, 6])
    }

    @Test(arguments: [false, true])
    func row105ANewerSchemaIsLeftUntouched(isInLog: Bool) async throws {
        try await make(isKilled: true)
        do {
            let newer = try DatabaseQueue(path: state.database)
            try await newer.write { try $0.execute(sql: "PRAGMA user_version = 3; CREATE TABLE more (x)") }
            if isInLog {
                let copies = ["registry.sqlite", "registry.sqlite-wal"].map { ($0, state.bytes($0)) }
                try newer.close()
                for (name, bytes) in copies { writeFile(state.directory + "/" + name, bytes) }
                #expect(!state.bytes("registry.sqlite")[60..<64].elementsEqual([0, 0, 0, 3]))
            } else {
                try newer.close()
            }
        }
        let before = ["registry.sqlite", "registry.sqlite-wal", "directories"].map { state.bytes($0) }
        let error = await #expect(throws: TowlineError.self) { try await state.open() }
        #expect(error?.code == .unsupportedRegistry)
        #expect(["registry.sqlite", "registry.sqlite-wal", "directories"].map { state.bytes($0) } == before)
        #expect(!state.names.contains { $0.contains("damaged") })
    }

    /// Version 1 stored a failed follow-up as a finished download.
    @Test func aListOfVersion1IsConverted() async throws {
        var failed = Sample.download(1)
        (failed.state, failed.reasonCode, failed.reason, failed.heldBytes) = (.finished, "failed 0", "encrypted", 7)
        var done = Sample.download(2)
        (done.state, done.reasonCode, done.heldBytes) = (.finished, "done", 5)
        try FileManager.default.createDirectory(
            atPath: state.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let old = try DatabaseQueue(path: state.database)
        try RegistrySchema.migrator.migrate(old, upTo: "1")
        try await old.write { [failed, done] database in
            var totals = TotalsSum()
            for download in [failed, done] {
                _ = try DownloadRow.insert(download, place: 1, into: database, &totals)
            }
            try totals.write(to: database)
        }
        try old.close()
        let registry = try await state.open()
        failed.state = .followUpFailed
        #expect(registry.notices.isEmpty)
        #expect(try await registry.downloads([failed.id, done.id]) == [failed, done])
        #expect(try await registry.totals().counts == [.followUpFailed: 1, .finished: 1])
        #expect(try await registry.totals().heldBytes == 12)
        await registry.close()
    }

    /// A migration is one transaction. An interrupted migration leaves the old tables unchanged.
    @Test func row105AMigrationThatFailsLeavesTheOldTables() async throws {
        struct Cut: Error {}
        try await make()
        var migrator = RegistrySchema.migrator
        migrator.registerMigration("3") { database in
            try database.execute(sql: "ALTER TABLE downloads ADD COLUMN more TEXT; DELETE FROM entries")
            throw Cut()
        }
        await #expect(throws: TowlineError.self) {
            try await SQLiteRegistry.open(stateDirectory: state.directory, rebuild: { _ in [] }, migrator: migrator)
        }
        let registry = try await state.open()
        #expect(registry.notices.isEmpty)
        #expect(try await allDownloads(registry).count == 400)
        #expect(try await registry.timeline(of: Sample.id(20), after: 0, limit: 9).count == 1)
    }
}
