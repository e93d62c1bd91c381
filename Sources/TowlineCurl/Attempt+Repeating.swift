internal import TowlineCore
internal import TowlineEngine

/// Failures of a used connection, after which the request is repeated over a fresh one.
extension Attempt {
    /// Returns whether the connection has the blame for a failure: it was used before, and what came is no response.
    /// Bytes after an earlier body were taken for the response (RFC 9112 §6.3).
    func isFaultOfConnection(_ end: AttemptEnd) -> Bool {
        guard !isRepeated, !speaksHTTP2 else { return false }
        if hasStrayBytes { return true }
        guard phase == .requested, handle.reusesConnection, case .failed(let failure) = end else { return false }
        return [.malformed, .headTooLarge].contains(failure.kind) || failure == FailureTable.headCut
    }

    /// Returns whether a server that gave up waiting on a used connection said so (408) just before the request arrived
    /// (RFC 9110 §15.5.9).
    func isLateTimeout(_ head: ResponseHead) -> Bool {
        head.status == 408 && !isRepeated && !speaksHTTP2 && handle.reusesConnection
    }
}
