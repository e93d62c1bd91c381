import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Repeats a complete run with a different failing system call each time.
@Suite struct EveryCallFailsTests {
    private static let length = 60_000

    private static let content = pattern(0..<length)

    enum Fault: CaseIterable, Sendable {
        case full, failure, interrupted, short, failsFromThenOn

        /// Returns a plan in which the call with that index fails.
        func plan(at index: Int) -> @Sendable (FaultySyscall.Call, Int) -> FaultySyscall.Fault? {
            { _, number in
                switch self {
                case .full: number == index ? .error(ENOSPC) : nil
                case .failure: number == index ? .error(EIO) : nil
                case .interrupted: number == index ? .error(EINTR) : nil
                case .short: number == index ? .short : nil
                case .failsFromThenOn: number >= index ? .error(EIO) : nil
                }
            }
        }
    }

    /// The run succeeds, or its error states the cause. Afterwards the journal claims no bytes that are missing.
    @Test(arguments: Fault.allCases)
    func noCallThatFailsMakesAFalseClaim(_ fault: Fault) async throws {
        let image = try await plainRun()
        #expect(image.count > 40)
        var failures = 0
        for index in 0..<image.count {
            let disk = SimulatedDisk()
            let faulty = FaultySyscall(disk, plan: fault.plan(at: index))
            do {
                try await run(FileStorage(syscall: faulty, boot: Script.boot))
            } catch {
                failures += 1
                #expect(error is TowlineError)
                #expect(fault != .short && fault != .interrupted, "\(index): \(image[index]) \(error)")
            }
            try check(disk, "\(fault) at \(index), \(image[index])")
        }
        #expect(fault == .short || failures > 20 || fault == .interrupted)
    }

    /// The same for a small file without a name before it is published: the file is complete, or it does not exist.
    @Test(arguments: Fault.allCases) func aSmallFileIsWholeOrNotThere(_ fault: Fault) async throws {
        let plain = FaultySyscall(SimulatedDisk(type: 0xEF53))
        try await runSmall(FileStorage(syscall: plain, boot: Script.boot))
        #expect(plain.calls.contains(.openUnnamed))
        var failures = 0
        for index in plain.calls.indices {
            let disk = SimulatedDisk(type: 0xEF53)
            let faulty = FaultySyscall(disk, plan: fault.plan(at: index))
            let what = "\(fault) at \(index), \(plain.calls[index])"
            do {
                try await runSmall(FileStorage(syscall: faulty, boot: Script.boot))
                #expect(disk.image[Script.name] == Self.content, "\(what)")
            } catch {
                failures += 1
                #expect(error is TowlineError)
                #expect(fault != .short && fault != .interrupted, "\(what): \(error)")
            }
            if let bytes = disk.image[Script.name] { #expect(bytes == Self.content, "\(what)") }
        }
        #expect(fault == .short || fault == .interrupted || failures > 3)
    }

    /// The same for a file that is published at once. If that is not possible, no file exists and no error is thrown:
    /// the usual procedure finds the cause. Only a name that may not survive a power loss causes an error.
    @Test(arguments: Fault.allCases) func aFileMadeAtOnceIsWholeOrNotThere(_ fault: Fault) async throws {
        let plain = FaultySyscall(SimulatedDisk(type: 0xEF53))
        #expect(try await makeAtOnce(FileStorage(syscall: plain, boot: Script.boot)))
        var (left, failures) = (0, 0)
        for index in plain.calls.indices {
            let disk = SimulatedDisk(type: 0xEF53)
            let faulty = FaultySyscall(disk, plan: fault.plan(at: index))
            let what = "\(fault) at \(index), \(plain.calls[index])"
            do {
                if try await makeAtOnce(FileStorage(syscall: faulty, boot: Script.boot)) {
                    #expect(disk.image[Script.name] == Self.content, "\(what)")
                } else {
                    left += 1
                    #expect(disk.image.names.isEmpty, "\(what)")
                    #expect(fault != .short && fault != .interrupted, "\(what)")
                }
            } catch {
                failures += 1
                #expect(plain.calls[index] == .fsync && disk.image[Script.name] == Self.content, "\(what)")
            }
        }
        #expect(fault == .short || fault == .interrupted || left > 3 && failures == 2)
    }

    /// The same for a part file that becomes the earlier one and then the present one again: its bytes are not lost,
    /// unless the disk is full.
    @Test(arguments: Fault.allCases) func theEarlierPartFileStays(_ fault: Fault) async throws {
        let plain = FaultySyscall(SimulatedDisk())
        try await replaceAndReturn(FileStorage(syscall: plain, boot: Script.boot)) {}
        #expect(plain.calls.count(where: { $0 == .rename }) >= 5)
        for index in plain.calls.indices {
            let disk = SimulatedDisk()
            let faulty = FaultySyscall(disk, plan: fault.plan(at: index))
            let what = "\(fault) at \(index), \(plain.calls[index])"
            var isHeld = false
            do {
                try await replaceAndReturn(FileStorage(syscall: faulty, boot: Script.boot)) { isHeld = true }
            } catch {
                #expect(error is TowlineError)
                #expect(fault != .short && fault != .interrupted, "\(what): \(error)")
            }
            try check(disk, what)
            guard isHeld, fault != .full else { continue }
            let part = try FileStorage(syscall: SimulatedDisk(disk.image), boot: Script.boot).unfinished(Script.place)
            #expect(part?.claims.count == 40_000, "\(what) \(disk.image.names.keys.sorted())")
        }
    }

    /// Writes 40,000 bytes, makes them the earlier part file, discards the new one, and opens the old one again.
    /// `held` is called when the bytes are durable.
    private func replaceAndReturn(_ storage: FileStorage, _ held: () -> Void) async throws {
        let record = DownloadRecord.sample(length: Int64(EveryCallFailsTests.length))
        let first = try storage.create(Script.place, record: record, terms: CreateTerms(journaled: true))
        defer { first.sink.close() }
        try first.fill(0..<40_000)
        try await first.journal?.checkpoint(first.sink)
        held()
        var terms = CreateTerms(journaled: true)
        terms.keepsReplaced = true
        let second = try storage.replace(first, place: Script.place, record: record, terms: terms)
        let isKept = second.earlier?.count == 40_000
        #expect(isKept || second.notices.contains { $0.contains("no space") })
        second.sink.discard()
        let third = try storage.unfinished(Script.place)
        third?.sink.close()
        #expect(!isKept || third?.claims.count == 40_000)
    }

    private func makeAtOnce(_ storage: FileStorage) async throws -> Bool {
        let body = SomeBytes(Self.content)
        let small = try SmallFile(body: body, source: "http://example.test/", modified: 1, durable: true)
        switch try await storage.publishAtOnce(small, at: Script.place) {
        case .published: return true
        case .declined: #expect(body.held == Self.content)
        case .lost: #expect(body.held.isEmpty)
        }
        return false
    }

    private func runSmall(_ storage: FileStorage) async throws {
        let part = try storage.create(
            Script.place, record: .sample(length: Int64(Self.length)),
            terms: CreateTerms(journaled: false, requiresFreeName: true, isAtHand: true))
        defer { part.sink.close() }
        try part.fill(0..<Self.length)
        _ = try await part.sink.publish(.plain(Int64(Self.length)))
    }

    private func plainRun() async throws -> [FaultySyscall.Call] {
        let faulty = FaultySyscall(SimulatedDisk())
        try await run(FileStorage(syscall: faulty, boot: Script.boot))
        return faulty.calls
    }

    /// Creates a part file, writes, makes a checkpoint, withdraws, stops, resumes and publishes.
    private func run(_ storage: FileStorage) async throws {
        let record = DownloadRecord.sample(length: Int64(EveryCallFailsTests.length))
        let first = try storage.create(Script.place, record: record, terms: CreateTerms(journaled: true))
        defer { first.sink.close() }
        try first.fill(0..<20_000)
        try first.fill(30_000..<45_000)
        try await first.journal?.checkpoint(first.sink)
        try first.fill(20_000..<30_000)
        try first.journal?.withdraw(ByteRange(35_000, 40_000))
        var changed = record
        changed.resolved = "http://other.example.test/"
        try first.journal?.update(changed)
        first.sink.close()

        guard let second = try storage.unfinished(Script.place) else { return }
        defer { second.sink.close() }
        let whole = ByteRange(0, Int64(EveryCallFailsTests.length))
        for gap in second.claims.gaps(in: whole) { try second.fill(Int(gap.lowerBound)..<Int(gap.upperBound)) }
        try await second.journal?.checkpoint(second.sink)
        try second.sink.checkIntact()
        _ = try await second.sink.publish(.plain(Int64(EveryCallFailsTests.length)))
    }

    /// Compares the file and the claimed bytes that this boot and the next one find.
    private func check(_ disk: SimulatedDisk, _ what: String) throws {
        let content = EveryCallFailsTests.content
        if let bytes = disk.image[Script.name] { #expect(bytes == content, "\(what)") }
        disk.killProcess()
        for boot in [Script.boot, BootIdentity(high: 9, low: 9)] {
            let later = SimulatedDisk(disk.image)
            guard let part = try FileStorage(syscall: later, boot: boot).unfinished(Script.place) else { continue }
            for range in part.claims.ranges {
                let bytes = try part.bytes(Int(range.lowerBound)..<Int(range.upperBound))
                #expect(bytes == Array(content[Int(range.lowerBound)..<Int(range.upperBound)]), "\(what): \(range)")
            }
        }
    }
}
