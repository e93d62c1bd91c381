import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// A whole run, again and again, in which another call fails each time.
@Suite struct EveryCallFailsTests {
    private static let length = 60_000

    private static let content = pattern(0..<length)

    enum Fault: CaseIterable, Sendable {
        case full, failure, interrupted, short, failsFromThenOn

        /// It happens to the call with that index.
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

    /// Either it works, or the error says what; afterwards nothing is claimed that is not there.
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

    /// The same of a small file that has no name before it is published: it is there whole, or not at all.
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

    /// The same of one that is made at once. Where that is not possible nothing is there, and nobody is told of an error: the
    /// usual way finds out. Only of a name that may not outlive a power loss it is told.
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

    private func makeAtOnce(_ storage: FileStorage) async throws -> Bool {
        let body = SomeBytes(Self.content)
        let small = SmallFile(body: body, source: "http://example.test/", modified: 1, durable: true)
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

    /// Creates, writes, checkpoints, withdraws, stops, goes on, publishes.
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

    /// What the same boot and the next one find.
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
