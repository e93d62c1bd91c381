import CTowline
import Glibc
import Synchronization
import Testing
import TowlineCore
import TowlineEngine
import TowlineThreads

@testable import TowlineDisk

@Suite struct SyncQueueTests {
    private let directory = ScratchDirectory()

    /// Holds the first sync until the gate opens, so that the other files gather meanwhile.
    private final class Gate: Sendable {
        private let isOpen = Atomic<Bool>(false)
        func open() { isOpen.store(true, ordering: .releasing) }
        func pass() { while !isOpen.load(ordering: .acquiring) { sched_yield() } }
    }

    /// Publishes files concurrently: the first is held in its sync until all others wait in the queue.
    private func publish(
        _ count: Int, failing: FaultySyscall.Call? = nil, type: Int64? = nil
    ) async throws -> [FaultySyscall.Call] {
        let gate = Gate()
        let syncs: Set<FaultySyscall.Call> = [.fsync, .fdatasync, .syncfs, .waitForWriteback]
        let faulty = FaultySyscall { call, _ in
            if call == .fsync || call == .fdatasync { gate.pass() }
            return call == failing ? .error(EIO) : nil
        }
        if let type { faulty.setType(type) }
        let queue = SyncQueue(syscall: faulty)
        let folder = try Folder(directory.path, syscall: faulty)
        let files = try (0..<count).map { try #require(try folder.create("\($0)", mode: 0o600)) }
        await withTaskGroup(of: Void.self) { group in
            for (index, file) in files.enumerated() {
                group.addTask { try? await queue.synchronize(file, .everything, device: 1) }
                if index == 0 {
                    while !faulty.calls.contains(.fsync) { await Task.yield() }
                }
            }
            while queue.waiting(1) < count - 1 { await Task.yield() }
            gate.open()
        }
        return faulty.calls.filter { syncs.contains($0) }
    }

    @Test func aFewFilesAreSyncedEach() async throws {
        #expect(try await publish(4) == [.fsync, .fsync, .fsync, .fsync])
    }

    @Test func manyFilesShareOneSync() async throws {
        let calls = try await publish(20)
        #expect(calls.first == .fsync && calls.count { $0 == .syncfs } == 1)
        #expect(calls.count { $0 == .waitForWriteback } == 19 && calls.count { $0 == .fsync } == 1)
    }

    /// syncfs(2) succeeds without reaching a FUSE server.
    @Test func whereNobodyHearsOfASharedSyncEachIsAsked() async throws {
        let calls = try await publish(20, type: 0x6573_5546)
        #expect(calls.count { $0 == .fsync } == 20 && !calls.contains(.syncfs))
    }

    /// A failed sync of everything does not show whose bytes are lost: each file is synced separately.
    @Test func ifTheSharedSyncFailsEachIsAsked() async throws {
        let calls = try await publish(20, failing: .syncfs)
        #expect(calls.count { $0 == .fsync } == 20)
    }

    /// Files that are published together: all bytes are durable before the first name is given, and all names before
    /// their directory is synced, once.
    @Test(arguments: [false, true])
    func filesThatComeTogetherGetTheirNamesTogether(_ callersMayWait: Bool) async throws {
        let gate = Gate()
        let faulty = FaultySyscall { call, _ in
            if call == .fsync { gate.pass() }
            return nil
        }
        let queue = SyncQueue(syscall: faulty, callersMayWait: callersMayWait)
        let folder = try Folder(directory.path, syscall: faulty)
        let files = try (0..<6).map { try #require(try folder.create("\($0).tow", mode: 0o600)) }
        await withTaskGroup(of: SyncQueue.Outcome.self) { group in
            for (index, file) in files.enumerated() {
                group.addTask {
                    let naming = SyncQueue.Naming(folder: folder.descriptor) {
                        (try? folder.rename("\(index).tow", to: "\(index)")) == true
                    }
                    return await queue.publish(file, naming, device: 1, callerMayWait: callersMayWait)
                }
                if index == 0 {
                    while !faulty.calls.contains(.fsync) { await Task.yield() }
                }
            }
            while queue.waiting(1) < 5 { await Task.yield() }
            gate.open()
            for await outcome in group { #expect(outcome.file == 0 && outcome.folder == 0) }
        }
        let calls = faulty.calls.filter { [.fsync, .rename].contains($0) }
        let alone: [FaultySyscall.Call] = [.fsync, .rename, .fsync]
        let together: [FaultySyscall.Call] =
            Array(repeating: .fsync, count: 5) + Array(repeating: .rename, count: 5) + [.fsync]
        #expect(calls == alone + together)
    }

    /// A file gets a name only if it is durable. A directory without a new name is not synced, and a failed sync of one
    /// is reported.
    @Test(arguments: [1, 2]) func namesFollowSyncs(_ failing: Int) async throws {
        let syncs = Atomic<Int>(0)
        let faulty = FaultySyscall { call, _ in
            guard call == .fsync else { return nil }
            return syncs.add(1, ordering: .relaxed).newValue == failing ? .error(EIO) : nil
        }
        let queue = SyncQueue(syscall: faulty)
        let folder = try Folder(directory.path, syscall: faulty)
        let file = try #require(try folder.create("a", mode: 0o600))
        let isNamed = Atomic<Bool>(false)
        let naming = SyncQueue.Naming(folder: folder.descriptor) {
            isNamed.store(true, ordering: .relaxed)
            return true
        }
        let outcome = await queue.publish(file, naming, device: 1)
        #expect(isNamed.load(ordering: .relaxed) == (failing == 2))
        #expect((outcome.file, outcome.folder) == (failing == 1 ? (-EIO, 0) : (0, -EIO)))
        #expect(syncs.load(ordering: .relaxed) == failing)
        let refused = SyncQueue.Naming(folder: folder.descriptor) { false }
        _ = await queue.publish(file, refused, device: 1)
        #expect(syncs.load(ordering: .relaxed) == failing + 1)
    }

    /// An early start is a hint: it returns at once, runs once per file however often it was requested, and leaves
    /// every error to the sync.
    @Test(arguments: [nil, EIO]) func anEarlyStartPromisesNothing(_ error: Int32?) async throws {
        let gate = Gate()
        let faulty = FaultySyscall { call, _ in
            if call == .fdatasync { gate.pass() }
            return call == .startWriteback ? error.map { .error($0) } : nil
        }
        let queue = SyncQueue(syscall: faulty)
        let folder = try Folder(directory.path, syscall: faulty)
        let file = try #require(try folder.create("early", mode: 0o600))
        async let first: Void = queue.synchronize(file, .data, device: 1)
        while !faulty.calls.contains(.fdatasync) { await Task.yield() }
        for _ in 0..<3 { queue.startWriteback(of: file, device: 1) }
        #expect(!faulty.calls.contains(.startWriteback), "the sync has the thread")
        gate.open()
        try await first
        while !faulty.calls.contains(.startWriteback) { await Task.yield() }
        try await queue.synchronize(file, .data, device: 1)
        #expect(faulty.calls.count { $0 == .startWriteback } == 1)
        file.close()
        queue.startWriteback(of: file, device: 1)
        let other = try #require(try folder.create("other", mode: 0o600))
        try await queue.synchronize(other, .data, device: 1)
        #expect(faulty.calls.count { $0 == .startWriteback } == 1, "no writeback of a closed file")
    }

    /// Successive syncs share a thread, which waits for the next sync until its patience ends, and then ends.
    @Test func syncsInARowShareAThread() async throws {
        let threads = Mutex<[String]>([])
        let faulty = FaultySyscall { call, _ in
            if call == .fsync { threads.withLock { $0.append(Self.threadName()) } }
            return nil
        }
        let folder = try Folder(directory.path, syscall: faulty)
        let patient = SyncQueue(syscall: faulty, patience: 60_000)
        for _ in 0..<50 { try await patient.synchronize(folder.descriptor, .everything, device: 1) }
        #expect(threads.withLock { $0.count == 50 && Set($0).count == 1 })
        let hasty = SyncQueue(syscall: faulty, patience: 1)
        for _ in 0..<2 {
            try await hasty.synchronize(folder.descriptor, .everything, device: 1)
            while hasty.isServed(1) { await Task.yield() }
        }
        #expect(threads.withLock { Set($0).count == 3 })
    }

    /// If callers may wait, the first publication needs no thread; a checkpoint, which may take long, does.
    @Test func theFirstPublicationNeedsNoThread() async throws {
        let folder = try Folder(directory.path, syscall: SystemCalls())
        let file = try #require(try folder.create("a", mode: 0o600))
        let naming = SyncQueue.Naming(folder: folder.descriptor) { true }
        let count = Counter()
        let queue = SyncQueue(syscall: SystemCalls(), patience: 1, callersMayWait: true) { body in
            count.value.add(1, ordering: .relaxed)
            return WorkThread.tryStart(body)
        }
        try await queue.synchronize(file, .data, device: 1)
        while queue.isServed(1) { await Task.yield() }
        #expect(count.value.load(ordering: .relaxed) == 1)
        _ = await queue.publish(file, naming, device: 1, callerMayWait: true)
        #expect(count.value.load(ordering: .relaxed) == 1 && !queue.isServed(1))
        _ = await queue.publish(file, naming, device: 1, callerMayWait: true)
        #expect(count.value.load(ordering: .relaxed) == 2)
    }

    private final class Counter: Sendable { let value = Atomic<Int>(0) }

    /// If no thread can start, the caller serves the waiting files, and does not wait for later ones.
    @Test(.timeLimit(.minutes(1))) func withoutAThreadNobodyIsKept() async throws {
        let faulty = FaultySyscall()
        let folder = try Folder(directory.path, syscall: faulty)
        let queue = SyncQueue(syscall: faulty, patience: 120_000, tryStart: { _ in false })
        for _ in 0..<3 { try await queue.synchronize(folder.descriptor, .everything, device: 1) }
        queue.startWriteback(of: folder.descriptor, device: 1)
        #expect(faulty.calls.count { $0 == .fsync } == 3 && faulty.calls.last == .startWriteback)
        #expect(!queue.isServed(1))
    }

    /// Returns the kernel's name of the calling thread; `pthread_self` may return the same value for the next thread.
    private static func threadName() -> String {
        var name = [CChar](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self", &name, name.count)
        return String(decoding: name.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    @Test func aWaitThatWasCancelledStillEndsWithTheSync() async throws {
        let faulty = FaultySyscall()
        let folder = try Folder(directory.path, syscall: faulty)
        let queue = SyncQueue(syscall: faulty)
        let task = Task { try await queue.synchronize(folder.descriptor, .everything, device: 1) }
        task.cancel()
        try await task.value
        #expect(faulty.calls.contains(.fsync))
    }

    @Test func aFileThatFailedSaysSo() async throws {
        let folder = try Folder(
            directory.path, syscall: FaultySyscall { call, _ in call == .fsync ? .error(EIO) : nil })
        let queue = SyncQueue(syscall: folder.descriptor.syscall)
        let error = await #expect(throws: TowlineError.self) {
            try await queue.synchronize(folder.descriptor, .everything, device: 1)
        }
        #expect(error?.code == .diskFailure && error?.systemError == EIO)
    }
}

@Suite struct ChecksumTests {
    @Test(arguments: [
        ("", UInt32(0)), ("123456789", 0xE306_9283), ("The quick brown fox jumps over the lazy dog", 0x2262_0404),
    ])
    func crc32cIsTheKnownOne(_ text: String, _ expected: UInt32) {
        let value = MessageDigest.value(of: Array(text.utf8), .crc32c)
        #expect(value == withUnsafeBytes(of: expected.bigEndian) { Array($0) })
        #expect(CRC32C.checksum(text.utf8) == expected)
    }

    /// The instruction and the table return the same value for every length and alignment.
    @Test func bothWaysToCRC32CAgree() {
        let bytes = pattern(0..<300)
        bytes.withUnsafeBytes { raw in
            for start in 0..<9 {
                for end in start..<300 {
                    let piece = UnsafeRawBufferPointer(rebasing: raw[start..<end])
                    let fast = towline_crc32c(7, piece.baseAddress, piece.count)
                    #expect(fast == towline_crc32c_table(7, piece.baseAddress, piece.count))
                }
            }
        }
    }

    @Test func digestsAreTheKnownOnes() {
        func hex(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        let abc = Array("abc".utf8)
        #expect(hex(MessageDigest.value(of: abc, .md5)) == "900150983cd24fb0d6963f7d28e17f72")
        #expect(hex(MessageDigest.value(of: abc, .sha1)) == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            hex(MessageDigest.value(of: abc, .sha256))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(hex(MessageDigest.value(of: abc, .sha512)).hasPrefix("ddaf35a193617abacc417349ae204131"))
    }
}

@Suite struct StandardOutputTests {
    private func pipe() -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        Glibc.pipe(&ends)
        return (ends[0], ends[1])
    }

    @Test func bytesGoOutInOrderAndTheTailCanBeRead() async throws {
        let ends = pipe()
        let sink = try StreamSink(output: .descriptor(ends.write))
        try pattern(0..<3000).withUnsafeBytes { try sink.write($0, at: 0) }
        try pattern(3000..<5000).withUnsafeBytes { try sink.write($0, at: 3000) }
        var out = [UInt8](repeating: 0, count: 6000)
        #expect(read(ends.read, &out, out.count) == 5000)
        #expect(Array(out[..<5000]) == pattern(0..<5000))
        var tail = [UInt8](repeating: 0, count: 4000)
        #expect(try tail.withUnsafeMutableBytes { try sink.read(into: $0, at: 2000) } == 3000)
        #expect(Array(tail[..<3000]) == pattern(2000..<5000))
        #expect(throws: TowlineError.self) { try pattern(0..<1).withUnsafeBytes { try sink.write($0, at: 0) } }
        #expect(throws: TowlineError.self) { try tail.withUnsafeMutableBytes { try sink.read(into: $0, at: 5001) } }
        let published = try await sink.publish(.plain(5000))
        #expect(published == PublishedFile(path: "/dev/fd/\(ends.write)", length: 5000))
        await #expect(throws: TowlineError.self) { try await sink.publish(.plain(5001)) }
    }

    @Test func standardOutputIsCalledByItsSign() async throws {
        #expect(try await StreamSink().publish(.plain(0)) == PublishedFile(path: "-", length: 0))
    }

    @Test func onlyTheTailIsKept() throws {
        let null = open("/dev/null", O_WRONLY)
        let sink = try StreamSink(output: .descriptor(null))
        var end = 0
        for count in [100, 200_000, 30_000, 30_000, 90, 70_000, 60_000, 60_000, 7] {
            try pattern(end..<(end + count)).withUnsafeBytes { try sink.write($0, at: Int64(end)) }
            end += count
            let start = max(0, end - 65_536)
            var tail = [UInt8](repeating: 0, count: end - start)
            #expect(try tail.withUnsafeMutableBytes { try sink.read(into: $0, at: Int64(start)) } == end - start)
            #expect(tail == pattern(start..<end))
        }
        var tail = [UInt8](repeating: 0, count: 10)
        #expect(throws: TowlineError.self) { try tail.withUnsafeMutableBytes { try sink.read(into: $0, at: 0) } }
        close(null)
    }

    @Test func whatWentByIsVerified() async throws {
        let null = open("/dev/null", O_WRONLY)
        let sink = try StreamSink(output: .descriptor(null), algorithms: [.sha256])
        try pattern(0..<900).withUnsafeBytes { try sink.write($0, at: 0) }
        let value = MessageDigest.value(of: pattern(0..<900), .sha256)
        let good = try #require(Checksum(algorithm: .sha256, value: value))
        let bad = try #require(Checksum(algorithm: .sha256, value: value.reversed()))
        #expect(
            try await sink.verify([good, bad], length: 900) == [ChecksumMismatch(expected: bad, found: good)])
        #expect(try await sink.verify([good], length: 900) == [])
        let other = try #require(Checksum(algorithm: .md5, value: Array(0..<16)))
        await #expect(throws: TowlineError.self) { try await sink.verify([other], length: 900) }
        close(null)
    }

    @Test func aClosedPipeIsAnError() throws {
        let ends = pipe()
        close(ends.read)
        signal(SIGPIPE, SIG_IGN)
        let sink = try StreamSink(output: .descriptor(ends.write))
        #expect(throws: TowlineError.self) { try pattern(0..<10).withUnsafeBytes { try sink.write($0, at: 0) } }
    }
}
