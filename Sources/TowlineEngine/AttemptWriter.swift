internal import TowlineCore
import Synchronization

/// The receiver of one attempt: takes the response from the transport and writes its bytes at their offsets.
///
/// Fast bytes that need no inspection go to the file through a pipe instead (`AttemptWriter+Pipes`).
///
/// On a network thread, it judges the head (a pure function), compares bytes before the resume point with those on
/// disk, cuts at the end of the segment, writes, and records written bytes in the journal. Small buffers are collected
/// to write them in few calls. No call allocates memory, and no lock is shared: other threads read atomics only.
///
/// `@unchecked Sendable`: state that is not atomic, constant or behind a lock is used only by callbacks, which come
/// from one thread at a time (contract of `Transport`), and by the `TransferRun` after a report.
final class AttemptWriter: AttemptReceiver, @unchecked Sendable {
    /// An event of the attempt, reported to the `TransferRun` or `SmallFileRun` that started it.
    enum Report: Sendable {
        case answered(AttemptID, ResponseVerdict)
        case ended(AttemptID, AttemptResult)
        /// The first bytes of an attempt that runs besides others are written.
        case delivers(AttemptID)
        /// The response came and ended before it was reported: its body is in memory until `conclude`.
        case delivered(AttemptID, ResponseVerdict)
        /// The attempt ended after its head was reported, and before `attach`. `conclude` writes the bytes in memory.
        case arrived(AttemptID)
    }

    /// The longest time to hold a small body in memory before its head is reported. A file that is complete sooner gets
    /// its part file and bytes in one step: the transfer need not handle its head separately.
    private static let gatherTime = Duration.milliseconds(20)
    /// The same on a shared connection: longer, because a response that waits for its part file delays the others.
    private static let sharedGatherTime = Duration.seconds(1)

    /// The minimum number of written bytes to record in the journal at the end of a transport's read. A SIGKILL costs
    /// at most these and the next read. If bytes arrive fast, each write is recorded.
    static let markInterval: Int64 = 32 << 10

    let plan: AttemptPlan
    let limiters: [RateLimiter]
    private let report: @Sendable (Report) -> Void
    private let clock: @Sendable () -> Duration

    /// The next offset to write. The bytes from the start of the attempt's range to here are written. `nowhere` until
    /// writing begins: a paused response may still get another range.
    private let position: Atomic<Int64>
    private static let nowhere: Int64 = -1
    let received = Atomic<Int64>(0)
    let isHeldBack = Atomic<Bool>(false)
    /// The offset at which the attempt stops. Other threads lower it when they assign a part of the segment to another
    /// attempt, perhaps during the head: each store is an atomic minimum, so that neither undoes the other.
    let limit: Atomic<Int64>
    let hold: HoldPoint

    /// The part file, journal slot and range for a response that had no part file.
    private struct Attachment: Sendable {
        let sink: any Sink
        let slot: (any JournalSlot)?
        let lease: ByteRange
    }

    /// The argument of `attach`, until `adopt` takes it: the attempt may end on its own thread during `attach`.
    private let attachment = Mutex<Attachment?>(nil)

    private(set) var sink: (any Sink)?
    private var slot: (any JournalSlot)?
    /// The first offset to write. Bytes before it are compared with the part file.
    private(set) var start: Int64
    private var marked: Int64
    private var markedAt = Duration.zero
    /// The offset of the next byte: below `position` while bytes are compared, above it while bytes wait in `stage`.
    private(set) var cursor: Int64
    /// The received bytes that wait to be written together with the next ones.
    private(set) var stage = WriteStage()
    private let stages: StagePool
    private(set) var isWanted = false
    /// The number of bytes still to read of an unwanted body; `nil` if the body is wanted, or not read.
    private(set) var drainable: Int64?
    private var result: AttemptResult?
    private var hasDelivered = false
    private(set) var digest: (any ContentHasher)?
    /// The offset at which the body of the response ends; `.max` if unknown.
    private(set) var responseEnd = Int64.max
    /// `true` if a small body may be held in memory until it is complete.
    let mayGather: Bool
    let buffers: BufferPool
    /// The verdict (evaluation) of a response that is not reported yet; `nil` otherwise.
    var untold: ResponseVerdict?
    /// `true` to report the response only with its first byte, or as an empty file at its end, to be confirmed.
    private(set) var awaitsFirstByte = false
    /// `true` if the response may be a web page instead of the file.
    var mayBePage = false
    /// The first bytes that show that the Content-Encoding is only a label: the file is stored in that format.
    var signatures: [[UInt8]] = []
    /// `true` after the report of a response that was not paused: bytes that arrive before `attach` must wait.
    private var isAwaited = false
    /// `true` if the response came over HTTP/2. The transfer reads this, and `latency`, after a report.
    private(set) var isStream = false
    /// The time from the request to the head; `nil` before the head, or if it was not measured.
    private(set) var latency: Duration?
    /// The size that the head promises: a small body or a long one; `nil` if the body is not wanted.
    private(set) var promise: SharingPolicy.Answer?
    /// The received bytes in memory that have no part file yet.
    var gathered: [UInt8] = []
    /// The end of an attempt that was reported as `delivered` or `arrived`.
    private(set) var deliveredEnd = AttemptEnd.cancelled
    private let makeHasher: @Sendable (Checksum) -> any ContentHasher

    init(
        plan: AttemptPlan, sink: (any Sink)?, slot: (any JournalSlot)?, limiters: [RateLimiter],
        mayGather: Bool = false, buffers: BufferPool = BufferPool(), stages: StagePool = StagePool(),
        makeHasher: @escaping @Sendable (Checksum) -> any ContentHasher,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now },
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.makeHasher = makeHasher
        self.plan = plan
        self.sink = sink
        self.slot = slot
        self.limiters = limiters
        self.buffers = buffers
        self.stages = stages
        self.mayGather = mayGather && plan.mayBringWhole
        self.clock = clock
        hold = HoldPoint(clock: clock)
        self.report = report
        position = Atomic(Self.nowhere)
        limit = Atomic(plan.lease.upperBound)
        (start, marked) = (plan.lease.lowerBound, plan.lease.lowerBound)
        cursor = plan.lease.lowerBound - plan.overlap
    }

    // MARK: From other threads

    /// The written and received bytes of the attempt, for the state machine.
    var progress: AttemptProgress {
        let position = position.load(ordering: .acquiring)
        return AttemptProgress(
            position: position == Self.nowhere ? nil : position, received: received.load(ordering: .relaxed),
            isHeldBack: isHeldBack.load(ordering: .relaxed))
    }

    /// Makes the attempt stop at the offset `end`. Bytes already written beyond it are valid and stay.
    func shrink(to end: Int64) {
        limit.min(end, ordering: .relaxed)
    }

    /// Sets the part file and range of a response that has no part file. Call before `Transport.proceed` or `conclude`.
    func attach(sink: any Sink, slot: (any JournalSlot)?, lease: ByteRange) {
        attachment.withLock { $0 = Attachment(sink: sink, slot: slot, lease: lease) }
        position.store(lease.lowerBound, ordering: .releasing)
        limit.store(lease.upperBound, ordering: .relaxed)
    }

    // MARK: AttemptReceiver

    func receivedHead(_ head: ResponseHead) -> HeadDisposition {
        let verdict = ResponseEvaluator.verdict(on: head, to: plan.question)
        isStream = head.version == .http2
        latency = head.latency
        var disposition = HeadDisposition.pause
        switch verdict {
        case .partial(let range, let facts):
            limit.min(range.upperBound, ordering: .relaxed)
            responseEnd = range.upperBound
            digest = facts.contentDigests.first.map { makeHasher($0.checksum) }
            if plan.joinsDirectly {
                isWanted = true
                position.store(start, ordering: .releasing)
                disposition = .proceed
            }
        case .whole(let facts), .changed(_, .some(let facts)), .rangeIgnored(let facts):
            responseEnd = facts.representation.completeLength ?? .max
            digest = facts.contentDigests.first.map { makeHasher($0.checksum) }
        default:
            drainable = DrainPolicy.limit(head)
            disposition = drainable == nil ? .stop : .proceed
        }
        let mayBeEmpty = plan.question.replacesBytes && verdict.whole != nil && responseEnd == .max
        awaitsFirstByte = decidesByFirstBytes(verdict) || mayBeEmpty
        let length = isDrainedRedirect(verdict) ? 0 : gatherable(verdict, head)
        if length != nil || disposition == .pause { promise = SharingPolicy.Answer(promisedLength: length) }
        if let length, buffers.take(Int(length), into: &gathered) {
            untold = verdict
            return .proceedBriefly(within: plan.sharesConnection ? Self.sharedGatherTime : Self.gatherTime)
        }
        if plan.sharesConnection, disposition == .pause {
            result = .needsOwnConnection
            return .stop
        }
        if awaitsFirstByte {
            untold = verdict
            return .proceed
        }
        report(.answered(plan.id, verdict))
        return disposition
    }

    /// Reports a response whose report was delayed. The transfer then handles it like any other response.
    func tell() {
        guard let verdict = untold else { return }
        untold = nil
        isAwaited = true
        if !hasLength { promise = .long }
        report(.answered(plan.id, verdict))
    }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        if let rest = drainable {
            drainable = rest - Int64(bytes.count)
            return rest < bytes.count ? .stop : .consumed
        }
        if awaitsFirstByte, let disposition = look(at: bytes) { return disposition }
        if untold != nil, let refusal = makeRoom(for: bytes.count) { return refusal }
        guard untold != nil || isWanted || adopt() else {
            // The response was reported without a pause. `Transport.proceed` follows when it has a part file.
            return isAwaited ? .pause : .stop
        }
        if let wait = takeAllowance(bytes.count) {
            tell()
            return .pauseFor(wait)
        }
        if untold != nil {
            gathered.append(contentsOf: bytes)
            return .consumed
        }
        let disposition = takeGathered()
        guard case .consumed = disposition else { return disposition }
        return take(bytes)
    }

    /// Makes room for `more` bytes in memory and returns `nil`. Without room, or if the body is longer than promised or
    /// than a small file, reports the response or, on a shared connection, returns the instruction that ends it.
    private func makeRoom(for more: Int) -> BodyDisposition? {
        let count = gathered.count + more
        let isTooLong = count > min(responseEnd, SmallFilePolicy.mostHeld(of: plan))
        guard isTooLong || !buffers.grow(&gathered, to: count) else { return nil }
        guard plan.sharesConnection, !isTooLong || !hasLength else {
            tell()
            return nil
        }
        // On a shared connection, no response waits for a part file.
        if isTooLong { promise = .long }
        untold = nil
        return stop(with: .needsOwnConnection)
    }

    /// Writes the bytes in `gathered`, which arrived before the part file existed.
    private func takeGathered() -> BodyDisposition {
        guard !gathered.isEmpty else { return .consumed }
        var bytes: [UInt8] = []
        swap(&bytes, &gathered)
        defer { buffers.give(&bytes) }
        return bytes.withUnsafeBytes { take($0) }
    }

    /// Uses the part file and range of `attach`. Returns `false` if `attach` was not called.
    private func adopt() -> Bool {
        let found = attachment.withLock { attachment in
            defer { attachment = nil }
            return attachment
        }
        guard let found else { return false }
        sink = found.sink
        slot = found.slot
        start = found.lease.lowerBound
        cursor = start
        marked = start
        isWanted = true
        return true
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        guard let sink else { return stop(with: .cancelled) }
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
            let end = limit.load(ordering: .relaxed)
            let count = Int(min(Int64(rest.count), max(0, end - cursor)))
            if count > 0 { try write(UnsafeRawBufferPointer(rebasing: rest[..<count]), to: sink) }
            return isOver(at: end, leaving: rest.count - count) ? stop(with: .stopped) : .consumed
        } catch {
            return stop(with: .sinkFailed(error))
        }
    }

    /// Writes bytes at `cursor`, at once or later together with the next ones.
    private func write(_ bytes: UnsafeRawBufferPointer, to sink: any Sink) throws(TowlineError) {
        let waits = sink.waitsForReaders
        if !stage.hasRoom(for: bytes.count) { try writeStage() }
        let isAlone = stage.isEmpty && bytes.count < WriteStage.least
        if !waits, !isAlone, stage.hasRoom(for: bytes.count) {
            stage.append(bytes, from: stages)
            cursor += Int64(bytes.count)
            let endsReading = bytes.count < WriteStage.piece && cursor - marked >= Self.markInterval
            if endsReading || !stage.hasRoom(for: 1) { try writeStage() }
            return
        }
        if waits { isHeldBack.store(true, ordering: .relaxed) }
        try sink.write(bytes, at: cursor)
        if waits { isHeldBack.store(false, ordering: .relaxed) }
        try advance(by: bytes.count)
    }

    /// Moves `cursor` past `count` bytes that are written, and records them in the journal. `stage` must be empty.
    func advance(by count: Int) throws(TowlineError) {
        cursor += Int64(count)
        position.store(cursor, ordering: .releasing)
        try mark()
        if plan.isFurther, !hasDelivered, cursor > start {
            hasDelivered = true
            report(.delivers(plan.id))
        }
    }

    func stop(with result: AttemptResult) -> BodyDisposition {
        self.result = result
        return .stop
    }

    /// Writes the bytes in `stage`.
    private func writeStage() throws(TowlineError) {
        guard let sink, !stage.isEmpty else { return }
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

    func flush() -> Bool {
        // The held bytes are written as soon as there is a part file.
        if untold == nil, !gathered.isEmpty, isWanted || adopt() {
            guard case .consumed = takeGathered() else { return false }
        }
        do throws(TowlineError) {
            try writeStage()
            return true
        } catch {
            result = .sinkFailed(error)
            return false
        }
    }

    /// Records the written bytes in the journal: every `markInterval` bytes, every 250 ms, or now (`always`).
    private func mark(always: Bool = false) throws(TowlineError) {
        guard let slot, cursor > marked else { return }
        if !always, cursor - marked < Self.markInterval {
            let now = clock()
            guard now - markedAt >= .milliseconds(250) else { return }
            markedAt = now
        }
        try slot.mark(upTo: cursor)
        marked = cursor
    }

    func ended(_ end: AttemptEnd) {
        if let verdict = untold {
            untold = nil
            deliveredEnd = end
            return report(awaitsFirstByte ? decided(verdict) : .delivered(plan.id, verdict))
        }
        if isAwaited, !isWanted {
            deliveredEnd = end
            return report(.arrived(plan.id))
        }
        let result = conclude(end)
        release()
        report(.ended(plan.id, result))
    }

    deinit { release() }

    /// Writes the bytes in memory of a `delivered` or `arrived` response to the part file of `attach`, or drops them
    /// without one. Returns the attempt's result. Call once: the transport no longer uses this attempt.
    func conclude() -> AttemptResult { conclude(deliveredEnd) }

    private func conclude(_ end: AttemptEnd) -> AttemptResult {
        if isWanted || adopt() { _ = takeGathered() }
        var result = self.result ?? AttemptResult(end)
        if !flush(), let failure = self.result { result = failure }
        do throws(TowlineError) {
            try mark(always: true)
        } catch {
            result = .sinkFailed(error)
        }
        if case .complete = result, let digest, !digest.matches() { result = .digestDiffers(from: start) }
        return result
    }
}
