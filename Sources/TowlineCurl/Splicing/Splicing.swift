import CCurl
import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The splicing of one response body: decides when the kernel moves the rest of the body to the receiver (splice(2)),
/// takes the rest over from libcurl, and moves it. libcurl resumes if the kernel cannot take over.
///
/// Confined to one engine thread, a thread that runs libcurl.
final class Splicing {
    /// The result of `move`: what the event loop must do.
    enum Step {
        /// No bytes of the body are available: call `move` again when the socket is ready.
        case wait
        /// Pause the attempt, for a duration, or until `Transport.proceed` if the duration is `nil`.
        case pause(Duration?)
        case end(AttemptEnd)
    }

    /// The way in which the body is delivered, by libcurl or by the kernel.
    private enum Mode {
        /// libcurl delivers the body. The policy measures the rate and decides when the kernel takes over.
        case measuring(SplicePolicy)
        /// libcurl is paused, so that the kernel can take over. libcurl believes that the last piece was not taken,
        /// although the receiver has it: a pause from outside the callback could let libcurl read once more.
        case offered(SplicePolicy)
        /// The kernel moves the rest of the body, and libcurl stays paused.
        case moving(SplicedBody)
        /// libcurl delivers the body to its end, because the kernel cannot take over.
        case off
    }

    private var state: Mode
    private let receiver: any AttemptReceiver
    private let handle: EasyHandle
    /// The number of bytes of the response's head, including interim heads, from the socket.
    private let headCount: Int
    /// The number of bytes of the body that libcurl delivered and the receiver took.
    private var bodyCount: Int64 = 0
    /// The number of bytes that libcurl delivers a second time when it resumes. The receiver already has them.
    private var known = 0

    /// The maximum number of consecutive reads of one body, so that the loop serves other attempts too.
    private static let mostReadings = 8

    /// Prepares for a body that follows a head of `headCount` bytes, which arrived at the time `now`.
    ///
    /// - Parameter latency: the time from the request to the head.
    /// - Returns: `nil` if splicing never pays off because of the latency.
    init?(
        for receiver: any AttemptReceiver, _ handle: EasyHandle, headCount: Int, now: MonotonicTime, latency: Duration
    ) {
        guard let policy = SplicePolicy(now: now.sinceStart, latency: latency) else { return nil }
        state = .measuring(policy)
        self.receiver = receiver
        self.handle = handle
        self.headCount = headCount
    }

    /// Returns whether libcurl is paused and waits for the decision of `begin` whether the kernel takes over.
    var isOffered: Bool { if case .offered = state { true } else { false } }

    /// The connection that the kernel moves the body from; `nil` while libcurl reads the body.
    var socket: Int32? { if case .moving(let body) = state { body.socket } else { nil } }

    // MARK: While libcurl delivers the body

    /// Returns the bytes of a piece from libcurl without those that the receiver already has: libcurl repeats bytes
    /// after a pause.
    func newBytes(of piece: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let count = min(known, piece.count)
        // If the receiver takes none of the other bytes, libcurl delivers the whole piece again.
        if count == piece.count { known -= count }
        return UnsafeRawBufferPointer(rebasing: piece[count...])
    }

    /// Records that the receiver took the last `count` bytes of a piece of `size` bytes.
    ///
    /// - Returns: `true` if libcurl must pause, as if the piece was not taken, so that the kernel can take over.
    func took(_ count: Int, ofPiece size: Int) -> Bool {
        bodyCount += Int64(count)
        known = 0
        // Only the last piece of a read is shorter: libcurl then holds no further bytes of it.
        guard count < Int(CURL_MAX_WRITE_SIZE), paysOff() else { return false }
        known = size
        return true
    }

    private func paysOff() -> Bool {
        guard case .measuring(var policy) = state, bodyCount >= policy.next else { return false }
        guard let length = handle.contentLength else {
            state = .off
            return false
        }
        let isFast = policy.paysOff(received: bodyCount, rest: length - bodyCount, now: MonotonicTime.now.sinceStart)
        let isOffered = isFast && receiver.takesPipes && receiver.wanted >= SplicePolicy.least
        state = isOffered ? .offered(policy) : .measuring(policy)
        return isOffered
    }

    // MARK: While the kernel moves the body

    /// Takes the rest of the body over from libcurl, which is paused.
    ///
    /// - Parameter callCount: the number of calls of libcurl so far (`ConnectionPool.callCount`).
    /// - Returns: `false` if libcurl must resume: some unread bytes are not in the socket, or the system cannot splice.
    func begin(on socket: Int32?, callCount: Int) -> Bool {
        guard case .offered(let policy) = state else { return false }
        state = .measuring(policy)
        guard let socket, let length = handle.contentLength,
            let body = SplicedBody(socket: socket, rest: length - bodyCount, passed: Int64(headCount) + bodyCount)
        else { return false }
        let wanted = receiver.wanted
        switch wanted > 0 ? body.receive(upTo: wanted, callCount: callCount) : .nothing {
        case .moved, .nothing, .closed: state = .moving(body)
        case .unproven: return false
        // Some systems do not support splice(2); then no byte was taken.
        case .disturbed, .failed:
            state = .off
            return false
        }
        return true
    }

    /// Passes the bytes in the pipe to the receiver, then moves more bytes from the socket through the pipe.
    ///
    /// - Parameter callCount: the number of calls of libcurl so far (`ConnectionPool.callCount`).
    func move(callCount: Int) -> Step {
        guard case .moving(let body) = state else { return .wait }
        if body.waiting > 0, let step = handOver(body) { return step }
        for _ in 0..<Self.mostReadings {
            let wanted = receiver.wanted
            // The segment became shorter: no more bytes of this response are needed.
            guard wanted > 0 else { return .end(.stopped) }
            switch body.receive(upTo: wanted, callCount: callCount) {
            case .moved: if let step = handOver(body) { return step }
            case .nothing, .unproven: return receiver.flush() ? .wait : .end(.stopped)
            case .disturbed:
                return Self.cut(
                    "Towline closed the connection:"
                        + " it and the operating system counted different numbers of received bytes")
            case .closed:
                return Self.cut("the connection to the server closed before the whole response was received")
            case .failed(let number):
                return Self.cut("cannot read from the connection to the server: \(String(cString: strerror(number)))")
            }
        }
        return .wait
    }

    /// Passes the bytes in the pipe to the receiver. Returns `nil` if the receiver took them and the body has not
    /// ended.
    private func handOver(_ body: SplicedBody) -> Step? {
        switch receiver.receivedBody(in: body.pipe, count: body.waiting) {
        case .consumed:
            body.waiting = 0
            return body.rest == 0 ? .end(.complete(.delimited)) : nil
        case .pause: return .pause(nil)
        case .pauseFor(let delay): return .pause(delay)
        case .stop: return .end(.stopped)
        }
    }

    private static func cut(_ reason: String) -> Step { .end(.failed(TransportFailure(.bodyCut, reason))) }
}
