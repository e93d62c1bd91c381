import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// One slot of the marks section: a run of bytes [start, end), of which [start, durableEnd) is durable.
///
/// Each slot has a lock of its own: an engine thread that marks meets no other engine thread here, only now and then
/// a checkpoint that takes a snapshot.
final class MarkSlot: Sendable {
    struct Run: Sendable {
        var start: Int64 = 0
        var end: Int64 = 0
        var durableEnd: Int64 = 0
        /// Who may mark; 0: nobody, the slot is not leased.
        var lease: UInt64 = 0
        /// Goes up when the run stops being the one that an earlier snapshot saw.
        var version: UInt64 = 0

        var isEmpty: Bool { start == end }
        var written: ByteRange { ByteRange(start, end) }
        var durable: ByteRange { ByteRange(start, durableEnd) }
    }

    /// What a checkpoint saw.
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

    /// The run as it is now.
    var current: Run { run.withLock { $0 } }

    /// Moves the end of the run, on disk and then here. A lease that was taken away marks nothing.
    func mark(upTo offset: Int64, lease: UInt64) throws(TowlineError) {
        try run.withLock { (run) throws(TowlineError) in
            guard run.lease == lease, offset > run.end else { return }
            try marks.record(.written, start: run.start, end: offset, slot: index)
            run.end = offset
        }
    }

    /// Leases a slot that is free, or whose run ends at `offset`.
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

    func release(_ number: UInt64) {
        run.withLock { if $0.lease == number { $0.lease = 0 } }
    }

    /// What a checkpoint has to make durable; `nil` if all of it is.
    var snapshot: Snapshot? {
        run.withLock { $0.durableEnd < $0.end ? Snapshot(end: $0.end, version: $0.version) : nil }
    }

    /// Records as durable what the snapshot saw, unless the run was changed meanwhile.
    func recordDurable(_ snapshot: Snapshot) throws(TowlineError) {
        try run.withLock { (run) throws(TowlineError) in
            guard run.version == snapshot.version, snapshot.end > run.durableEnd else { return }
            try marks.record(.durable, start: run.start, end: snapshot.end, slot: index)
            run.durableEnd = snapshot.end
        }
    }

    /// Replaces the run by one that claims nothing that was not claimed, or that is a union of claims; leases end.
    ///
    /// The written record goes first: within a boot, it is the one that says more.
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

/// The right to mark in a slot.
final class SlotLease: JournalSlot {
    let slot: MarkSlot
    let number: UInt64

    init(slot: MarkSlot, number: UInt64) {
        self.slot = slot
        self.number = number
    }

    func mark(upTo offset: Int64) throws(TowlineError) { try slot.mark(upTo: offset, lease: number) }
}

/// Where the marks are in the journal, and whose they are.
struct MarksSection: Sendable {
    let file: Descriptor
    let offset: Int64
    let slotCount: Int
    let owner: MarkOwner

    /// Two records a slot, four slots a sector.
    static let slotSize = 2 * MarkRecord.byteCount

    /// Writes one record in place; an empty range is written as no claim.
    func record(_ kind: MarkRecord.Kind, start: Int64, end: Int64, slot: Int) throws(TowlineError) {
        let record =
            start == end
            ? MarkRecord.none
            : MarkRecord(kind: kind, start: start, end: end, slot: UInt16(truncatingIfNeeded: slot), owner: owner)
        let place = offset + Int64(slot * MarksSection.slotSize + (kind == .durable ? MarkRecord.byteCount : 0))
        try record.withUnsafeBytes { (bytes) throws(TowlineError) in try file.write(bytes, at: place) }
    }

    /// Reads the runs back; records that cannot be believed are counted and cost their run.
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
