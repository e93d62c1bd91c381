internal import TowlineCore
import Synchronization

/// The way of a byte: takes one attempt's answer from the transport and writes it at its place.
///
/// Bytes that come fast and need not be seen pass by it, in a pipe (`AttemptWriter+Pipes`).
///
/// Judges the head on the engine thread (a pure function), compares the overlap with what is held, cuts at the
/// segment's end, writes, marks. Copies what comes in many pieces once, to write it in few calls, allocates nothing per
/// call and shares no lock: what other threads read are atomics.
///
/// `@unchecked Sendable`: everything that is not atomic, constant or behind its lock is used by callbacks alone, which
/// come from one thread at a time (contract of `Transport`).
final class AttemptWriter: AttemptReceiver, @unchecked Sendable {
    /// What happens rarely and concerns the runner.
    enum Report: Sendable {
        case answered(AttemptID, ResponseVerdict)
        case ended(AttemptID, AttemptResult)
        /// Wrote the first bytes of a further connection.
        case delivers(AttemptID)
        /// Answered and ended in one: the body is held in memory until `conclude`.
        case delivered(AttemptID, ResponseVerdict)
        /// Ended before its answer, which was told of, had its place: what it holds is written by `conclude`.
        case arrived(AttemptID)
    }

    /// A small file that comes more slowly is written as it comes. Of ten thousand that do not, each would have its answer taken
    /// to the runner and back; held until it is whole, it has a part file and its bytes in one go.
    private static let gatherTime = Duration.milliseconds(20)
    /// On a connection that is shared nothing else may be done: whoever waits there for its place makes all wait.
    private static let sharedGatherTime = Duration.seconds(1)

    /// So many bytes are written and marked as soon as a transport has handed over what it had read: with its next reading they
    /// are what a SIGKILL costs. Where bytes come fast each write is marked.
    static let markInterval: Int64 = 32 << 10

    let plan: AttemptPlan
    let limiters: [RateLimiter]
    private let report: @Sendable (Report) -> Void
    private let clock: @Sendable () -> Duration

    /// Next offset to write; everything from the lease's start to here is written. `nowhere` until writing begins: a
    /// paused answer may yet be given another place.
    private let position: Atomic<Int64>
    private static let nowhere: Int64 = -1
    let received = Atomic<Int64>(0)
    let isHeldBack = Atomic<Bool>(false)
    /// The attempt stops here; other threads lower it when a part of the segment is given away, perhaps while its head
    /// comes: each takes the minimum in one step, so that neither undoes the other.
    let limit: Atomic<Int64>
    let hold: HoldPoint

    /// Where a paused answer's bytes go.
    private struct Attachment: Sendable {
        let sink: any Sink
        let slot: (any JournalSlot)?
        let lease: ByteRange
    }

    /// Handed over, not set by `attach`: the attempt may end, on its own thread, while its answer gets its place.
    private let attachment = Mutex<Attachment?>(nil)

    private(set) var sink: (any Sink)?
    private var slot: (any JournalSlot)?
    /// First offset to write; what comes before it is compared.
    private(set) var start: Int64
    private var marked: Int64
    private var markedAt = Duration.zero
    /// Next offset of the body; behind `position` while the overlap is compared, before it while bytes wait to be written.
    private(set) var cursor: Int64
    /// What came and is written with what follows.
    private(set) var stage = WriteStage()
    private let stages: StagePool
    private(set) var isWanted = false
    /// So much more of what nobody wants is read; `nil`: it is wanted, or not read.
    private(set) var drainable: Int64?
    private var result: AttemptResult?
    private var hasDelivered = false
    private(set) var digest: (any ContentHasher)?
    /// Where the response's own body ends.
    private(set) var responseEnd = Int64.max
    /// Whether a small answer may be held in memory.
    let mayGather: Bool
    let buffers: BufferPool
    /// What the answer is, while nobody was told.
    var untold: ResponseVerdict?
    /// The answer is reported with its first byte, or with its end as an empty file: such a file needs a confirmation.
    private(set) var awaitsFirstByte = false
    /// The answer may be a web page instead of the file.
    var mayBePage = false
    /// The first bytes with which the answer's Content-Encoding is only a label.
    var signatures: [[UInt8]] = []
    /// The answer was told of, and not paused: what comes before it has a place must wait.
    private var isAwaited = false
    /// Whether the answer is a stream of HTTP/2. Asked, as the next one is, by whom something of it was reported to.
    private(set) var isStream = false
    /// What passed before its head came.
    private(set) var latency: Duration?
    /// What is promised, if the body is wanted.
    private(set) var promise: SharingPolicy.Answer?
    /// What came and has no place yet.
    var gathered: [UInt8] = []
    /// How a delivered answer ended.
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

    /// How far it is.
    var progress: AttemptProgress {
        let position = position.load(ordering: .acquiring)
        return AttemptProgress(
            position: position == Self.nowhere ? nil : position, received: received.load(ordering: .relaxed),
            isHeldBack: isHeldBack.load(ordering: .relaxed))
    }

    /// Stop at `end`; bytes already written beyond it are right and stay.
    func shrink(to end: Int64) {
        limit.min(end, ordering: .relaxed)
    }

    /// Gives a paused answer its sink. Before `Transport.proceed`.
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

    /// From here on the answer is like any other.
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
            // It was let through, and has no place yet: `Transport.proceed` follows.
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

    /// Makes room in memory. More than a head promised, or than is small, or than there is room for, is not held: such an answer is
    /// like any other from here on, or is to end, as is returned.
    private func makeRoom(for more: Int) -> BodyDisposition? {
        let count = gathered.count + more
        let isTooLong = count > min(responseEnd, SmallFilePolicy.mostHeld(of: plan))
        guard isTooLong || !buffers.grow(&gathered, to: count) else { return nil }
        guard plan.sharesConnection, !isTooLong || !hasLength else {
            tell()
            return nil
        }
        // Nobody waits for a place there.
        if isTooLong { promise = .long }
        untold = nil
        return stop(with: .needsOwnConnection)
    }

    /// Writes what came before there was a place for it.
    private func takeGathered() -> BodyDisposition {
        guard !gathered.isEmpty else { return .consumed }
        var bytes: [UInt8] = []
        swap(&bytes, &gathered)
        defer { buffers.give(&bytes) }
        return bytes.withUnsafeBytes { take($0) }
    }

    /// Takes over what `attach` left; `false` if there is nothing.
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

    /// At the cursor, now or with those that follow.
    private func write(_ bytes: UnsafeRawBufferPointer, to sink: any Sink) throws(TowlineError) {
        let waits = sink.waitsForReaders
        if !stage.hasRoom(for: bytes.count) { try flush() }
        let isAlone = stage.isEmpty && bytes.count < WriteStage.least
        if !waits, !isAlone, stage.hasRoom(for: bytes.count) {
            stage.append(bytes, from: stages)
            cursor += Int64(bytes.count)
            let endsReading = bytes.count < WriteStage.piece && cursor - marked >= Self.markInterval
            if endsReading || !stage.hasRoom(for: 1) { try flush() }
            return
        }
        if waits { isHeldBack.store(true, ordering: .relaxed) }
        try sink.write(bytes, at: cursor)
        if waits { isHeldBack.store(false, ordering: .relaxed) }
        try advance(by: bytes.count)
    }

    /// So many more bytes are in the sink, and none waits.
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

    /// Writes what was put together.
    private func flush() throws(TowlineError) {
        guard let sink, !stage.isEmpty else { return }
        let start = cursor - Int64(stage.count)
        do throws(TowlineError) {
            try stage.empty(into: stages) { bytes throws(TowlineError) in try sink.write(bytes, at: start) }
        } catch {
            // What is not there must not be marked.
            cursor = start
            throw error
        }
        // The cursor is there already.
        try advance(by: 0)
    }

    func bodyRests() -> Bool {
        // What was held until there was a place has one.
        if untold == nil, !gathered.isEmpty, isWanted || adopt() {
            guard case .consumed = takeGathered() else { return false }
        }
        do throws(TowlineError) {
            try flush()
            return true
        } catch {
            result = .sinkFailed(error)
            return false
        }
    }

    /// Marks what is written, every `markInterval` bytes and every quarter of a second.
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

    /// How an answer that was delivered, or has arrived, ended, once its bytes are where `attach` says; without a place they are dropped. Called
    /// once, by whom `delivered` was reported to: the transport is done with this attempt.
    func conclude() -> AttemptResult { conclude(deliveredEnd) }

    private func conclude(_ end: AttemptEnd) -> AttemptResult {
        if isWanted || adopt() { _ = takeGathered() }
        var result = self.result ?? AttemptResult(end)
        if !bodyRests(), let failure = self.result { result = failure }
        do throws(TowlineError) {
            try mark(always: true)
        } catch {
            result = .sinkFailed(error)
        }
        if case .complete = result, let digest, !digest.matches() { result = .digestDiffers(from: start) }
        return result
    }
}
