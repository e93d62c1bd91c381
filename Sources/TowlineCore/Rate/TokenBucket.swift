/// A token bucket that limits a download rate to `rate` bytes a second on average, with bursts of up to a tenth of a
/// second's bytes. The caller passes the time of a monotonic clock.
///
/// The bucket allows debt: received bytes are taken as a whole, and the next ones wait until the debt is paid. A buffer
/// larger than the burst therefore cannot wait forever.
package struct TokenBucket: Sendable {
    /// The rate limit in bytes per second; 0: no limit.
    package private(set) var rate: Int64
    private var tokens: Double
    private var last: Duration

    /// Creates a full bucket for `rate` bytes per second; 0 or less: no limit.
    package init(rate: Int64, now: Duration) {
        self.rate = max(0, rate)
        tokens = Double(Self.burst(self.rate))
        last = now
    }

    /// Returns the number of bytes that may be received in one burst at a rate: the bytes of a tenth of a second, but
    /// at least one small buffer.
    private static func burst(_ rate: Int64) -> Int64 { max(rate / 10, 4096) }

    /// Changes the rate to `rate` bytes per second (0 or less: no limit). Saved tokens are kept up to the new burst.
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

    /// Takes the permission to receive `bytes` bytes, unless earlier bytes exceeded the rate.
    ///
    /// - Returns: `nil` if the bytes are taken; otherwise the time to wait before the next call.
    package mutating func take(_ bytes: Int, now: Duration) -> Duration? {
        guard rate > 0 else { return nil }
        refill(now)
        guard tokens <= 0 else {
            tokens -= Double(bytes)
            return nil
        }
        // The wait is at least a millisecond: a shorter sleep is not worth its cost.
        return .seconds(max(0.001, -tokens / Double(rate)))
    }

    /// Puts back the permission for bytes that `take` granted and that the caller did not receive.
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
