internal import TowlineCore
internal import TowlineEngine

/// Failures of a reused connection, after which the loop repeats the request over a fresh connection.
extension Attempt {
    /// Returns whether a failure is the fault of the connection: it was reused, and the bytes received are not a
    /// response. Bytes after an earlier body were taken for the response (RFC 9112 §6.3).
    func isFaultOfConnection(_ end: AttemptEnd) -> Bool {
        guard !isRepeated, !speaksHTTP2 else { return false }
        if hasStrayBytes { return true }
        guard phase == .requested, handle.reusesConnection, case .failed(let failure) = end else { return false }
        return [.malformed, .headTooLarge].contains(failure.kind) || failure == FailureTable.headCut
    }

    /// Returns whether a 408 response on a reused connection crossed the request: the server timed out while the
    /// connection was idle, just before the request arrived (RFC 9110 §15.5.9).
    func isLateTimeout(_ head: ResponseHead) -> Bool {
        head.status == 408 && !isRepeated && !speaksHTTP2 && handle.reusesConnection
    }
}
