internal import TowlineCore
import Synchronization

/// The receiver of the response to one attempt: takes it from the transport and writes its bytes at their file offsets.
///
/// On a network thread, it decides from the head how to handle the response (a pure function), holds a small body in
/// memory until the body is complete, and passes other bodies to a `SegmentWriter`, which writes them. No call of
/// `receivedBody` that writes allocates memory, and no lock is shared: other threads use atomics only (`FlowControl`).
///
/// `@unchecked Sendable`: state that is not atomic, constant or behind a lock is used only by callbacks, which come
/// from one thread at a time (contract of `Transport`), and by the `TransferRun` after a report.
final class AttemptWriter: AttemptReceiver, @unchecked Sendable {
    /// An event of the attempt, reported to the `TransferRun` or `SmallFileRun` that started it.
    enum Report: Sendable {
        case answered(AttemptID, ResponseVerdict)
        case ended(AttemptID, AttemptResult)
        /// The first bytes of an additional request, which runs in parallel with others of its transfer, are written to
        /// disk.
        case firstBytesWritten(AttemptID)
        /// The complete response has arrived, and is reported only now: its body is in memory until `conclude` writes
        /// it.
        case answeredAndEnded(AttemptID, ResponseVerdict)
        /// The response has ended after its head was reported, and before `attach` set a part file for it. `conclude`
        /// writes its bytes, which are in memory.
        case bodyEnded(AttemptID)
    }

    /// The phase of the attempt, which decides how the writer handles the next call of the transport.
    enum Phase {
        /// The response head has not arrived. `joined`: the open part file, so that the body can be written as it
        /// arrives; `nil` if the part file is not known before the response.
        case waiting(joined: Attachment?)
        /// The response is not used, and the transport closes it. The payload is the result of the attempt; `nil` if
        /// the transport's reason for the end is the result.
        case stopped(AttemptResult?)
        /// The body is not needed. At most `left` more bytes are read and dropped, so that the connection can be
        /// reused.
        case draining(left: Int64)
        /// The response head has arrived, but is reported to the transfer only later, for the reason in the payload.
        indirect case unreported(ResponseVerdict, Delay)
        /// The response head is reported, and the body waits for the part file that `attach` sets. `isPaused`: the
        /// transport delivers no bytes; otherwise it is paused when more bytes arrive.
        case reported(isPaused: Bool)
        /// The body is being written to the part file.
        case writing(SegmentWriter)
        /// The response has ended, for the reason in the payload. Bytes in memory are kept until `conclude` writes
        /// them.
        case over(AttemptEnd)
    }

    /// The reason why a response is reported to the transfer only some time after its head has arrived.
    enum Delay {
        /// The body is small, and is collected in memory until it is complete.
        case small
        /// The first bytes of the body are needed to decide how to handle the response: it may be a web page, for
        /// example.
        case firstBytes(FirstBytes)
        /// The response is a redirect. At most `left` bytes of its body are read and dropped, so that the next request
        /// may use the same connection.
        case redirect(left: Int64)
    }

    /// The properties of the response to this attempt, known from its head: HTTP version, latency, end of the body and
    /// checksum.
    struct Response {
        /// `true` if the response came over HTTP/2.
        var isStream = false
        /// The time from sending the request to the response head; `nil` before the head, or if it was not measured.
        var latency: Duration?
        /// The file offset at which the body of the response ends; `.max` if the head does not contain its length.
        var end = Int64.max
        /// The size of the body according to the head, small or long, which decides whether later requests to the host
        /// may share a connection; `nil` if the body is not needed.
        var promise: SharingPolicy.Evidence?
        /// The object that computes the checksum of the body and compares it with that in the response head; `nil` if
        /// the head contains none.
        var digest: (any ContentHasher)?

        var hasLength: Bool { end < .max }
        /// Returns whether the response came over HTTP/2 and is not a small file. Such a response needs a connection of
        /// its own.
        var isLongStream: Bool { isStream && promise == .long }
    }

    /// The longest time to hold a small body in memory before its response is reported to the transfer. A file that is
    /// complete sooner is reported once, with its body, and is written in one step.
    private static let gatherTime = Duration.milliseconds(20)
    /// The longest time to hold a small body in memory if its connection is shared. It is longer than `gatherTime`,
    /// because a response that is paused would delay the other responses of the connection.
    private static let sharedGatherTime = Duration.seconds(1)

    /// The HTTP request of this attempt, and the byte range of the file that it is to deliver.
    let plan: AttemptPlan
    /// The number of received bytes and the limits of this attempt, which other threads read and set.
    let flow: FlowControl
    /// A function that passes an event of this attempt to the transfer that started it.
    let report: @Sendable (Report) -> Void
    private let clock: @Sendable () -> Duration
    private let stages: StagePool
    private let makeHasher: @Sendable (Checksum) -> any ContentHasher
    /// `true` if this attempt may hold a small body in memory until the body is complete.
    let mayGather: Bool
    let buffers: BufferPool

    /// The part file that `attach` sets, until `openSegment` takes it on the network thread. Behind a lock, because
    /// `attach` is called on another thread.
    private let attachment = Mutex<Attachment?>(nil)

    var phase: Phase
    /// The properties of the response, known from its head, such as the end of the body. The transfer reads them after
    /// the first report.
    var response = Response()
    /// The received body bytes that are held in memory, because the part file for them is not known yet.
    var gathered: [UInt8] = []

    init(
        plan: AttemptPlan, sink: (any Sink)?, slot: (any JournalSlot)?, limiters: [RateLimiter],
        mayGather: Bool = false, buffers: BufferPool = BufferPool(), stages: StagePool = StagePool(),
        makeHasher: @escaping @Sendable (Checksum) -> any ContentHasher,
        clock: @escaping @Sendable () -> Duration = { MonotonicClock.now },
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.plan = plan
        flow = FlowControl(limit: plan.lease.upperBound, limiters: limiters, clock: clock)
        self.report = report
        self.clock = clock
        self.stages = stages
        self.makeHasher = makeHasher
        self.mayGather = mayGather && plan.mayBringWhole
        self.buffers = buffers
        phase = .waiting(joined: sink.map { Attachment(sink: $0, slot: slot, lease: plan.lease) })
    }

    deinit { release() }

    // MARK: From other threads

    /// The file offset that this attempt has written up to, and the number of bytes it has received. The
    /// `TransferStateMachine` reads them to detect slow and stalled requests.
    var progress: AttemptProgress { flow.progress }

    /// Makes the attempt stop at the file offset `end`, because another request delivers the bytes after it. Bytes that
    /// were already written beyond it stay.
    func shrink(to end: Int64) { flow.shrink(to: end) }

    /// Sets the part file, journal slot (entry for the written bytes) and byte range (`lease`) of a response that was
    /// sent without them. Call before `Transport.proceed` or `conclude`.
    func attach(sink: any Sink, slot: (any JournalSlot)?, lease: ByteRange) {
        attachment.withLock { $0 = Attachment(sink: sink, slot: slot, lease: lease) }
        flow.assign(lease)
    }

    // MARK: The head

    func receivedHead(_ head: ResponseHead) -> HeadDisposition {
        let verdict = ResponseEvaluator.verdict(on: head, to: plan.question)
        response.isStream = head.version == .http2
        response.latency = head.latency
        switch verdict {
        case .partial(let range, let facts):
            flow.shrink(to: range.upperBound)
            learn(facts, end: range.upperBound)
            return plan.joinsDirectly ? join(verdict) : accept(verdict, head)
        case .whole(let facts), .changed(_, let facts, isWhole: true), .rangeIgnored(let facts):
            learn(facts, end: facts.representation.completeLength ?? .max)
            return accept(verdict, head)
        default:
            return drop(verdict, head)
        }
    }

    private func learn(_ facts: ResponseFacts, end: Int64) {
        response.end = end
        response.digest = facts.contentDigests.first.map { makeHasher($0.checksum) }
    }

    /// Begins to write the body to the part file, which was already open when the request was sent.
    private func join(_ verdict: ResponseVerdict) -> HeadDisposition {
        if case .waiting(let joined?) = phase {
            phase = .writing(segment(joined, from: plan.seam.lowerBound))
        } else {
            phase = .stopped(.cancelled)
        }
        flow.written(upTo: plan.lease.lowerBound)
        report(.answered(plan.id, verdict))
        return .proceed
    }

    /// Handles a response whose body the transfer does not need: reads and drops a short body, so that the connection
    /// can be reused, and closes the connection of a long one.
    private func drop(_ verdict: ResponseVerdict, _ head: ResponseHead) -> HeadDisposition {
        guard let most = DrainPolicy.limit(head) else {
            phase = .stopped(nil)
            report(.answered(plan.id, verdict))
            return .stop
        }
        response.end = 0
        if mayGather, case .redirect = verdict {
            response.promise = SharingPolicy.Evidence(promisedLength: 0)
            phase = .unreported(verdict, .redirect(left: most))
            return proceedBriefly
        }
        phase = .draining(left: most)
        report(.answered(plan.id, verdict))
        return .proceed
    }

    /// Handles a response whose body the transfer needs: collects a small body in memory, waits for the first bytes if
    /// they decide how to handle it, or else pauses until `attach` sets the part file.
    private func accept(_ verdict: ResponseVerdict, _ head: ResponseHead) -> HeadDisposition {
        let firstBytes = FirstBytes(of: verdict, to: plan, length: response.hasLength ? response.end : nil)
        let length = firstBytes == nil ? gatherable(verdict, head) : nil
        response.promise = SharingPolicy.Evidence(promisedLength: length)
        if let length, buffers.take(Int(length), into: &gathered) {
            phase = .unreported(verdict, .small)
            return proceedBriefly
        }
        if plan.sharesConnection {
            phase = .stopped(.needsOwnConnection)
            return .stop
        }
        if let firstBytes {
            phase = .unreported(verdict, .firstBytes(firstBytes))
            return .proceed
        }
        phase = .reported(isPaused: true)
        report(.answered(plan.id, verdict))
        return .pause
    }

    private var proceedBriefly: HeadDisposition {
        .proceedBriefly(within: plan.sharesConnection ? Self.sharedGatherTime : Self.gatherTime)
    }

    // MARK: The body

    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        switch phase {
        case .writing(let segment):
            if let wait = takeAllowance(bytes.count, from: segment.cursor) { return .pauseFor(wait) }
            let disposition = takeGathered(into: segment)
            guard case .consumed = disposition else { return disposition }
            return segment.take(bytes)
        case .unreported(_, let delay):
            // The bytes may cause the report of the response.
            return gather(bytes, delay) ?? receivedBody(bytes)
        case .draining(let left):
            phase = .draining(left: left - Int64(bytes.count))
            return left < bytes.count ? .stop : .consumed
        case .reported(let isPaused):
            // After a pause, `Transport.proceed` follows only when there is a part file.
            guard openSegment() != nil else { return isPaused ? .stop : .pause }
            return receivedBody(bytes)
        case .waiting, .stopped, .over: return .stop
        }
    }

    /// Counts `count` received bytes against the rate limits; they follow the bytes held in memory, which begin at the
    /// file offset `offset`. Returns the time to wait before they may be taken; `nil` if they were counted.
    func takeAllowance(_ count: Int, from offset: Int64) -> Duration? {
        flow.takeAllowance(count, from: offset + Int64(gathered.count))
    }

    /// Writes the bytes in `gathered`, which arrived before the part file was known, with `segment`.
    private func takeGathered(into segment: SegmentWriter) -> BodyDisposition {
        guard !gathered.isEmpty else { return .consumed }
        var bytes: [UInt8] = []
        swap(&bytes, &gathered)
        defer { buffers.give(&bytes) }
        return bytes.withUnsafeBytes { segment.take($0) }
    }

    /// Returns the writer of the body to the part file, and creates it for the part file that `attach` set if needed;
    /// `nil` if no part file is known.
    private func openSegment() -> SegmentWriter? {
        switch phase {
        case .writing(let segment): return segment
        case .reported, .over: break
        case .waiting, .stopped, .draining, .unreported: return nil
        }
        guard let found = attachment.withLock({ $0.take() }) else { return nil }
        // A body that is not joined to written bytes directly begins with the first byte of the file. If its range
        // begins later, the bytes before it are compared.
        let segment = segment(found, from: 0)
        phase = .writing(segment)
        return segment
    }

    private func segment(_ attachment: Attachment, from cursor: Int64) -> SegmentWriter {
        SegmentWriter(
            attachment, from: cursor, responseEnd: response.end, digest: response.digest, flow: flow, stages: stages,
            clock: clock,
            onFirstBytes: plan.isFurther ? { [report, id = plan.id] in report(.firstBytesWritten(id)) } : nil)
    }

    func flush() -> Bool {
        guard let segment = openSegment() else { return true }
        guard case .consumed = takeGathered(into: segment) else { return false }
        return segment.flush()
    }

    var rateLimit: Int64? { flow.rateLimit }

    var takesPipes: Bool {
        if case .writing(let segment) = phase { gathered.isEmpty && segment.takesPipes } else { false }
    }

    var wanted: Int64 { if case .writing(let segment) = phase { segment.wanted } else { 0 } }

    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition {
        guard case .writing(let segment) = phase else { return .stop }
        if let wait = takeAllowance(count, from: segment.cursor) { return .pauseFor(wait) }
        return segment.take(from: pipe, count: count)
    }

    // MARK: The end

    func ended(_ end: AttemptEnd) {
        switch phase {
        case .unreported(let verdict, let delay):
            phase = .over(end)
            report(endReport(of: verdict, delay))
        case .reported(isPaused: false):
            phase = .over(end)
            report(.bodyEnded(plan.id))
        default:
            let result = result(after: end)
            release()
            report(.ended(plan.id, result))
        }
    }

    /// Writes the bytes in memory to the part file that `attach` set, or drops them without a part file, and returns
    /// the result of the attempt. Call once, after the report `answeredAndEnded` or `bodyEnded`: the response has
    /// ended.
    func conclude() -> AttemptResult { result(after: end) }

    /// The reason for the end of a response whose bytes are still in memory (reported as `answeredAndEnded` or
    /// `bodyEnded`).
    var end: AttemptEnd { if case .over(let end) = phase { end } else { .cancelled } }

    /// Writes all bytes that are still in memory, and returns the result of the attempt after its response ended with
    /// `end`.
    private func result(after end: AttemptEnd) -> AttemptResult {
        defer { phase = .over(end) }
        let segment = openSegment()
        if let segment {
            _ = takeGathered(into: segment)
            segment.finish()
        }
        var result = segment?.result ?? AttemptResult(end)
        if case .stopped(let reason?) = phase { result = reason }
        if case .complete = result, let digest = response.digest, !digest.matches() {
            result = .digestDiffers(from: segment?.start ?? plan.lease.lowerBound)
        }
        return result
    }
}
