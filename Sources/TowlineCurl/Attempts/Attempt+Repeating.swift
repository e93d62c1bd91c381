internal import TowlineCore
internal import TowlineEngine

/// The functions of an attempt that recognize failures of a reused connection, after which the event loop repeats the
/// request over a new one.
extension Attempt {
    /// Returns whether an attempt failed because its connection was reused: the bytes received are not a response, so
    /// they were probably left after an earlier body (RFC 9112 §6.3). The loop then repeats the request over a new
    /// connection.
    func isFaultOfConnection(_ end: AttemptEnd) -> Bool {
        guard mayRepeat else { return false }
        if connection.reuse == .foundStrayBytes { return true }
        guard phase == .requested, handle.reusesConnection, case .failed(let failure) = end else { return false }
        return [.malformed, .headTooLarge].contains(failure.kind) || failure == FailureTable.headCut
    }

    /// Returns whether a head is a 408 response that the server sent on a reused connection before it received the
    /// request: the server timed out while the connection was idle, just before the request arrived (RFC 9110 §15.5.9).
    /// The request is then repeated.
    func isLateTimeout(_ head: ResponseHead) -> Bool {
        head.status == 408 && mayRepeat && handle.reusesConnection
    }

    /// Returns whether the request may be repeated over a new connection: only once, and not if HTTP/2 was negotiated.
    private var mayRepeat: Bool { connection.reuse != .repeated && connection.http2 == .unused }
}
