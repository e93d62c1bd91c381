import Glibc

/// A point in time of the clock that cannot be set (`CLOCK_MONOTONIC`).
struct MonotonicTime: Comparable {
    /// Nanoseconds since the clock's start, an unspecified point in the past.
    let nanoseconds: Int64

    static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The latest possible time, for deadlines that never expire and for points in time that are not set.
    static let never = MonotonicTime(nanoseconds: .max)

    /// The time since the clock's start, an unspecified point in the past, for code that measures with `Duration`.
    var sinceStart: Duration { .nanoseconds(nanoseconds) }

    static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Returns the time `duration` later; `never` if that is out of range, `self` if `duration` is negative.
    func advanced(by duration: Duration) -> MonotonicTime {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return self }
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (length, lengthOverflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        let (sum, sumOverflow) = nanoseconds.addingReportingOverflow(length)
        return overflow || lengthOverflow || sumOverflow ? .never : MonotonicTime(nanoseconds: sum)
    }

    /// Returns the milliseconds from `self` to `other`, rounded up so that a wait never ends early; 0 if `other` is
    /// past.
    func milliseconds(until other: MonotonicTime) -> Int64 {
        guard other > self else { return 0 }
        let span = other.nanoseconds - nanoseconds
        return span / 1_000_000 + (span % 1_000_000 == 0 ? 0 : 1)
    }
}

extension Duration {
    /// The duration in milliseconds, for libcurl: at least 1, because 0 means no limit, and at most 2³¹ − 1, because a
    /// C `long` may have 32 bits.
    var curlMilliseconds: Int {
        let start = MonotonicTime(nanoseconds: 0)
        return Int(min(max(start.milliseconds(until: start.advanced(by: self)), 1), Int64(Int32.max)))
    }
}
