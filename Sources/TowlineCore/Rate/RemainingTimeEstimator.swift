/// The time to the end, calm enough to read: it follows the rate slowly and never jumps for a single sample.
package struct RemainingTimeEstimator: Hashable, Sendable {
    private var shown: Double?
    private var last: Duration?

    /// Knows nothing.
    package init() {}

    /// - Parameters:
    ///   - missing: bytes still to come.
    ///   - rate: bytes per second, `nil` or 0 if nothing moves.
    /// - Returns: `nil` while there is no rate to go by, or the end is over a year away.
    package mutating func estimate(missing: Int64, rate: Double?, now: Duration) -> Duration? {
        guard let rate, rate > 1 else {
            shown = nil
            return nil
        }
        let fresh = Double(missing) / rate
        guard fresh < 31_536_000 else { return nil }
        if let shown, let last {
            let expected = max(0, shown - (now - last).seconds)
            // Off by more than a fifth: believe the new one; else lean towards it.
            let isFar = abs(fresh - expected) > max(2, expected * 0.2)
            self.shown = isFar ? fresh : expected + (fresh - expected) * 0.2
        } else {
            shown = fresh
        }
        last = now
        return shown.map { .seconds($0) }
    }
}
