/// When a connection that brings bytes is too slow to keep (DESIGN.md §5): far below what a fresh one may be expected
/// to bring.
///
/// The expectation comes from the first of these that is known: the connections beside it, what connections of this
/// download brought before, its own best. A download whose only connection crawls from its first byte has nothing to
/// compare with; there a floor and the stall timeout decide.
package struct ReplacementPolicy: Hashable, Sendable {
    /// A running attempt, as this policy sees it.
    package struct Runner: Hashable, Sendable {
        /// Which.
        package var id: AttemptID
        /// Its bytes per second now.
        package var rate: Double
        /// The most it ever had.
        package var best: Double
        /// What it has still to bring; `nil`: unknown.
        package var remaining: Int64?

        /// Makes one.
        package init(id: AttemptID, rate: Double, best: Double, remaining: Int64?) {
            self.id = id
            self.rate = rate
            self.best = best
            self.remaining = remaining
        }
    }

    /// Below this share of what is expected a connection is slow.
    static let share = 0.1
    /// Bytes per second below which any connection is.
    static let floor = 1024.0
    /// How long one may be slow beside others, at first.
    static let patience = Duration.seconds(4)

    /// No byte for so long means that a connection is dead; hardly any for so long is as good.
    package var stallTimeout: Duration
    /// Replacements in a row that were no better than what they replaced. Each doubles the patience: a network that is
    /// slow is not made faster by asking it the same again, and each replacement costs an overlap.
    package var futile: Int

    /// Makes a policy.
    package init(stallTimeout: Duration, futile: Int) {
        self.stallTimeout = stallTimeout
        self.futile = futile
    }

    /// How long a connection may go on as slow as it is.
    ///
    /// - Parameters:
    ///   - peers: the rates of the connections beside it.
    ///   - typicalRate: what connections of this download brought before.
    /// - Returns: `nil` if it is not slow, or done before a fresh one would bring its first byte.
    package func patience(for runner: Runner, peers: [Double], typicalRate: Double?) -> Duration? {
        if let remaining = runner.remaining, Double(remaining) < runner.rate * 2 { return nil }
        let factor = 1 << min(max(futile, 0), 12)
        if runner.rate < expectedRate(runner, peers, typicalRate) * Self.share { return Self.patience * factor }
        if runner.rate < Self.floor { return max(stallTimeout, Self.patience) * factor }
        return nil
    }

    /// Whether a replacement that brings `rate` was worth it.
    package func isBetter(_ rate: Double, than replaced: Double) -> Bool {
        rate >= 2 * replaced && rate >= Self.floor
    }

    private func expectedRate(_ runner: Runner, _ peers: [Double], _ typicalRate: Double?) -> Double {
        // The median of all: one that is uncommonly fast makes no others slow.
        if peers.count >= 2 { return (peers + [runner.rate]).sorted()[(peers.count + 1) / 2] }
        // Two or more share the way; what one had for itself before is no measure then.
        return peers.first ?? max(typicalRate ?? 0, runner.best)
    }
}
