import Synchronization
import TowlineCore

/// Makes names that sort in the order they were made, also those of one millisecond.
final class IDSource: Sendable {
    private struct Last {
        var milliseconds: UInt64 = 0
        var high: UInt16 = 0
        var low: UInt64 = 0
    }

    private let last = Mutex(Last())

    /// The next name.
    func next() -> DownloadID {
        let now = UInt64(clamping: WallClock.milliseconds)
        return last.withLock { last in
            if now > last.milliseconds {
                // The highest bit stays free, so that counting up within a millisecond does not overflow.
                last = Last(milliseconds: now, high: .random(in: 0...0x7FFF), low: .random(in: 0...UInt64.max))
            } else {
                let (sum, overflow) = last.low.addingReportingOverflow(.random(in: 1...0xFFFF_FFFF))
                last.low = sum
                if overflow { last.high &+= 1 }
            }
            return DownloadID(milliseconds: last.milliseconds, random: (last.high, last.low))
        }
    }
}
