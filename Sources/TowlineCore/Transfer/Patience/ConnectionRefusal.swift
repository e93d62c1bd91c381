/// The reason why a further connection of a transfer, one beside the first, delivered no bytes. It decides whether the
/// transfer uses fewer connections.
struct ConnectionRefusal: Sendable {
    var reason: String
    /// `true` if the server allows no more connections, or responds differently over another one. Any other failure may
    /// concern only this request, and counts when it happens again.
    var isLimit = true
    /// `true` if the server wants fewer connections, which concerns all downloads from this host.
    var concernsHost = false
    /// `true` if the response to the further connection does not contain the requested range.
    var isAboutRanges = false
    /// `true` if the refused request may succeed without its `If-Range` field.
    var mayBeIfRange = false
    var retryAfter: Duration?

    init(_ reason: String, isLimit: Bool = true) { (self.reason, self.isLimit) = (reason, isLimit) }

    /// The reason, shown in messages to the user, for giving up a further connection that received no data before it
    /// stalled or others delivered its bytes.
    static let noData = "a further connection received no data"

    init(_ failure: TransportFailure, _ reason: String) {
        self.reason = reason
        isLimit = RetryPolicy.mayBeTooMany(failure.kind)
    }

    /// Creates a refusal from the verdict on the response to a further connection; `nil` if the response does not
    /// refuse it.
    init?(_ verdict: ResponseVerdict) {
        reason = "the server refused a further connection"
        switch verdict {
        case .partial, .redirect, .complete, .conditionRefused, .weakened, .changed, .notModified: return nil
        case .whole, .empty: isAboutRanges = true
        case .rangeIgnored: (isAboutRanges, mayBeIfRange) = (true, true)
        case .askWithoutRange(let why), .rangeRefused(let why): (reason, isAboutRanges) = (why, true)
        case .linkExpired(let status, _): (reason, concernsHost) = ("\(reason) (status \(status))", true)
        case .transient(let why, let wait, let overloaded, _):
            (reason, isLimit, concernsHost, retryAfter) = (why, overloaded, overloaded, wait)
        case .webPage(let why): reason = why
        case .permanent(let error): if let status = error.status { reason += " (status \(status))" }
        }
    }
}

extension TransportFailure {
    /// Returns whether this failure on a shared connection says nothing about the file, so that it does not count. The
    /// end or stall of a connection affects all its streams (RFC 9113 §6.8). If several connections begin together
    /// (`sharing`), the server may not want all of them.
    func saysNothing(of sharing: ConnectionSharing) -> Bool {
        switch kind {
        case .closedBeforeHead, .streamRefused, .headTimedOut, .bodyCut: true
        case .connectFailed, .connectTimedOut, .tlsFailed: sharing == .several
        default: false
        }
    }
}
