package import FaultServer
internal import TowlineCore
internal import TowlineEngine

/// One response, on its way from the steps of a reply to the receiver of an attempt.
///
/// `@unchecked Sendable`: everything happens on the thread of its simulation.
final class SimulatedResponse: @unchecked Sendable {
    /// The end of the body.
    private enum Framing {
        case length(Int64)
        case chunks
        case close
    }

    /// As libcurl hands bytes over.
    private static let pieceLength = 16 << 10
    private static let piecesAtOnce = 4
    /// Bytes per second where the reply sets no limit.
    private static let usualRate: Int64 = 20_000_000

    private let simulation: Simulation
    private let receiver: any AttemptReceiver
    private let sent: @Sendable (_ status: Int?, _ bodyBytes: Int) -> Void
    private let over: @Sendable () -> Void
    private var steps: ArraySlice<Reply.Step>
    private var rate: Int64
    private var framing: Framing?
    /// Body bytes of the current step that the receiver does not have.
    private var bytes: ArraySlice<UInt8> = []
    private var startedAt = Duration.zero
    private var isPaused = false
    private var mayProceed = false
    private var isScheduled = false
    private var isOver = false

    init(
        _ reply: Reply, rate: Int64?, _ simulation: Simulation, _ receiver: any AttemptReceiver,
        sent: @escaping @Sendable (_ status: Int?, _ bodyBytes: Int) -> Void, over: @escaping @Sendable () -> Void
    ) {
        steps = reply.steps[...]
        self.rate = rate ?? Self.usualRate
        (self.simulation, self.receiver, self.sent, self.over) = (simulation, receiver, sent, over)
    }

    func begin(after delay: Duration, headTimeout: Duration) {
        startedAt = simulation.now
        schedule(after: delay)
        simulation.after(headTimeout) { [self] in
            if framing == nil { end(.failed(TransportFailure(.headTimedOut, "no response"))) }
        }
    }

    func cancel() {
        guard !isOver else { return }
        end(.cancelled)
    }

    /// The client is gone: nobody hears of it.
    func disconnect() {
        guard !isOver else { return }
        isOver = true
        over()
    }

    func proceed() {
        guard isPaused else { return mayProceed = true }
        isPaused = false
        schedule(after: .zero)
    }

    /// Waits for `proceed`, unless that was called before the receiver answered.
    private func pause() {
        guard !mayProceed else {
            mayProceed = false
            return schedule(after: .zero)
        }
        isPaused = true
    }

    /// Continues after that time. A second call before then has no effect.
    private func schedule(after delay: Duration) {
        guard !isScheduled else { return }
        isScheduled = true
        simulation.after(delay) { [self] in
            isScheduled = false
            goOn()
        }
    }

    /// Receivers are never called from within a call to the transport.
    private func end(_ ending: AttemptEnd) {
        guard !isOver else { return }
        isOver = true
        simulation.after(.zero) { [self] in
            // First: the receiver may send its next request at once.
            over()
            receiver.ended(ending)
        }
    }

    private func goOn() {
        guard !isOver, !isPaused else { return }
        if !bytes.isEmpty { return deliver() }
        guard let step = steps.popFirst() else { return endIfComplete() }
        switch step {
        case .head(let head): take(head)
        case .content(let content, let range), .chunks(let content, let range, _): take(content.bytes(in: range))
        case .bytes(let bytes): take(bytes)
        case .lastChunk: end(.complete(.delimited))
        case .rate(let limit):
            rate = limit ?? Self.usualRate
            goOn()
        case .pause(let duration): schedule(after: duration)
        case .stall: break
        case .close, .closeWithoutNotify, .closeOutput: closed(inOrder: true)
        case .reset: closed(inOrder: false)
        case .raw, .repeated, .repeatedHead, .wait, .resetStream, .goAway:
            preconditionFailure("this step cannot be simulated: \(step)")
        }
    }

    private func closed(inOrder: Bool) {
        switch framing {
        case nil: end(.failed(TransportFailure(.closedBeforeHead, "the connection was closed")))
        case .close? where inOrder: end(.complete(.closed))
        default: end(.failed(TransportFailure(.bodyCut, "the connection was closed")))
        }
    }

    private func take(_ head: ReplyHead) {
        guard head.status >= 200 else { return schedule(after: .zero) }
        let hasNoBody = head.status == 204 || head.status == 304
        if let length = head.field("Content-Length").flatMap(Int64.init), !hasNoBody {
            framing = .length(length)
        } else if head.field("Transfer-Encoding") != nil, !hasNoBody {
            framing = .chunks
        } else {
            framing = hasNoBody ? .length(0) : .close
        }
        sent(head.status, 0)
        var response = ResponseHead(status: head.status, fields: HTTPFields(head.fields))
        response.latency = simulation.now - startedAt
        switch receiver.receivedHead(response) {
        case .proceed: schedule(after: .zero)
        case .proceedBriefly(let time):
            simulation.after(time) { [self] in
                if !isOver, !isPaused { receiver.bodyDeadlinePassed() }
            }
            schedule(after: .zero)
        case .pause: pause()
        case .stop: return end(.stopped)
        }
        endIfComplete()
    }

    private func endIfComplete() {
        if case .length(0)? = framing, !isOver, !isPaused { end(.complete(.delimited)) }
    }

    private func take(_ body: [UInt8]) {
        bytes = body[...]
        // Bytes beyond the length belong to no response.
        if case .length(let rest)? = framing { bytes = bytes.prefix(Int(min(rest, Int64(body.count)))) }
        schedule(after: .zero)
    }

    /// Hands over what comes at once, and waits for as long as it takes at the rate.
    private func deliver() {
        var count = 0
        // A slow response brings few bytes at a time.
        let atOnce = max(1, min(Self.pieceLength * Self.piecesAtOnce, Int(rate / 50)))
        while count < atOnce, !bytes.isEmpty {
            let piece = bytes.prefix(min(Self.pieceLength, atOnce - count))
            switch piece.withUnsafeBytes(receiver.receivedBody) {
            case .consumed: break
            case .pause: return pause()
            case .pauseFor(let delay): return schedule(after: delay)
            case .stop: return end(.stopped)
            }
            count += piece.count
            bytes = bytes.dropFirst(piece.count)
            sent(nil, piece.count)
            if case .length(let rest)? = framing { framing = .length(rest - Int64(piece.count)) }
        }
        guard receiver.flush() else { return end(.stopped) }
        endIfComplete()
        schedule(after: .seconds(1) * count / Int(rate))
    }
}

extension Reply {
    /// Returns whether every HTTP client sees this as a head, body bytes and an end.
    package var isSimulable: Bool {
        var (isChunked, hasHead) = (false, false)
        return steps.allSatisfy { step in
            switch step {
            case .raw, .repeated, .repeatedHead, .wait, .resetStream, .goAway: return false
            case .head(let head):
                isChunked = head.field("Transfer-Encoding") != nil
                hasHead = true
                return head.isPlain
            case .content, .bytes: return hasHead && !isChunked
            case .chunks, .lastChunk: return isChunked
            case .rate, .pause, .stall, .close, .closeWithoutNotify, .closeOutput, .reset: return true
            }
        }
    }
}

extension ReplyHead {
    /// Returns whether its framing follows RFC 9112 §6.
    fileprivate var isPlain: Bool {
        func values(_ name: String) -> [String] {
            fields.filter { $0.0.lowercased() == name }.map(\.1)
        }
        let (lengths, codings) = (values("content-length"), values("transfer-encoding"))
        return line == nil && lengths.count + codings.count <= 1 && codings.allSatisfy { $0 == "chunked" }
            && lengths.allSatisfy { Int64($0).map { $0 >= 0 } ?? false && $0.allSatisfy(\.isNumber) }
            && fields.allSatisfy { name, value in
                !name.isEmpty && (name + value).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            }
    }
}
