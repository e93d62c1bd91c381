import Glibc
import Synchronization
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests slots, checkpoints and withdrawals, on the simulated disk.
@Suite struct JournalFileTests {
    private let disk = SimulatedDisk()

    private func storage(_ boot: UInt64 = 1, _ syscall: (any Syscall)? = nil) -> FileStorage {
        FileStorage(syscall: syscall ?? disk, boot: BootIdentity(high: boot, low: 1))
    }

    private func ranges(_ pairs: (Int64, Int64)...) -> ByteRangeSet { ByteRangeSet(pairs.map { ByteRange($0, $1) }) }

    @Test func aSlotIsContinuedWhereItsRunEnds() throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        let first = try #require(try journal.claimSlot(at: 100) as? SlotLease)
        try first.mark(upTo: 200)
        let other = try #require(try journal.claimSlot(at: 200) as? SlotLease)
        #expect(other.slot.index != first.slot.index, "a leased slot is not continued")
        journal.release(other)
        journal.release(first)
        let next = try #require(try journal.claimSlot(at: 200) as? SlotLease)
        #expect(next.slot.index == first.slot.index)
        try first.mark(upTo: 5000)
        #expect(journal.written == ranges((100, 200)), "a lease given back marks nothing")
        try next.mark(upTo: 300)
        try next.mark(upTo: 250)
        #expect(journal.written == ranges((100, 300)))
        #expect(journal.durable.isEmpty)
    }

    @Test func aMarkIsOneWriteOf64BytesWithinASector() throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        for index in 0..<9 {
            let slot = try #require(try part.journal?.claimSlot(at: Int64(index * 1000)))
            let before = disk.log.count
            try slot.mark(upTo: Int64(index * 1000 + 10))
            let events = disk.log.dropFirst(before)
            #expect(events.count == 1)
            guard case .write(_, let offset, let bytes) = try #require(events.first) else {
                Issue.record("no write")
                return
            }
            #expect(bytes.count == 64 && offset / 512 == (offset + 63) / 512)
            #expect(bytes.load(UInt32.self, at: 60) == CRC32C.checksum(bytes[..<60]))
        }
    }

    @Test func whatIsWrittenDuringTheSyncIsNotDurable() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        try part.fill(0..<1000)
        let sink = InterferingSink(part.sink) { try part.fill(1000..<2000) }
        try await journal.checkpoint(sink)
        #expect(journal.durable == ranges((0, 1000)))
        #expect(journal.written == ranges((0, 2000)))
        disk.killProcess()
        #expect(try storage(2).unfinished(Script.place)?.claims == ranges((0, 1000)))
    }

    @Test func aRunWithdrawnDuringTheSyncDoesNotBecomeDurable() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        try part.fill(0..<1000)
        let sink = InterferingSink(part.sink) {
            try journal.withdraw(ByteRange(500, 600))
            try part.fill(500..<600)
        }
        try await journal.checkpoint(sink)
        #expect(!journal.durable.contains(ByteRange(500, 600)))
    }

    /// The kernel reports a write-back error once, and the bytes are lost.
    @Test func afterAFailedSyncOnlyDurableMarksAreLeft() async throws {
        let faulty = FaultySyscall(disk)
        let part = try storage(1, faulty).make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        try part.fill(0..<1000)
        try await journal.checkpoint(part.sink)
        let slot = try #require(try journal.claimSlot(at: 1000))
        try slot.mark(upTo: 1500)
        try part.fill(7000..<8000)
        let calls = faulty.calls.count
        faulty.setPlan { call, index in call == .fdatasync && index == calls ? .error(EIO) : nil }
        let error = await #expect(throws: TowlineError.self) { try await journal.checkpoint(part.sink) }
        #expect(error?.code == .diskFailure && error?.systemError == EIO)
        #expect(journal.written == ranges((0, 1000)) && journal.durable == ranges((0, 1000)))
        try slot.mark(upTo: 3000)
        #expect(journal.written == ranges((0, 1000)), "the lease is gone with the bytes")
        // The next sync succeeds, and must not hide the one that failed.
        try await journal.checkpoint(part.sink)
        #expect(journal.durable == ranges((0, 1000)))
        disk.killProcess()
        #expect(try storage(1).unfinished(Script.place)?.claims == ranges((0, 1000)))
    }

    /// Two syncs overlap and the first fails. The kernel reported the error to the first alone, so the second's success
    /// proves nothing.
    @Test func aSyncThatBeganBeforeAnotherFailedIsNoSuccess() async throws {
        let isSecondWaiting = Atomic<Bool>(false)
        let faulty = FaultySyscall(disk)
        let part = try storage(1, faulty).make(Script.place, length: 1 << 19)
        try part.fill(0..<1000)
        let calls = faulty.calls.count
        try await withThrowingTaskGroup(of: Bool.self) { group in
            await confirmation(expectedCount: 1) { isInFirst in
                faulty.setPlan { call, index in
                    guard call == .fdatasync, index == calls else { return nil }
                    isInFirst()
                    while !isSecondWaiting.load(ordering: .acquiring) { sched_yield() }
                    return .error(EIO)
                }
                group.addTask { (try? await part.sink.synchronize()) != nil }
                while faulty.calls.count == calls { await Task.yield() }
            }
            group.addTask { (try? await part.sink.synchronize()) != nil }
            let queue = try #require(part.sink as? PartFile).queue
            while queue.waiting(1) == 0 { await Task.yield() }
            isSecondWaiting.store(true, ordering: .releasing)
            for try await isSuccess in group { #expect(!isSuccess) }
        }
    }

    /// A write-back error that the previous process ended too early to receive.
    @Test func anErrorNobodyWasToldOfIsToldAtTheNextSurvey() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        try part.fill(0..<1000)
        try await part.journal?.checkpoint(part.sink)
        try part.fill(1000..<3000)
        disk.killProcess()
        let faulty = FaultySyscall(disk) { call, _ in call == .fdatasync ? .error(EIO) : nil }
        let again = try #require(try storage(1, faulty).unfinished(Script.place))
        #expect(again.claims == ranges((0, 1000)) && again.notices.count == 1)
    }

    /// An inode's number alone does not identify a file: the number may have been reused.
    @Test func withoutBirthTimesAFinishedFileNeedsItsMark() async throws {
        for isMarked in [true, false] {
            var image = DiskImage()
            image.keepsBirthTimes = false
            let disk = SimulatedDisk(image)
            let part = try storage(1, disk).make(Script.place, length: 1 << 10)
            try part.fill(0..<1024)
            _ = try await part.sink.publish(.plain(1 << 10))
            // As if the crash had happened before the journal was retired.
            let log = disk.log
            let rename = try #require(
                log.firstIndex { if case .rename(_, "file", _) = $0 { true } else { false } })
            var crashed = PowerLoss.kill(disk, after: rename + 1, log: log)
            if !isMarked, let inode = crashed.names["file"] { crashed.inodes[inode]?.attributes = [:] }
            let survey = try storage(1, SimulatedDisk(crashed)).survey(Script.place)
            if case .finished = survey { #expect(isMarked) } else { #expect(!isMarked) }
        }
    }

    @Test func aFailedSyncAtPublishTakesBackWhatIsNotDurable() async throws {
        let faulty = FaultySyscall(disk)
        let part = try storage(1, faulty).make(Script.place, length: 2000)
        try part.fill(0..<1000)
        try await part.journal?.checkpoint(part.sink)
        try part.fill(1000..<2000)
        faulty.setPlan { call, _ in call == .fsync ? .error(EIO) : nil }
        await #expect(throws: TowlineError.self) { try await part.sink.publish(.plain(2000)) }
        faulty.setPlan { _, _ in nil }
        #expect(part.journal?.written == ranges((0, 1000)))
        let error = await #expect(throws: TowlineError.self) { try await part.sink.publish(.plain(2000)) }
        #expect(error?.message.contains("incomplete") == true)
        #expect(disk.image[Script.name] == nil)
        try part.fill(1000..<2000)
        _ = try await part.sink.publish(.plain(2000))
        #expect(disk.image[Script.name] == pattern(0..<2000))
    }

    @Test func aFailedSyncOfTheDirectoryIsNotForgotten() async throws {
        let faulty = FaultySyscall(disk)
        let part = try storage(1, faulty).make(Script.place, length: 1 << 19)
        try part.fill(0..<1000)
        faulty.setPlan { call, _ in call == .fsync ? .error(EIO) : nil }
        await #expect(throws: TowlineError.self) { try await part.journal?.checkpoint(part.sink) }
        faulty.setPlan { _, _ in nil }
        await #expect(throws: TowlineError.self) { try await part.journal?.checkpoint(part.sink) }
        #expect(part.journal?.durable.isEmpty == true)
    }

    @Test(arguments: [
        (ByteRange(0, 1000), [[Int64]]()), (ByteRange(0, 400), [[400, 1000]]), (ByteRange(600, 2000), [[0, 600]]),
        (ByteRange(300, 400), [[0, 300], [400, 1000]]), (ByteRange(2000, 3000), [[0, 1000]]),
    ])
    func withdrawingCutsRuns(_ range: ByteRange, _ expected: [[Int64]]) async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        try part.fill(0..<500)
        try await journal.checkpoint(part.sink)
        try part.fill(500..<1000)
        try journal.withdraw(range)
        let written = ByteRangeSet(expected.map { ByteRange($0[0], $0[1]) })
        #expect(journal.written == written)
        #expect(journal.durable == written.intersection(ByteRange(0, 500)))
        for (boot, claims) in [(UInt64(1), journal.written), (2, journal.durable)] {
            let later = SimulatedDisk(disk.image)
            #expect(try storage(boot, later).unfinished(Script.place)?.claims == claims)
        }
    }

    @Test func slotsThatRunOutAreMerged() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        // The 1024 runs touch each other, and are written from the back so that none continues another.
        for index in (0..<1024).reversed() { try part.fill(index * 8..<(index * 8 + 8)) }
        try await journal.checkpoint(part.sink)
        #expect(try journal.claimSlot(at: 100_000) != nil)
        #expect(journal.written == ranges((0, 8192)) && journal.durable == ranges((0, 8192)))
        disk.killProcess()
        #expect(try storage(2).unfinished(Script.place)?.claims == ranges((0, 8192)))
    }

    /// A union of ranges must not make the bytes between two durable beginnings durable.
    @Test func mergingMakesNothingDurable() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        for index in 0..<1024 { try part.fill(index * 16..<(index * 16 + 8)) }
        try await journal.checkpoint(part.sink)
        for index in 0..<1024 where index % 4 != 0 { try part.fill(index * 16 + 8..<(index * 16 + 16)) }
        #expect(try journal.claimSlot(at: 100_000) == nil)
        #expect(journal.durable.ranges.count == 1024 && journal.durable.count == 8192)
        disk.killProcess()
        #expect(try storage(2).unfinished(Script.place)?.claims.count == 8192)
    }

    @Test func withoutAFreeSlotNoneIsGiven() throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        for index in 0..<1024 { try part.fill(index * 16..<(index * 16 + 8)) }
        #expect(try part.journal?.claimSlot(at: 100_000) == nil)
        #expect(part.journal?.written.ranges.count == 1024)
    }

    @Test func metadataSurvivesWhichBlockSoEverIsTorn() throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        for number in 0..<5 {
            var record = journal.record
            record.resolved = "http://example.test/\(number)"
            record.generation = 77
            try journal.update(record)
            #expect(journal.record.resolved == record.resolved && journal.record.generation == 1)
        }
        disk.killProcess()
        for block in 0..<2 {
            var image = disk.image
            let inode = try #require(image.names["file.tow-journal"])
            image.inodes[inode]?.bytes[4096 + block * MetadataBlock.byteCount + 40] ^= 1
            let later = try #require(try storage(1, SimulatedDisk(image)).unfinished(Script.place))
            #expect(["http://example.test/4", "http://example.test/3"].contains(later.journal?.record.resolved ?? ""))
        }
    }

    /// A power loss can never destroy both blocks.
    @Test func aBlockIsSyncedBeforeTheOtherIsWritten() async throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        let journal = try #require(part.journal)
        let inode = try #require(disk.image.names["file.tow-journal"])
        try part.fill(0..<1000)
        try await journal.checkpoint(part.sink)
        for number in 0..<4 {
            var record = journal.record
            record.resolved = "http://example.test/\(number)"
            try journal.update(record)
        }
        var unsynced: Set<Int> = []
        for event in disk.log {
            switch event {
            case .write(inode, let offset, _) where offset == 4096 || offset == 4096 + MetadataBlock.byteCount:
                unsynced.insert(offset)
            case .syncFile(inode, _): unsynced = []
            default: break
            }
            #expect(unsynced.count <= 1)
        }
        #expect(!unsynced.isEmpty)
    }

    @Test func aRecordTooLongForTheJournalLosesWhatCanBeLearnedAgain() throws {
        var record = DownloadRecord.sample(length: 1 << 19)
        record.resolved = String(repeating: "r", count: 40_000)
        let part = try storage().create(Script.place, record: record, terms: CreateTerms(journaled: true))
        part.sink.close()
        #expect(try storage().unfinished(Script.place)?.journal?.record.resolved == record.source)
        disk.killProcess()
        record.source = record.resolved
        let error = #expect(throws: TowlineError.self) {
            try storage().create(
                Place(directory: SimulatedDisk.directory, name: "other"), record: record,
                terms: CreateTerms(journaled: true))
        }
        #expect(error?.code == .unusableURL)
        #expect(disk.image.names["other.tow"] == nil)
    }

    @Test func marksOfAnotherJournalDoNotCount() throws {
        let part = try storage().make(Script.place, length: 1 << 19)
        try part.fill(0..<1000)
        let old = try #require(disk.image["file.tow-journal"])
        let next = try storage().replace(
            part, place: Script.place, record: .sample(length: 1 << 19), terms: CreateTerms(journaled: true))
        try pattern(0..<1000).withUnsafeBytes { try next.sink.write($0, at: 0) }
        next.sink.close()
        var image = disk.image
        let inode = try #require(image.names["file.tow-journal"])
        let marks = 4096 + 2 * MetadataBlock.byteCount
        image.inodes[inode]?.bytes.replaceSubrange(marks..., with: old[marks...])
        #expect(try storage(1, SimulatedDisk(image)).unfinished(Script.place)?.claims.isEmpty == true)
    }
}

/// Runs a closure between the snapshot of a checkpoint and the end of its sync.
private final class InterferingSink: Sink {
    private let base: any Sink
    private let interfere: @Sendable () throws -> Void

    init(_ base: any Sink, _ interfere: @escaping @Sendable () throws -> Void) {
        self.base = base
        self.interfere = interfere
    }

    func synchronize() async throws(TowlineError) {
        try await base.synchronize()
        do { try interfere() } catch { Issue.record(error) }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        try base.write(bytes, at: offset)
    }
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        try base.read(into: buffer, at: offset)
    }
    func checkIntact() throws(TowlineError) { try base.checkIntact() }
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] {
        try await base.verify(checksums, length: length)
    }
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile { try await base.publish(terms) }
    func setAside() throws(TowlineError) -> String? { try base.setAside() }
    func discard() { base.discard() }
    func close() { base.close() }
}
