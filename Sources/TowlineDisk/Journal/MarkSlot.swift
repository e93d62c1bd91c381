import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// A slot of a journal, which records one run of downloaded bytes: the bytes [start, end) of the part file are written,
/// the bytes [start, durableEnd) are durable.
///
/// Each slot has its own lock: a thread that receives and records bytes never contends with another one, only
/// occasionally with a checkpoint (a sync in the background), which takes a snapshot.
final class MarkSlot: Sendable {
    /// A run of consecutive bytes of the part file: the ends of its written and of its durable bytes, and its lease
    /// (the right of one writer to extend it).
    struct Run: Sendable {
        var start: Int64 = 0
        var end: Int64 = 0
        var durableEnd: Int64 = 0
        /// The number of the lease, the exclusive right of one writer to extend the run; 0 if no writer has it.
        var lease: UInt64 = 0
        /// A counter that increases when another run of bytes replaces this one, so that a snapshot from before is not
        /// recorded as durable.
        var version: UInt64 = 0

        var isEmpty: Bool { start == end }
        var written: ByteRange { ByteRange(start, end) }
        var durable: ByteRange { ByteRange(start, durableEnd) }
    }

    /// The state of a run at the start of a checkpoint, a sync that makes the bytes up to `end` durable.
    struct Snapshot: Sendable {
        let end: Int64
        let version: UInt64
    }

    let index: Int
    private let marks: MarksSection
    private let run: Mutex<Run>

    init(index: Int, marks: MarksSection, run: Run = Run()) {
        self.index = index
        self.marks = marks
        self.run = Mutex(run)
    }

    var current: Run { run.withLock { $0 } }

    /// Records the bytes up to `offset` as written, first on disk, then in memory. Does nothing if the caller's lease,
    /// the right to extend the run, was revoked or the run already ends at or after `offset`.
    func mark(upTo offset: Int64, lease: UInt64) throws(TowlineError) {
        try run.withLock { (run) throws(TowlineError) in
            guard run.lease == lease, offset > run.end else { return }
            try marks.record(.written, start: run.start, end: offset, slot: index)
            run.end = offset
        }
    }

    /// Gives lease `number`, the exclusive right to extend the run, if the slot has no lease and its run is empty or
    /// ends at `offset`. Returns whether the lease was given.
    func lease(_ number: UInt64, at offset: Int64) -> Bool {
        run.withLock { run in
            guard run.lease == 0 else { return false }
            if run.isEmpty {
                run.start = offset
                run.end = offset
                run.durableEnd = offset
                run.version += 1
            }
            guard run.end == offset else { return false }
            run.lease = number
            return true
        }
    }

    /// Ends the lease `number`, the exclusive right to extend the run of bytes, so that another writer can extend the
    /// run.
    func release(_ number: UInt64) {
        run.withLock { if $0.lease == number { $0.lease = 0 } }
    }

    /// The state of the run for a checkpoint, which makes its bytes durable; `nil` if all of them are durable already.
    var snapshot: Snapshot? {
        run.withLock { $0.durableEnd < $0.end ? Snapshot(end: $0.end, version: $0.version) : nil }
    }

    /// Records the bytes of the snapshot as durable, unless the run was replaced since the snapshot.
    func recordDurable(_ snapshot: Snapshot) throws(TowlineError) {
        try run.withLock { (run) throws(TowlineError) in
            guard run.version == snapshot.version, snapshot.end > run.durableEnd else { return }
            try marks.record(.durable, start: run.start, end: snapshot.end, slot: index)
            run.durableEnd = snapshot.end
        }
    }

    /// Replaces the run by a part of it or by its union with an adjacent run, and ends its lease, the right of a writer
    /// to extend the run.
    ///
    /// Writes the record of written bytes before that of durable bytes: until the machine restarts, it covers the
    /// larger range.
    func replace(start: Int64, end: Int64, durableEnd: Int64) throws(TowlineError) {
        try run.withLock { (run) throws(TowlineError) in
            run.version += 1
            run.lease = 0
            let old = run
            run.start = start
            run.end = end
            run.durableEnd = durableEnd
            if old.start != start || old.end != end {
                try marks.record(.written, start: start, end: end, slot: index)
            }
            if old.start != start || old.durableEnd != durableEnd {
                try marks.record(.durable, start: start, end: durableEnd, slot: index)
            }
        }
    }
}

/// The exclusive right to extend the run of written bytes that a slot of the journal records.
final class SlotLease: JournalSlot {
    let slot: MarkSlot
    let number: UInt64

    init(slot: MarkSlot, number: UInt64) {
        self.slot = slot
        self.number = number
    }

    func mark(upTo offset: Int64) throws(TowlineError) { try slot.mark(upTo: offset, lease: number) }
}

/// The section of the journal that contains the marks, records of 64 bytes that state which bytes are written or
/// durable.
struct MarksSection: Sendable {
    let file: Descriptor
    let offset: Int64
    let slotCount: Int
    let owner: MarkOwner

    /// The size of a slot in bytes: two records, one of written and one of durable bytes. A sector has four slots.
    static let slotSize = 2 * MarkRecord.byteCount

    /// Writes the record in a slot, in place, that the bytes [start, end) are written or durable (`kind`). An empty
    /// range is written as the empty record.
    func record(_ kind: MarkRecord.Kind, start: Int64, end: Int64, slot: Int) throws(TowlineError) {
        let record =
            start == end
            ? MarkRecord.none
            : MarkRecord(kind: kind, start: start, end: end, slot: UInt16(truncatingIfNeeded: slot), owner: owner)
        let place = offset + Int64(slot * MarksSection.slotSize + (kind == .durable ? MarkRecord.byteCount : 0))
        try record.withUnsafeBytes { (bytes) throws(TowlineError) in try file.write(bytes, at: place) }
    }

    /// Reads the runs of all slots, by slot index, and counts damaged records: their bytes are downloaded again.
    func read() throws(TowlineError) -> (runs: [MarkSlot.Run], damaged: Int) {
        let bytes = try file.read(slotCount * MarksSection.slotSize, at: offset)
        var runs: [MarkSlot.Run] = []
        var damaged = 0
        let unused = [UInt8](repeating: 0, count: MarksSection.slotSize)
        bytes.withUnsafeBytes { raw in
            for index in 0..<(raw.count / MarksSection.slotSize) {
                let base = index * MarksSection.slotSize
                if let first = raw.baseAddress, memcmp(first + base, unused, unused.count) == 0 { continue }
                let written = MarkRecord(UnsafeRawBufferPointer(rebasing: raw[base...]))
                let durable = MarkRecord(UnsafeRawBufferPointer(rebasing: raw[(base + MarkRecord.byteCount)...]))
                while runs.count <= index { runs.append(MarkSlot.Run()) }
                let (believed, rotten) = run(written, durable, slot: index)
                runs[index] = believed
                damaged += rotten
            }
        }
        return (runs, damaged)
    }

    private func run(_ written: MarkRecord, _ durable: MarkRecord, slot: Int) -> (MarkSlot.Run, Int) {
        var run = MarkSlot.Run()
        var damaged = 0
        if !durable.isEmpty {
            if durable.isSound(kind: .durable, slot: slot) {
                if durable.belongs(to: owner, sameBoot: false) {
                    (run.start, run.end, run.durableEnd) = (durable.start, durable.end, durable.end)
                }
            } else {
                damaged += 1
            }
        }
        if !written.isEmpty {
            if written.isSound(kind: .written, slot: slot) {
                if written.belongs(to: owner, sameBoot: true), run.isEmpty || run.start == written.start {
                    if run.isEmpty { (run.start, run.durableEnd) = (written.start, written.start) }
                    run.end = max(run.end, written.end)
                }
            } else {
                damaged += 1
            }
        }
        return (run, damaged)
    }
}
