/// Decides when a connection of a download is too slow and is replaced by a new one
/// (docs/internals/slow-connections.md): its rate is far below the expected rate of a new connection. Without a rate
/// for comparison, a floor and the stall timeout (the limit without a byte) decide.
package struct ReplacementPolicy: Hashable, Sendable {
    /// A running attempt with its rates. This policy uses them to judge whether its connection is too slow.
    package struct Runner: Hashable, Sendable {
        /// The identifier of the running attempt.
        package var id: AttemptID
        /// The current rate of the attempt in bytes per second.
        package var rate: Double
        /// The highest rate of the attempt so far, in bytes per second: an estimate for a new connection if the
        /// download has no other connections.
        package var best: Double
        /// The number of bytes that the attempt still has to receive; `nil` if unknown.
        package var remaining: Int64?
    }

    /// The fraction of the expected rate below which a connection is slow.
    static let share = 0.1
    /// The rate in bytes per second below which any connection is slow.
    static let floor = 1024.0
    /// The time that a connection may be slow in comparison with others before it is replaced. Each futile replacement
    /// (`futile`) doubles this time.
    static let patience = Duration.seconds(4)

    /// The time without a byte after which a connection is dead. Very few bytes in this time count the same.
    package var stallTimeout: Duration
    /// The number of consecutive replacements that were no better than the replaced connections. Each doubles the
    /// patience: new connections do not make a slow network faster, and each replacement downloads some bytes again.
    package var futile: Int

    /// Returns how long a slow connection may continue at its current rate before it is replaced.
    ///
    /// - Parameters:
    ///   - peers: the rates of the other connections of the download, in bytes per second.
    ///   - typicalRate: the rate of earlier connections of this download, in bytes per second; `nil` if unknown.
    /// - Returns: `nil` if the connection is not slow, or is done before a new one would deliver its first byte.
    package func patience(for runner: Runner, peers: [Double], typicalRate: Double?) -> Duration? {
        if let remaining = runner.remaining, Double(remaining) < runner.rate * 2 { return nil }
        let factor = 1 << min(max(futile, 0), 12)
        if runner.rate < expectedRate(runner, peers, typicalRate) * Self.share { return Self.patience * factor }
        if runner.rate < Self.floor { return max(stallTimeout, Self.patience) * factor }
        return nil
    }

    /// Returns whether a replacement with the rate `rate` was worthwhile, for the count `futile`: at least twice as
    /// fast as the `replaced` connection, and not below `floor` (both in bytes per second).
    package func isBetter(_ rate: Double, than replaced: Double) -> Bool {
        rate >= 2 * replaced && rate >= Self.floor
    }

    private func expectedRate(_ runner: Runner, _ peers: [Double], _ typicalRate: Double?) -> Double {
        // The median of all: an unusually fast connection does not make the others slow.
        if peers.count >= 2 { return (peers + [runner.rate]).sorted()[(peers.count + 1) / 2] }
        // Several connections share the network, so the rate of one that was alone is no measure.
        return peers.first ?? max(typicalRate ?? 0, runner.best)
    }
}
