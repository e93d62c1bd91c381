internal import TowlineCore
import Synchronization

/// A token bucket that many attempts share. A lock is taken only where a limit is set.
package final class RateLimiter: Sendable {
    private let bucket: Mutex<TokenBucket>
    private let hasRate: Atomic<Bool>
    private let clock: @Sendable () -> Duration

    /// - Parameter rate: bytes per second; 0: no limit.
    package convenience init(rate: Int64) { self.init(rate: rate) { MonotonicClock.now } }

    /// A limiter whose time is that of `clock`.
    package init(rate: Int64, clock: @escaping @Sendable () -> Duration) {
        self.clock = clock
        bucket = Mutex(TokenBucket(rate: rate, now: clock()))
        hasRate = Atomic(rate > 0)
    }

    /// Changes the rate while transfers run.
    package func setRate(_ rate: Int64) {
        bucket.withLock { bucket in
            bucket.setRate(rate, now: clock())
            // Within the lock: of two changes at one time, the same one wins here and there.
            hasRate.store(rate > 0, ordering: .relaxed)
        }
    }

    /// Bytes per second; 0: no limit.
    package var rate: Int64 { bucket.withLock { $0.rate } }

    /// Whether there is a limit, without a lock.
    var isLimited: Bool { hasRate.load(ordering: .relaxed) }

    /// Takes `bytes`; otherwise says how long to wait before asking again.
    func take(_ bytes: Int) -> Duration? {
        guard isLimited else { return nil }
        return bucket.withLock { $0.take(bytes, now: clock()) }
    }

    /// Gives back what was taken and could not be used.
    func giveBack(_ bytes: Int) {
        guard isLimited else { return }
        bucket.withLock { $0.giveBack(bytes) }
    }
}
