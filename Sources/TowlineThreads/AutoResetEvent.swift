import Glibc

/// An event that wakes a waiting thread. The wait resets the event.
///
/// `@unchecked Sendable`: the flag is read and written only under the lock.
package final class AutoResetEvent: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isSet = false

    /// Creates an event that is not set.
    package init() {
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(lock)
        condition.deallocate()
        lock.deallocate()
    }

    /// Sets the event: ends the current wait, or the next one if no thread waits.
    package func set() {
        pthread_mutex_lock(lock)
        isSet = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(lock)
    }

    /// Waits until the event is set, or until about this time has passed on the monotonic clock; `nil` means no limit.
    ///
    /// - Returns: whether the event was set since the last wait.
    @discardableResult
    package func wait(milliseconds: Int?) -> Bool {
        var end = timespec()
        if let milliseconds {
            clock_gettime(CLOCK_MONOTONIC, &end)
            let nanoseconds = end.tv_nsec + milliseconds * 1_000_000
            end.tv_sec += nanoseconds / 1_000_000_000
            end.tv_nsec = nanoseconds % 1_000_000_000
        }
        pthread_mutex_lock(lock)
        defer {
            isSet = false
            pthread_mutex_unlock(lock)
        }
        while !isSet {
            let code =
                milliseconds == nil
                ? pthread_cond_wait(condition, lock) : pthread_cond_timedwait(condition, lock, &end)
            guard code == 0 else { break }
        }
        return isSet
    }
}
