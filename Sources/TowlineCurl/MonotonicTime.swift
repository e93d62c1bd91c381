import Glibc

/// A point on the clock that no one sets (`CLOCK_MONOTONIC`).
struct MonotonicTime: Comparable {
    /// Nanoseconds since some point in the past.
    let nanoseconds: Int64

    /// The present.
    static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The end of time: nothing is waited for.
    static let never = MonotonicTime(nanoseconds: .max)

    /// The time since that point in the past.
    var sinceStart: Duration { .nanoseconds(nanoseconds) }

    static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The point `duration` later; `never` if that is more than the clock can tell, itself if it is negative.
    func advanced(by duration: Duration) -> MonotonicTime {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return self }
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (length, lengthOverflow) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        let (sum, sumOverflow) = nanoseconds.addingReportingOverflow(length)
        return overflow || lengthOverflow || sumOverflow ? .never : MonotonicTime(nanoseconds: sum)
    }

    /// Milliseconds from `self` to `other`, rounded up so that a wait never ends early; 0 if `other` is past.
    func milliseconds(until other: MonotonicTime) -> Int64 {
        guard other > self else { return 0 }
        let span = other.nanoseconds - nanoseconds
        return span / 1_000_000 + (span % 1_000_000 == 0 ? 0 : 1)
    }
}

extension Duration {
    /// Whole milliseconds, at least 1 and at most what a C `long` of 32 bits holds: 0 means "no limit" to libcurl.
    var curlMilliseconds: Int {
        let start = MonotonicTime(nanoseconds: 0)
        return Int(min(max(start.milliseconds(until: start.advanced(by: self)), 1), Int64(Int32.max)))
    }
}
