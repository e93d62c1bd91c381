import Glibc
import Synchronization
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Tests the disk space of downloads.
@Suite struct SpaceTests {
    private let directory = ScratchDirectory()
    private let storage = FileStorage(boot: BootIdentity(high: 1, low: 1))

    @Test func aFileThatCannotFitIsRefusedBeforeTheFirstByte() throws {
        let error = #expect(throws: TowlineError.self) { try storage.make(directory.place(), length: 1 << 60) }
        #expect(error?.code == .diskFull)
        #expect(error?.message.contains("1.0 EiB") == true)
        #expect(directory.names.isEmpty)
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func aFullDiskLeavesNothingBehind(_ number: Int32) throws {
        let faulty = FileStorage(syscall: FaultySyscall { call, _ in call == .fallocate ? .error(number) : nil })
        let error = #expect(throws: TowlineError.self) { try faulty.make(directory.place(), length: 4 << 20) }
        #expect(error?.code == .diskFull)
        #expect(directory.names.isEmpty)
    }

    /// A response head may claim any length, so a long file reserves space as its bytes arrive.
    @Test func aLongFileTakesItsSpaceAsItComes() throws {
        let step = Int(SpaceReservation.step)
        let calls = FaultySyscall()
        let storage = FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1))
        let part = try storage.make(directory.place(), length: 1 << 30)
        func count() -> Int { calls.calls.count { $0 == .fallocate } }
        func taken() -> Int {
            var status = stat()
            return stat(directory.path + "/file.tow", &status) == 0 ? Int(status.st_blocks) * 512 : -1
        }
        #expect(count() == 1 && taken() <= step + 65536)
        try part.fill(0..<1000)
        #expect(count() == 1)
        // Across the border of two steps, then within both.
        try part.fill(3 * step - 500..<3 * step + 500)
        try part.fill(2 * step + 5..<2 * step + 10)
        #expect(count() == 3 && taken() <= 3 * step + 65536)
        part.sink.discard()
    }

    /// The replaced part file stays if both fit: only its written bytes need space. Otherwise it is removed, with a
    /// notice, before or after the new part file was created.
    @Test(arguments: [nil, 2 << 20, 512 << 10] as [UInt64?])
    func aReplacedPartFileStaysIfBothFit(_ available: UInt64?) throws {
        let fails = Atomic(false)
        let calls = FaultySyscall { call, _ in
            call == .fallocate && fails.exchange(false, ordering: .relaxed) ? .error(ENOSPC) : nil
        }
        let storage = FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1))
        let old = try storage.make(directory.place(), length: 4 << 20)
        try old.fill(0..<(1 << 20))
        if let available { calls.setAvailable(Int64(available)) } else { fails.store(true, ordering: .relaxed) }
        var terms = CreateTerms(journaled: true)
        terms.keepsReplaced = true
        let next = try storage.replace(
            old, place: directory.place(), record: .sample(length: 3 << 19, generation: 2), terms: terms)
        let isKept = available == 2 << 20
        #expect(next.earlier?.count == (isKept ? 1 << 20 : nil))
        #expect(next.notices.contains { $0.contains("no space for two versions") } == !isKept)
        let names = ["file.tow", "file.tow-journal"]
        #expect(directory.names == (isKept ? names + ["file.tow-old", "file.tow-old-journal"] : names))
        next.sink.discard()
        guard case .unfinished(let again) = try storage.survey(directory.place()) else {
            #expect(!isKept && directory.names.isEmpty)
            return
        }
        #expect(isKept && again.claims.count == 1 << 20 && directory.names == names)
        again.sink.discard()
    }

    /// Space that one download still needs is not available to another.
    @Test func theSpaceOfOtherDownloadsCountsAsTaken() throws {
        let calls = FaultySyscall()
        calls.setAvailable(1 << 30)
        let storage = FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1))
        let part = try storage.make(directory.place(), length: 700 << 20)
        let other = directory.place("other")
        #expect(throws: TowlineError.self) { try storage.make(other, length: 500 << 20) }
        part.sink.discard()
        try storage.make(other, length: 500 << 20).sink.discard()
    }

    private func withoutFallocate() -> (FileStorage, FaultySyscall) {
        let calls = FaultySyscall { call, _ in call == .fallocate ? .error(EOPNOTSUPP) : nil }
        return (FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1)), calls)
    }

    /// Space that cannot be reserved is promised until it is written, byte by byte.
    @Test func promisedSpaceCountsAsTaken() throws {
        let (storage, calls) = withoutFallocate()
        calls.setAvailable(5 << 20)
        let part = try storage.make(directory.place(), length: 3 << 20)
        try part.fill(0..<1000)
        let other = directory.place("other")
        let error = #expect(throws: TowlineError.self) { try storage.make(other, length: 3 << 20) }
        #expect(error?.code == .diskFull && directory.names == ["file.tow", "file.tow-journal"])
        // A small file cannot use the promised space either.
        #expect(throws: TowlineError.self) { try storage.make(other, length: 2_200_000, journaled: false) }
        try part.fill(1000..<3 << 20)
        calls.setAvailable(2 << 20)
        try storage.make(other, length: 2 << 20).sink.discard()
        part.sink.discard()
    }

    /// Many short files fill a disk as well.
    @Test func shortFilesAreCounted() throws {
        let (storage, calls) = withoutFallocate()
        calls.setAvailable(2_500_000)
        var parts: [OpenPart] = []
        for number in 0..<2 {
            parts.append(
                try storage.make(directory.place("s\(number)"), length: 900_000, journaled: false))
        }
        #expect(throws: TowlineError.self) {
            try storage.make(directory.place("s2"), length: 900_000, journaled: false)
        }
        #expect(directory.names == ["s0.tow", "s1.tow"])
        for part in parts { part.sink.discard() }
        try storage.make(directory.place("s2"), length: 900_000, journaled: false).sink.discard()
    }

    /// The downloads of an earlier run are resumed as long as they fit.
    @Test func resumedDownloadsAreCounted() throws {
        let (storage, calls) = withoutFallocate()
        for name in ["a", "b"] {
            let part = try storage.make(directory.place(name), length: 4 << 20)
            try part.fill(0..<2 << 20)
            part.sink.close()
        }
        calls.setAvailable(3 << 20)
        let first = try #require(try storage.unfinished(directory.place("a")))
        let second = try #require(try storage.unfinished(directory.place("b")))
        try first.sink.promiseSpace()
        let error = #expect(throws: TowlineError.self) { try second.sink.promiseSpace() }
        #expect(error?.code == .diskFull)
        first.sink.close()
        try second.sink.promiseSpace()
        second.sink.close()
    }

    /// A resumed download does not need reserved space again.
    @Test func reservedSpaceIsThereAfterARestart() throws {
        try storage.make(directory.place(), length: 4 << 20).sink.close()
        var status = stat()
        // tmpfs reserves nothing.
        guard stat(directory.path + "/file.tow", &status) == 0, status.st_blocks * 512 >= 4 << 20 else { return }
        let calls = FaultySyscall()
        calls.setAvailable(0)
        let part = try #require(
            try FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1)).unfinished(directory.place()))
        try part.sink.promiseSpace()
        part.sink.close()
    }

    @Test func aServiceLeavesSomeSpaceFree() throws {
        let calls = FaultySyscall()
        calls.setAvailable(1 << 30)
        let storage = FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1), keptFree: 64 << 20)
        #expect(throws: TowlineError.self) { try storage.make(directory.place(), length: 1000 << 20) }
        let part = try storage.make(directory.place(), length: 500 << 20)
        try part.fill(0..<1000)
        calls.setAvailable(100 << 20)
        let error = #expect(throws: TowlineError.self) { try part.fill(200 << 20..<(200 << 20) + 1000) }
        #expect(error?.code == .diskFull)
        calls.setAvailable(1 << 30)
        try part.fill(200 << 20..<(200 << 20) + 1000)
        part.sink.discard()
    }

    /// A body without a length, and a download that an earlier run began, could fill the disk as well.
    @Test(arguments: [false, true]) func aServiceLeavesSomeSpaceFreeToTheEnd(_ isResumed: Bool) throws {
        let calls = FaultySyscall()
        calls.setAvailable(1 << 30)
        let storage = FileStorage(syscall: calls, boot: BootIdentity(high: 1, low: 1), keptFree: 64 << 20)
        var part: OpenPart
        if isResumed {
            part = try storage.make(directory.place(), length: 4 << 20)
            try part.fill(0..<1000)
            part.sink.close()
            part = try #require(try storage.unfinished(directory.place()))
        } else {
            part = try storage.create(
                directory.place(), record: .sample(length: nil), terms: CreateTerms(journaled: true))
        }
        try part.fill(1000..<2000)
        calls.setAvailable(70 << 20)
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        let error = #expect(throws: TowlineError.self) {
            for _ in 0..<9 { try piece.withUnsafeBytes { try part.sink.write($0, at: 2000) } }
        }
        #expect(error?.code == .diskFull)
        part.sink.discard()
    }

    @Test func withoutFallocateTheFileIsSparse() throws {
        let faulty = FileStorage(syscall: FaultySyscall { call, _ in call == .fallocate ? .error(EOPNOTSUPP) : nil })
        let part = try faulty.make(directory.place(), length: 4 << 20)
        #expect(directory["file.tow"]?.count == 4 << 20)
        part.sink.close()
    }
}
