import Synchronization
import TowlineCore

/// A generator of new identifiers (`DownloadID`) that sort in the order of their creation, even within one millisecond.
package final class IDSource: Sendable {
    private struct Last {
        var milliseconds: UInt64 = 0
        var high: UInt16 = 0
        var low: UInt64 = 0
    }

    private let last = Mutex(Last())

    /// Creates a generator.
    package init() {}

    /// Returns the identifier of a new download, greater than all earlier identifiers of this generator.
    package func next() -> DownloadID {
        let now = UInt64(clamping: SystemClock().milliseconds)
        return last.withLock { last in
            if now > last.milliseconds {
                // The highest bit stays 0, so that increments within a millisecond do not overflow.
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
