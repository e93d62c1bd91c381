import Synchronization
import Testing

@testable import TowlineCore
@testable import TowlineEngine

/// One `AttemptWriter` with test doubles for its surroundings.
final class WriterBench: Sendable {
    static let complete: Int64 = 1 << 20

    let clock = ManualClock()
    let log = StorageLog()
    let sink: MemorySink
    let writer: AttemptWriter
    private let list: ReportList

    /// Creates a writer for `lease`. The file's bytes up to `held`, or else up to the lease, are held.
    init(
        _ lease: ByteRange, overlap: Int64 = 0, held: Int64? = nil, joinsDirectly: Bool = true, hasSlot: Bool = true,
        marksFailFrom: Int64 = .max, limiters: [RateLimiter] = [], mayGather: Bool = false,
        sharing: ConnectionSharing = .none, buffers: BufferPool = BufferPool(), replacesBytes: Bool = false
    ) throws {
        let source = try HTTPURL(parsing: "https://example.org/file.bin")
        let asked = ByteRange(lease.lowerBound - overlap, min(lease.upperBound, Self.complete))
        let known = Representation(completeLength: Self.complete, entityTag: EntityTag(fieldValue: "\"a\""))
        var plan = AttemptPlan(
            id: AttemptID(7), url: source, fields: HTTPFields(), sendsCredentials: false,
            question: ResponseQuestion(
                asked: joinsDirectly ? .range(asked) : .from(asked.lowerBound),
                rung: joinsDirectly ? .ifRange : .nothingToJoin, known: joinsDirectly ? known : nil, source: source),
            lease: lease, overlap: overlap, joinsDirectly: joinsDirectly, chain: [], isConfirmation: false,
            isRace: false, sharing: sharing)
        plan.question.replacesBytes = replacesBytes
        let list = ReportList()
        self.list = list
        sink = MemorySink(Self.content(ByteRange(0, held ?? lease.lowerBound)), log: log)
        writer = AttemptWriter(
            plan: plan, sink: joinsDirectly ? sink : nil,
            slot: joinsDirectly && hasSlot ? RecordingSlot(log: log, failsFrom: marksFailFrom) : nil,
            limiters: limiters, mayGather: mayGather, buffers: buffers, makeHasher: AddingHasher.init,
            clock: clock.read,
            report: list.append)
    }

    /// Returns the file's bytes of the range.
    static func content(_ range: ByteRange) -> [UInt8] {
        (range.lowerBound..<range.upperBound).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    }

    var reports: [AttemptWriter.Report] { list.all }

    /// The result of the attempt, in a word; `nil` if it has not ended.
    var ending: String? {
        for case .ended(let id, let result) in reports where id == AttemptID(7) {
            return Self.word(result)
        }
        return nil
    }

    /// Returns a word for a result.
    static func word(_ result: AttemptResult) -> String {
        switch result {
        case .complete: "complete"
        case .stopped: "stopped"
        case .cancelled: "cancelled"
        case .failed(let failure): "failed: \(failure.kind)"
        case .sinkFailed(let error): "sink: \(error.code)"
        case .overlapDiffers: "overlap"
        case .digestDiffers(let offset): "digest from \(offset)"
        case .needsOwnConnection: "alone"
        }
    }

    /// Receives the head of a 206 for the range.
    @discardableResult
    func head(_ range: ByteRange, _ more: [(String, String)] = []) -> HeadDisposition {
        let fields = [
            ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(Self.complete)"),
            ("Content-Length", "\(range.count)"), ("ETag", "\"a\""),
        ]
        return writer.receivedHead(ResponseHead(status: 206, fields: HTTPFields(fields + more)))
    }

    /// Receives the file's bytes of the range.
    @discardableResult
    func body(_ range: ByteRange, rests: Bool = true) -> String { body(Self.content(range), rests: rests) }

    /// Receives any bytes and returns the writer's answer in a word. If `rests`, no further bytes are available after
    /// them.
    @discardableResult
    func body(_ bytes: [UInt8], rests: Bool = true) -> String {
        switch bytes.withUnsafeBytes(writer.receivedBody) {
        case .consumed: rests && !writer.flush() ? "stop" : "consumed"
        case .pause: "pause"
        case .pauseFor: "pause for a while"
        case .stop: "stop"
        }
    }

    /// Returns whether the sink holds the file's bytes of the range.
    func holds(_ range: ByteRange) -> Bool {
        sink.bytes.dropFirst(Int(range.lowerBound)).prefix(Int(range.count)).elementsEqual(Self.content(range))
    }
}

/// The reports of a writer.
private final class ReportList: Sendable {
    private let list = Mutex<[AttemptWriter.Report]>([])

    var all: [AttemptWriter.Report] { list.withLock { $0 } }
    var append: @Sendable (AttemptWriter.Report) -> Void { { report in self.list.withLock { $0.append(report) } } }
}
