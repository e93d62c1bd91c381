internal import TowlineCore
internal import TowlineEngine

/// The body of a response whose head the receiver has: its delivery to the receiver, and its pauses.
///
/// Confined to one engine thread, a thread that runs libcurl.
final class ResponseBody {
    /// The delivery of the body to the receiver: it runs, or the receiver has paused it.
    private enum Delivery {
        /// The body arrives. The receiver expects it to end within the duration after the response head; `nil` if the
        /// receiver set no limit or was notified that the end is late.
        case running(within: Duration?)
        /// The receiver paused the body, for a duration, or until `Transport.proceed` if the duration is `nil`. `end`
        /// is the end of a response that became complete during the pause.
        case paused(Duration?, end: AttemptEnd?)
    }

    /// How the end of the body is marked: by a length or chunks, or by the end of the connection or stream.
    let framing: AttemptEnd.Framing
    /// `true` if the status of the response head is 2xx. If HTTP/2 cannot prove the end of the body of such a response,
    /// later requests use HTTP/1.1.
    let hasSucceeded: Bool
    /// The transfer of the body by the kernel through a pipe; `nil` if libcurl delivers the whole body.
    var splicing: Splicing?
    /// `true` if libcurl has delivered bytes of the body, which the receiver may have collected for `flush`.
    var hasBytes = false
    /// The time at which bytes last arrived, to detect a silent connection. Recorded only if attempts may share the
    /// connection.
    var heard = MonotonicTime.never
    private var delivery = Delivery.running(within: nil)

    init(of head: ResponseHead, framing: AttemptEnd.Framing) {
        self.framing = framing
        hasSucceeded = (200..<300).contains(head.status)
    }

    var isPaused: Bool { if case .paused = delivery { true } else { false } }

    /// Returns whether libcurl may deliver the next bytes: the body is not paused, and the kernel does not take it
    /// over.
    var acceptsBytes: Bool { !isPaused && splicing?.isOffered != true }

    /// Returns whether the receiver still expects the body to end within its short time limit
    /// (`HeadDisposition.proceedBriefly`).
    var isBrief: Bool { if case .running(within: _?) = delivery { true } else { false } }

    /// The time until the pause ends, or until the receiver must be notified that the end is late; `nil` if neither
    /// applies.
    var timeLimit: Duration? {
        switch delivery {
        case .running(let limit): limit
        case .paused(let delay, _): delay
        }
    }

    /// Sets the maximum time from the response head to the end of the body; `nil` for no limit.
    func expectEnd(within limit: Duration?) { delivery = .running(within: limit) }

    /// Pauses the delivery of the body for a delay, or until `endPause` if `delay` is `nil`. The body is no longer
    /// expected to end soon.
    func pause(for delay: Duration?) { delivery = .paused(delay, end: nil) }

    /// Keeps the end of a response that became complete during a pause, for `endPause`.
    func hold(_ end: AttemptEnd) {
        if case .paused(let delay, _) = delivery { delivery = .paused(delay, end: end) }
    }

    /// Ends a pause. Returns the end of the response if it became complete meanwhile; otherwise `nil`.
    func endPause() -> AttemptEnd? {
        guard case .paused(_, let end) = delivery else { return nil }
        delivery = .running(within: nil)
        return end
    }
}
