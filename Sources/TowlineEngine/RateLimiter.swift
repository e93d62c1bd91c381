internal import TowlineCore
import Synchronization

/// A token bucket that many attempts share. A lock is taken only where a limit is set.
package final class RateLimiter: Sendable {
    private let bucket: Mutex<TokenBucket>
    private let isLimited: Atomic<Bool>

    /// - Parameter rate: bytes per second; 0: no limit.
    package init(rate: Int64) {
        bucket = Mutex(TokenBucket(rate: rate, now: MonotonicClock.now))
        isLimited = Atomic(rate > 0)
    }

    /// Changes the rate while transfers run.
    package func setRate(_ rate: Int64) {
        bucket.withLock { $0.setRate(rate, now: MonotonicClock.now) }
        isLimited.store(rate > 0, ordering: .relaxed)
    }

    /// Takes `bytes`; otherwise says how long to wait before asking again.
    func take(_ bytes: Int) -> Duration? {
        guard isLimited.load(ordering: .relaxed) else { return nil }
        return bucket.withLock { $0.take(bytes, now: MonotonicClock.now) }
    }

    /// Gives back what was taken and could not be used.
    func giveBack(_ bytes: Int) {
        guard isLimited.load(ordering: .relaxed) else { return }
        bucket.withLock { $0.giveBack(bytes) }
    }
}
