/// The record of the slow connections that a transfer replaced, which decides how long it tolerates the next slow one
/// (docs/internals/slow-connections.md).
struct SlowConnections: Sendable {
    /// The last connection that was replaced because it was slow; `nil` once a faster one has followed.
    private var last: Replacement?
    /// The number of slow connections in a row whose replacements were no faster. Each one delays the next replacement
    /// more.
    private var futile = 0

    /// A connection that was replaced for being slow.
    private struct Replacement {
        /// The rate of the replaced connection, in bytes per second.
        var rate: Double
        /// The time when the connection was replaced.
        var time: Duration
    }

    /// Returns the connection that is far slower than a new one is expected to be, and records that it is replaced.
    /// Returns `nil` without such a connection.
    ///
    /// - Parameters:
    ///   - attempts: the attempts of the transfer. For each is recorded since when it is slow.
    ///   - typicalRate: the typical rate of a connection of this download, in bytes per second; `nil` if unknown.
    mutating func slowest(
        of attempts: inout [RunningAttempt], _ ledger: RangeLedger, typicalRate: Double?, stallTimeout: Duration,
        now: Duration
    ) -> RunningAttempt? {
        let isFutile = weigh(attempts, stallTimeout, now)
        let policy = ReplacementPolicy(stallTimeout: stallTimeout, futile: isFutile)
        guard let slowest = Self.overdue(&attempts, ledger, policy, typicalRate, now) else { return nil }
        futile += 1
        last = Replacement(rate: slowest.rates.average.rate ?? 0, time: now)
        return slowest
    }

    /// Records for each attempt since when it is slow.
    ///
    /// - Returns: the slowest of the attempts that were slow for longer than `policy` allows; `nil` without such an
    ///   attempt.
    private static func overdue(
        _ attempts: inout [RunningAttempt], _ ledger: RangeLedger, _ policy: ReplacementPolicy, _ typicalRate: Double?,
        _ now: Duration
    ) -> RunningAttempt? {
        let rated = attempts.filter {
            !$0.isDismissed && $0.isAccepted && !$0.plan.isRace && $0.rates.average.rate != nil
        }
        var slowest: RunningAttempt?
        for attempt in rated {
            let rate = attempt.rates.average.rate ?? 0
            let peers = rated.filter { $0.id != attempt.id }.compactMap(\.rates.average.rate)
            let range = ledger.lease(of: attempt.id)
            let runner = ReplacementPolicy.Runner(
                id: attempt.id, rate: rate, best: attempt.rates.best,
                remaining: range.flatMap { $0.upperBound < .max ? $0.count : nil })
            guard let patience = policy.patience(for: runner, peers: peers, typicalRate: typicalRate) else {
                attempts.change(attempt.id) { $0.rates.slowSince = nil }
                continue
            }
            let since = attempt.rates.slowSince ?? now
            attempts.change(attempt.id) { $0.rates.slowSince = since }
            // If no other connection receives bytes either, the stall timeout handles the silence.
            if peers.isEmpty, now - attempt.lastProgressAt > .seconds(2) { continue }
            if now - since >= patience, rate < slowest?.rates.average.rate ?? .infinity { slowest = attempt }
        }
        return slowest
    }

    /// Evaluates the last replacement of a slow connection. If the new one was faster, the count of futile ones is
    /// reset.
    ///
    /// - Returns: the number of replacements in a row that were not faster. Each one delays the next replacement more.
    private mutating func weigh(_ attempts: [RunningAttempt], _ stallTimeout: Duration, _ now: Duration) -> Int {
        guard let last else { return futile }
        let policy = ReplacementPolicy(stallTimeout: stallTimeout, futile: 0)
        // Bytes in socket buffers arrive at once and say nothing about the rate: three seconds suffice.
        let paid = attempts.contains { attempt in
            !attempt.isDismissed && attempt.isAccepted && attempt.startedAt >= last.time
                && now - attempt.startedAt > .seconds(3)
                && policy.isBetter(attempt.rates.average.rate ?? 0, than: last.rate)
        }
        if paid { (futile, self.last) = (0, nil) }
        return futile
    }
}
