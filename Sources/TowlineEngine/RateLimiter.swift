internal import TowlineCore
import Synchronization

/// A token bucket that many attempts share. Takes a lock only if a limit is set.
package final class RateLimiter: Sendable {
    private let bucket: Mutex<TokenBucket>
    private let hasRate: Atomic<Bool>
    private let clock: @Sendable () -> Duration

    /// Creates a limiter. `rate`: bytes per second; 0: no limit.
    package convenience init(rate: Int64) { self.init(rate: rate) { MonotonicClock.now } }

    /// Creates a limiter that uses `clock`.
    package init(rate: Int64, clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
        bucket = Mutex(TokenBucket(rate: rate, now: clock()))
        hasRate = Atomic(rate > 0)
    }

    /// Changes the rate while transfers run.
    package func setRate(_ rate: Int64) {
        bucket.withLock { bucket in
            bucket.setRate(rate, now: clock())
            // Inside the lock, so that of two concurrent changes the same one wins in both places.
            hasRate.store(rate > 0, ordering: .relaxed)
        }
    }

    /// The rate in bytes per second; 0: no limit.
    package var rate: Int64 { bucket.withLock { $0.rate } }

    /// Returns whether a limit is set. Takes no lock.
    var isLimited: Bool { hasRate.load(ordering: .relaxed) }

    /// Takes `bytes` and returns `nil`. If the limit does not allow that, takes nothing and returns the time to wait.
    func take(_ bytes: Int) -> Duration? {
        guard isLimited else { return nil }
        return bucket.withLock { $0.take(bytes, now: clock()) }
    }

    /// Puts back bytes that were taken and could not be used.
    func giveBack(_ bytes: Int) {
        guard isLimited else { return }
        bucket.withLock { $0.giveBack(bytes) }
    }
}
