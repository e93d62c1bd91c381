/// When the rest of a body is worth moving from its connection to its file within the kernel (splice(2)): nothing is copied
/// to this process and back, but the connection ends with the response, since whoever speaks HTTP on it does not see its end.
///
/// Where bytes come fast and their way is short, a new connection costs less than copying does.
package struct SplicePolicy: Hashable, Sendable {
    /// The rate is taken over so many bytes: more than a server sends at once that holds back in between.
    package static let window: Int64 = 4 << 20
    /// So long may a window take: from 64 MiB a second on copying shows.
    static let longestWindow = Duration.milliseconds(62)
    /// A request may have taken so long to its answer: a new connection and the next request take twice as long.
    static let longestLatency = Duration.milliseconds(10)
    /// Less is not worth the beginning and another connection.
    package static let least: Int64 = 8 << 20
    /// So much is moved at once, then it is marked: what was taken from the connection and is not in the file is lost with the
    /// process, and with 32 KiB that may not be marked that is 256 KiB.
    package static let most: Int64 = 224 << 10

    /// At how many bytes of the body to ask next.
    package private(set) var next = SplicePolicy.window
    private var since: Duration

    /// - Parameters:
    ///   - now: when the head came, by a clock of the caller's.
    ///   - latency: the time from the request to it.
    /// - Returns: `nil` on a long way, where it never does.
    package init?(now: Duration, latency: Duration) {
        guard latency <= Self.longestLatency else { return nil }
        since = now
    }

    /// Whether it pays off from here on.
    ///
    /// - Parameters:
    ///   - received: so many bytes of the body came.
    ///   - rest: so many are to come.
    package mutating func paysOff(received: Int64, rest: Int64, now: Duration) -> Bool {
        guard received >= next else { return false }
        let end = (received / Self.window + 1) * Self.window
        let isFast = now - since <= Self.longestWindow * Int((end - next) / Self.window)
        (since, next) = (now, end)
        return isFast && rest >= Self.least
    }
}
