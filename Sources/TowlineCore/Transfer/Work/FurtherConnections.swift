/// The results of a transfer's connections beside the first one, and of races (second requests for the same bytes).
/// They decide whether more connections are tried.
struct FurtherConnections: Sendable {
    /// The number of additional connections in a row that received no bytes. From the second on, each lowers the
    /// connection limit.
    var rejections = 0
    /// The number of times that the connection limit was lowered because additional connections received no bytes. Each
    /// one doubles the time until one more connection is tried (`recovery`).
    var lowerings = 0
    /// The time when an additional connection last failed without a byte.
    var lastRejectionAt: Duration?
    /// `true` if the connections that were added last did not increase the rate and are to be closed.
    var hasSurplus = false
    /// The number of connections last reported to the host's other downloads as worthwhile; `nil` before a report.
    var toldFinding: Int?
    /// The number of bytes that were requested a second time in races, which may be at most 1 % of the file.
    var wastedInRaces: Int64 = 0

    /// The time after which a connection limit that a refusal lowered is raised again, at first and at most.
    private static let firstRecovery = Duration.seconds(20), longestRecovery = Duration.seconds(3600)

    /// The time after which a connection limit that the next refusal lowers is raised again.
    var recovery: Duration { min(Self.firstRecovery * (1 << min(lowerings, 10)), Self.longestRecovery) }

    /// Counts an additional connection that received no bytes. Several requests that were sent together may all fail,
    /// which counts once.
    ///
    /// - Returns: `true` if the failure was counted.
    mutating func countRejection(of attempt: RunningAttempt, now: Duration) -> Bool {
        let isNew = lastRejectionAt.map { attempt.startedAt >= $0 } ?? true
        if isNew {
            lastRejectionAt = now
            rejections += 1
        }
        return isNew
    }
}
