internal import TowlineCore
import Synchronization

/// A rate limit in bytes per second that many requests share (a token bucket). Takes a lock only if a limit is set.
package final class RateLimiter: Sendable {
    private let bucket: Mutex<TokenBucket>
    /// `true` if a rate limit is set. Atomic, so that requests without a limit need no lock.
    private let hasRate: Atomic<Bool>
    private let clock: @Sendable () -> Duration

    /// Creates a limiter with a rate limit of `rate` bytes per second; 0: no limit.
    package convenience init(rate: Int64) { self.init(rate: rate) { MonotonicClock.now } }

    /// Creates a limiter with a rate limit of `rate` bytes per second (0: no limit). It reads the time from `clock`.
    package init(rate: Int64, clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
        bucket = Mutex(TokenBucket(rate: rate, now: clock()))
        hasRate = Atomic(rate > 0)
    }

    /// Changes the limit to `rate` bytes per second, also while transfers run; 0: no limit.
    package func setRate(_ rate: Int64) {
        bucket.withLock { bucket in
            bucket.setRate(rate, now: clock())
            // Inside the lock, so that of two concurrent changes the same one wins in both places.
            hasRate.store(rate > 0, ordering: .relaxed)
        }
    }

    /// The current rate limit in bytes per second; 0: no limit.
    package var rate: Int64 { bucket.withLock { $0.rate } }

    /// Returns whether a rate limit is set. Takes no lock, so that requests without a limit do not slow each other
    /// down.
    var isLimited: Bool { hasRate.load(ordering: .relaxed) }

    /// Counts `bytes` received bytes against the rate limit and returns `nil`. If the limit does not allow that many
    /// now, counts none and returns the time to wait before the next try.
    func take(_ bytes: Int) -> Duration? {
        guard isLimited else { return nil }
        return bucket.withLock { $0.take(bytes, now: clock()) }
    }

    /// Undoes the counting of bytes by `take`, because the caller could not process them.
    func giveBack(_ bytes: Int) {
        guard isLimited else { return }
        bucket.withLock { $0.giveBack(bytes) }
    }
}
