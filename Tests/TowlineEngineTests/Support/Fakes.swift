import Glibc
import Synchronization
import TowlineCore

@testable import TowlineEngine

/// A clock that stands still until the test advances it.
final class ManualClock: Sendable {
    private let time = Mutex(Duration.seconds(1000))

    var now: Duration { time.withLock { $0 } }
    var read: @Sendable () -> Duration { { self.now } }

    func advance(_ duration: Duration) { time.withLock { $0 += duration } }
}

/// The writes that reached the sink and the marks that reached the journal, in order.
final class StorageLog: Sendable {
    enum Entry: Hashable, Sendable {
        case written(ByteRange)
        case marked(Int64)
    }

    private let list = Mutex<[Entry]>([])

    var entries: [Entry] { list.withLock { $0 } }
    var marks: [Int64] { entries.compactMap { if case .marked(let offset) = $0 { offset } else { nil } } }
    var written: ByteRangeSet {
        var set = ByteRangeSet()
        for case .written(let range) in entries { set.insert(range) }
        return set
    }

    func append(_ entry: Entry) { list.withLock { $0.append(entry) } }

    /// Returns whether each mark came after all bytes from `start` up to the mark.
    func marksFollowBytes(from start: Int64) -> Bool {
        var written = ByteRangeSet()
        for entry in entries {
            switch entry {
            case .written(let range): written.insert(range)
            case .marked(let offset): if !written.contains(ByteRange(start, offset)) { return false }
            }
        }
        return true
    }
}

/// A sink in memory. An attempt uses three of the port's methods; the others do nothing.
final class MemorySink: PipeSink {
    private struct State {
        var bytes: [UInt8]
        var failsFrom = Int64.max
        var failsReading = false
    }

    static let failure = TowlineError(.diskFull, "/d/f: no space left")

    private let state: Mutex<State>
    private let log: StorageLog

    init(_ bytes: [UInt8] = [], log: StorageLog) {
        state = Mutex(State(bytes: bytes))
        self.log = log
    }

    var bytes: [UInt8] { state.withLock { $0.bytes } }

    /// Makes writes that reach beyond the offset fail.
    func fail(from offset: Int64) { state.withLock { $0.failsFrom = offset } }

    func failReading() { state.withLock { $0.failsReading = true } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError) {
        let copy = Array(bytes)
        let fails = state.withLock { state in
            let end = Int(offset) + copy.count
            if Int64(end) > state.failsFrom { return true }
            if state.bytes.count < end { state.bytes += repeatElement(0, count: end - state.bytes.count) }
            state.bytes.replaceSubrange(Int(offset)..<end, with: copy)
            return false
        }
        if fails { throw MemorySink.failure }
        log.append(.written(ByteRange(offset, offset + Int64(copy.count))))
    }

    var takesPipes: Bool { true }

    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError) {
        var bytes = [UInt8](repeating: 0, count: count)
        precondition(Glibc.read(pipe, &bytes, count) == count, "the pipe holds what was said")
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(TowlineError) in try write(raw, at: offset) }
        }
        try result.get()
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int {
        let held = state.withLock {
            $0.failsReading ? nil : Array($0.bytes.dropFirst(Int(offset)).prefix(buffer.count))
        }
        guard let held else { throw MemorySink.failure }
        buffer.copyBytes(from: held)
        return held.count
    }

    func synchronize() async throws(TowlineError) {}
    func checkIntact() throws(TowlineError) {}
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch] { [] }
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile {
        PublishedFile(path: "/d/f", length: terms.length)
    }
    func setAside() throws(TowlineError) -> String? { nil }
    func discard() {}
    func close() {}
}

/// A slot that records its marks in the log.
final class RecordingSlot: JournalSlot {
    private let log: StorageLog
    private let failsFrom: Int64

    init(log: StorageLog, failsFrom: Int64 = .max) {
        self.log = log
        self.failsFrom = failsFrom
    }

    func mark(upTo offset: Int64) throws(TowlineError) {
        guard offset < failsFrom else { throw TowlineError(.diskFailure, "/d/f.tow-journal: input/output error") }
        log.append(.marked(offset))
    }
}

/// Adds up bytes instead of hashing them; matches a checksum whose first byte is the sum.
final class AddingHasher: ContentHasher {
    private let expected: UInt8?
    private var sum: UInt8 = 0

    init(_ checksum: Checksum) { expected = checksum.value.first }

    func update(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { sum &+= byte } }
    func matches() -> Bool { sum == expected }
}
