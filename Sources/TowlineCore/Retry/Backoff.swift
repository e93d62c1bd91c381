/// Calculates the wait before a failed request is repeated. The wait doubles up to a limit and has jitter, so that
/// clients that failed at the same time do not retry at the same time (RFC 9110 does not cover this; AWS's "Exponential
/// Backoff and Jitter" does).
package struct Backoff: Hashable, Sendable {
    /// The wait after the first failed request, before jitter (a random variation).
    package var base: Duration
    /// The longest wait between requests, before jitter (a random variation), which may add a quarter.
    package var cap: Duration

    /// Creates a backoff with its first and its longest wait.
    package init(base: Duration, cap: Duration = .seconds(60)) {
        self.base = base
        self.cap = cap
    }

    /// Returns the jitter for `delay`: a number in 0 ..< 1 that differs between clients that failed at the same moment.
    /// The number is a Fibonacci hash of the nanoseconds of `now`, read from a clock that starts with the computer. The
    /// system's generator would need a kernel call each time.
    package static func jitter(at now: Duration) -> Double {
        let (seconds, attoseconds) = now.components
        let nanoseconds = UInt64(bitPattern: seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
        return Double((nanoseconds &* 0x9E37_79B9_7F4A_7C15) >> 11) * 0x1p-53
    }

    /// Returns the wait after `failures` failures in a row (1, 2, …). `jitter` in 0 ..< 1 spreads it over 75 % … 125 %.
    package func delay(failures: Int, jitter: Double) -> Duration {
        let doubled = base * (1 << min(max(failures, 1) - 1, 20))
        return min(doubled, cap) * (0.75 + 0.5 * min(max(jitter, 0), 1))
    }
}
