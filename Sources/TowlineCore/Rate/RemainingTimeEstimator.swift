/// An estimate of the remaining time of a download, steady enough to read: small deviations change it only slowly.
package struct RemainingTimeEstimator: Hashable, Sendable {
    private var shown: Double?
    private var last: Duration?

    /// Creates an estimator of the remaining time without measurements.
    package init() {}

    /// Updates the estimate of the remaining time of the download, and returns it for display.
    ///
    /// - Parameters:
    ///   - missing: the number of bytes of the file still missing.
    ///   - rate: the rate in bytes per second; `nil` or 0 if no bytes arrive.
    ///   - now: the current time on the caller's monotonic clock.
    /// - Returns: the remaining time; `nil` if the rate is unknown or at most 1, or the time is a year or more.
    package mutating func estimate(missing: Int64, rate: Double?, now: Duration) -> Duration? {
        guard let rate, rate > 1 else {
            shown = nil
            return nil
        }
        let fresh = Double(missing) / rate
        guard fresh < 31_536_000 else { return nil }
        if let shown, let last {
            let expected = max(0, shown - (now - last).seconds)
            // A deviation of more than a fifth replaces the estimate; a smaller one adjusts it.
            let isFar = abs(fresh - expected) > max(2, expected * 0.2)
            self.shown = isFar ? fresh : expected + (fresh - expected) * 0.2
        } else {
            shown = fresh
        }
        last = now
        return shown.map { .seconds($0) }
    }
}
