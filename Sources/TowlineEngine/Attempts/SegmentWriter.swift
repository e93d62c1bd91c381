internal import TowlineCore

/// The objects that an attempt needs to write its body: the part file, the journal slot (entry that records the written
/// bytes), and the byte range (`lease`) that it may write.
struct Attachment: Sendable {
    let sink: any Sink
    let slot: (any JournalSlot)?
    let lease: ByteRange
}

/// Writes the body of one HTTP request to the part file.
///
/// Compares bytes before the start of its range with those on disk, stops at the end of the range, and records written
/// bytes in the journal. Small buffers are collected to write them in few calls. No call allocates memory. Used by one
/// thread at a time.
final class SegmentWriter {
    /// The minimum number of newly written bytes that must be recorded in the journal after a read of the transport. A
    /// crash of the process costs at most these bytes and those of the next read.
    static let markInterval: Int64 = 32 << 10

    private let sink: any Sink
    private let slot: (any JournalSlot)?
    private let flow: FlowControl
    private let stages: StagePool
    private let clock: @Sendable () -> Duration
    /// The file offset at which the body of the response ends, which may be after the byte range of this request;
    /// `.max` if unknown.
    private let responseEnd: Int64
    private let digest: (any ContentHasher)?
    /// The file offset of the first byte to write. Bytes of the body before it are already in the part file, and are
    /// compared with it.
    let start: Int64
    /// The file offset of the next byte from the transport. It is beyond the written bytes while some are collected in
    /// `stage`.
    private(set) var cursor: Int64
    /// A buffer of received bytes, which are written together with the next ones, in one system call.
    private var stage = WriteStage()
    /// The end of the bytes that the journal records as written, as a file offset, and the time of that record. They
    /// decide when the next record is due.
    private var marked: (end: Int64, at: Duration)
    /// A function that is called once, after the first bytes of an additional parallel request are written; `nil` for
    /// other requests. The transfer then decides whether to start more requests.
    private var onFirstBytes: (() -> Void)?
    /// The result of the request if this writer stopped it, for example because a write failed; `nil` if it did not.
    private(set) var result: AttemptResult?

    /// Creates a writer of the body of a request. The body begins at the file offset `cursor`, at or before the start
    /// of the range in the attachment, and ends at `responseEnd`.
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
    /// write. Returns whether the transport continues, pauses or stops.
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

    /// Returns whether the request has delivered all bytes of its range, which ends at `end`, and its connection must
    /// be closed; `rest` is the number of bytes received beyond it. `false` if the response ends there too: waiting for
    /// its end keeps the connection usable.
    private func isOver(at end: Int64, leaving rest: Int) -> Bool { cursor >= end && (end < responseEnd || rest > 0) }

    private func stop(with result: AttemptResult) -> BodyDisposition {
        self.result = result
        return .stop
    }

    /// Writes bytes to the part file at `cursor`, or collects them in `stage` to write them together with the next
    /// ones.
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

    /// Moves `cursor` past `count` bytes that were just written, and records them in the journal. `stage`, the buffer
    /// of unwritten bytes, must be empty.
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

    /// Records the written bytes in the journal if `markInterval` bytes or 250 ms have passed since the last record.
    /// `always`: records them in any case.
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

    /// Writes the bytes that are collected in `stage`, because the transport has no more for now. Returns `false` if
    /// the request must be closed, for example after a failed write.
    func flush() -> Bool {
        do throws(TowlineError) {
            try writeStage()
            return true
        } catch {
            result = .sinkFailed(error)
            return false
        }
    }

    /// Writes the bytes that are collected in `stage`, and records all written bytes in the journal, because the
    /// response has ended.
    func finish() {
        _ = flush()
        do throws(TowlineError) {
            try mark(always: true)
        } catch {
            result = .sinkFailed(error)
        }
    }

    // MARK: Bytes in a pipe, without a copy in this process

    /// Returns whether the kernel may move the next bytes to the file through a pipe, because this process need not see
    /// them: none are to be compared, hashed, collected or limited in rate, and the sink supports pipes.
    var takesPipes: Bool {
        cursor >= start && digest == nil && stage.isEmpty && !flow.isLimited
            && (sink as? any PipeSink)?.takesPipes ?? false
    }

    /// The maximum number of bytes to take from the transport now: the rest of the request's range. Under a rate limit
    /// at most 16 KiB, the usual buffer of a transport.
    var wanted: Int64 { min(max(0, flow.end - cursor), flow.isLimited ? Int64(WriteStage.piece) : .max) }

    /// Writes the first `count` bytes in `pipe` (a file descriptor) to the part file, up to the end of the request's
    /// byte range.
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
