/// The rule for the size of a connection's receive buffer in the kernel under a rate limit.
///
/// A server sends until the buffer is full, and a kill, a pause or a cancel loses the unread bytes in the buffer. The
/// buffer also limits the bytes under way: if they are fewer than those of a round trip, the rate stays below the
/// limit. The number of unread bytes shows a buffer that is too large or too small.
package struct ReceiveWindow: Hashable, Sendable {
    /// The rate limit in bytes per second.
    private let rate: Int64
    /// The number of bytes that the rate limit lets arrive within a round trip.
    private let underWay: Int64
    /// The largest buffer in bytes that the kernel grants.
    private let largest: Int64

    /// The least number of unread bytes to allow: a buffer that is smaller costs throughput.
    private static let least: Int64 = 256 << 10

    /// Creates the rule for a connection.
    ///
    /// - Parameters:
    ///   - rate: the rate limit in bytes per second.
    ///   - roundTrip: the round-trip time of the connection; zero if unknown.
    ///   - largest: the largest buffer in bytes that the kernel grants.
    package init(rate: Int64, roundTrip: Duration, largest: Int64) {
        self.rate = max(0, rate)
        self.largest = largest
        underWay = Int64(min(max(0, Double(rate) * roundTrip.seconds), Double(Int32.max)))
    }

    /// The number of bytes that may be unread: those of 40 ms, but at least 256 KiB. The promise is 50 ms or 512 KiB;
    /// a server's bursts of 64 KiB exceed the size of the buffer.
    package var unreadLimit: Int64 { max(rate / 25, Self.least) }

    /// Returns the size in bytes that the buffer must have; `nil` to let the kernel choose, because the rate needs a
    /// larger buffer than the kernel grants on request.
    ///
    /// - Parameters:
    ///   - current: the size of the buffer, if this rule has chosen it; otherwise `nil`.
    ///   - unread: the number of unread bytes in the buffer.
    package func size(from current: Int64?, unread: Int64) -> Int64? {
        // The kernel counts its own records, which take up to half of the buffer. 10 ms cover late wake-ups.
        guard largest >= max(2 * underWay + Self.least / 2, rate / 100) else { return nil }
        let limit = unreadLimit
        guard let current else { return min(limit + underWay, largest) }
        let size =
            if unread > limit { current - (unread - limit) } else if unread < limit / 4 {
                current + max(limit / 4, underWay / 2)
            } else { current }
        return min(max(size, limit), limit + 2 * underWay, largest)
    }
}
