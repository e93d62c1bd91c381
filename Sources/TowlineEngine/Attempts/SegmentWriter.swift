internal import TowlineCore

/// The part file, journal slot and byte range that a transfer gives to an attempt, so that its body can be written.
struct Attachment: Sendable {
    let sink: any Sink
    let slot: (any JournalSlot)?
    let lease: ByteRange
}

/// A writer of the body of one attempt to the part file.
///
/// Compares bytes before the resume point with those on disk, cuts at the end of the segment, and records written bytes
/// in the journal. Small buffers are collected to write them in few calls. No call allocates memory. Used by one thread
/// at a time.
final class SegmentWriter {
    /// The minimum number of written bytes to record in the journal at the end of a transport's read. A SIGKILL costs
    /// at most these and the next read. If bytes arrive fast, each write is recorded.
    static let markInterval: Int64 = 32 << 10

    private let sink: any Sink
    private let slot: (any JournalSlot)?
    private let flow: FlowControl
    private let stages: StagePool
    private let clock: @Sendable () -> Duration
    /// The file offset at which the body of the response ends, which may be after the attempt's range; `.max` if
    /// unknown.
    private let responseEnd: Int64
    private let digest: (any ContentHasher)?
    /// The file offset of the first byte to write. Bytes of the body before it are compared with the part file.
    let start: Int64
    /// The offset of the next byte. Greater than the written position while bytes wait in `stage`.
    private(set) var cursor: Int64
    /// The received bytes that wait to be written together with the next ones, in one system call.
    private var stage = WriteStage()
    /// The end of the bytes that the journal records as written, and the time of the last such record, which decides
    /// when the next one is due.
    private var marked: (end: Int64, at: Duration)
    /// Called once, after the first bytes of a further attempt are written, so that the transfer acts on them at once.
    private var onFirstBytes: (() -> Void)?
    /// The result of the attempt if this writer stopped it, such as a failed write; `nil` if it did not.
    private(set) var result: AttemptResult?

    /// Creates a writer whose first byte has the offset `cursor`, before or at the start of the range.
    init(
        _ attachment: Attachment, from cursor: Int64, responseEnd: Int64, digest: (any ContentHasher)?,
        flow: FlowControl, stages: StagePool, clock: @escaping @Sendable () -> Duration, onFirstBytes: (() -> Void)?
    ) {
        sink = attachment.sink
        slot = attachment.slot
        start = attachment.lease.lowerBound
        marked = (start, .zero)
        self.cursor = cursor
        self.responseEnd = responseEnd
        self.digest = digest
        self.flow = flow
        self.stages = stages
        self.clock = clock
        self.onFirstBytes = onFirstBytes
    }

    // MARK: Bytes in memory

    /// Handles the next bytes of the body: compares them with the part file, writes them, or collects them for a later
    /// write.
    func take(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        do throws(TowlineError) {
            digest?.update(bytes)
            var rest = bytes
            if cursor < start {
                let count = Int(min(Int64(rest.count), start - cursor))
                let seam = UnsafeRawBufferPointer(rebasing: rest[..<count])
                guard try sink.holds(seam, at: cursor) else { return stop(with: .overlapDiffers) }
                cursor += Int64(count)
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            let end = flow.end
            let count = Int(min(Int64(rest.count), max(0, end - cursor)))
            if count > 0 { try write(UnsafeRawBufferPointer(rebasing: rest[..<count])) }
            return isOver(at: end, leaving: rest.count - count) ? stop(with: .stopped) : .consumed
        } catch {
            return stop(with: .sinkFailed(error))
        }
    }

    /// Returns whether the attempt has all bytes of its range, which ends at `end`, and the connection can be closed;
    /// `rest` is the number of bytes received beyond it. If the response ends there too, the attempt waits for its end
    /// instead, and the connection stays usable.
    private func isOver(at end: Int64, leaving rest: Int) -> Bool { cursor >= end && (end < responseEnd || rest > 0) }

    private func stop(with result: AttemptResult) -> BodyDisposition {
        self.result = result
        return .stop
    }

    /// Writes bytes at `cursor`, at once or later together with the next ones.
    private func write(_ bytes: UnsafeRawBufferPointer) throws(TowlineError) {
        let waits = sink.waitsForReaders
        if !stage.hasRoom(for: bytes.count) { try writeStage() }
        let isAlone = stage.isEmpty && bytes.count < WriteStage.least
        if !waits, !isAlone, stage.hasRoom(for: bytes.count) {
            stage.append(bytes, from: stages)
            cursor += Int64(bytes.count)
            let endsReading = bytes.count < WriteStage.piece && cursor - marked.end >= Self.markInterval
            if endsReading || !stage.hasRoom(for: 1) { try writeStage() }
            return
        }
        if waits {
            try flow.heldBack { () throws(TowlineError) in try sink.write(bytes, at: cursor) }
        } else {
            try sink.write(bytes, at: cursor)
        }
        try advance(by: bytes.count)
    }

    /// Moves `cursor` past `count` bytes that are written, and records them in the journal. `stage` must be empty.
    private func advance(by count: Int) throws(TowlineError) {
        cursor += Int64(count)
        flow.written(upTo: cursor)
        try mark()
        if onFirstBytes != nil, cursor > start { onFirstBytes.take()?() }
    }

    private func writeStage() throws(TowlineError) {
        guard !stage.isEmpty else { return }
        let start = cursor - Int64(stage.count)
        do throws(TowlineError) {
            try stage.empty(into: stages) { bytes throws(TowlineError) in try sink.write(bytes, at: start) }
        } catch {
            // Bytes that are not written must not be marked.
            cursor = start
            throw error
        }
        // `write` has already moved the cursor.
        try advance(by: 0)
    }

    /// Records the written bytes in the journal: every `markInterval` bytes, every 250 ms, or now (`always`).
    private func mark(always: Bool = false) throws(TowlineError) {
        guard let slot, cursor > marked.end else { return }
        if !always, cursor - marked.end < Self.markInterval {
            let now = clock()
            guard now - marked.at >= .milliseconds(250) else { return }
            marked.at = now
        }
        try slot.mark(upTo: cursor)
        marked.end = cursor
    }

    /// Writes the bytes in `stage`, because the transport has no more now. Returns `false` if the attempt must be
    /// closed.
    func flush() -> Bool {
        do throws(TowlineError) {
            try writeStage()
            return true
        } catch {
            result = .sinkFailed(error)
            return false
        }
    }

    /// Writes the collected bytes and records all written ones, because no further bytes come.
    func finish() {
        _ = flush()
        do throws(TowlineError) {
            try mark(always: true)
        } catch {
            result = .sinkFailed(error)
        }
    }

    // MARK: Bytes in a pipe, without a copy in this process

    /// Returns whether the next bytes need no inspection and may come through a pipe: those before the resume point are
    /// compared, no digest is computed, no bytes wait, no rate limit applies, and the sink is a file that takes pipes.
    var takesPipes: Bool {
        cursor >= start && digest == nil && stage.isEmpty && !flow.isLimited
            && (sink as? any PipeSink)?.takesPipes ?? false
    }

    /// The number of bytes to take from the transport now: the rest of the attempt's range. Under a rate limit that was
    /// set meanwhile, at most 16 KiB, a usual buffer of a transport.
    var wanted: Int64 { min(max(0, flow.end - cursor), flow.isLimited ? Int64(WriteStage.piece) : .max) }

    /// Writes the first `count` bytes in `pipe` to the part file, up to the end of the attempt's byte range.
    func take(from pipe: Int32, count: Int) -> BodyDisposition {
        guard let sink = sink as? any PipeSink else { return stop(with: .cancelled) }
        do throws(TowlineError) {
            let end = flow.end
            let taken = Int(min(Int64(count), max(0, end - cursor)))
            if taken > 0 {
                try sink.write(from: pipe, count: taken, at: cursor)
                try advance(by: taken)
            }
            return isOver(at: end, leaving: count - taken) ? stop(with: .stopped) : .consumed
        } catch {
            return stop(with: .sinkFailed(error))
        }
    }
}
