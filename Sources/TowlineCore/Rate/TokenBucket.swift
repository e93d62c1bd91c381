/// A token bucket: `rate` bytes a second on average, `burst` at once. Time is given, never read.
///
/// Debt is allowed: bytes that came are taken whole, and the next ones wait until the debt is paid. So a buffer
/// larger than the burst cannot wait forever.
package struct TokenBucket: Sendable {
    /// Bytes per second; 0: no limit.
    package private(set) var rate: Int64
    private var tokens: Double
    private var last: Duration

    /// A full bucket.
    package init(rate: Int64, now: Duration) {
        self.rate = max(0, rate)
        tokens = Double(Self.burst(self.rate))
        last = now
    }

    /// A tenth of a second's worth, and at least one small buffer.
    private static func burst(_ rate: Int64) -> Int64 { max(rate / 10, 4096) }

    /// Changes the rate; what was saved up is kept up to the new burst.
    package mutating func setRate(_ rate: Int64, now: Duration) {
        refill(now)
        self.rate = max(0, rate)
        tokens = min(tokens, Double(Self.burst(self.rate)))
    }

    private mutating func refill(_ now: Duration) {
        let elapsed = max(0, (now - last).seconds)
        last = max(last, now)
        tokens = min(Double(Self.burst(rate)), tokens + elapsed * Double(rate))
    }

    /// Takes `bytes` if the bucket is not in debt.
    ///
    /// - Returns: `nil` if they are taken; otherwise how long to wait before asking again.
    package mutating func take(_ bytes: Int, now: Duration) -> Duration? {
        guard rate > 0 else { return nil }
        refill(now)
        guard tokens <= 0 else {
            tokens -= Double(bytes)
            return nil
        }
        // At least a millisecond: a shorter sleep costs more than it gives.
        return .seconds(max(0.001, -tokens / Double(rate)))
    }

    /// Gives back what was taken and not used.
    package mutating func giveBack(_ bytes: Int) {
        guard rate > 0 else { return }
        tokens = min(Double(Self.burst(rate)), tokens + Double(bytes))
    }
}

extension Duration {
    /// The duration as a number of seconds.
    package var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
