/// Decides when to move the rest of a body from its connection to its file within the kernel
/// (docs/internals/splicing.md). The connection ends with the response, so splicing pays off if bytes arrive fast and
/// the round trip is short.
package struct SplicePolicy: Hashable, Sendable {
    /// The number of body bytes over which the download rate is measured: more than a server that pauses between bursts
    /// sends in one burst.
    package static let window: Int64 = 4 << 20
    /// The longest time in which a `window` of bytes must arrive to count as fast: from 64 MiB a second, copying has a
    /// noticeable cost.
    static let longestWindow = Duration.milliseconds(62)
    /// The longest time from the request to its response with which splicing may pay off: the new connection that
    /// splicing costs, and the next request, take twice that time.
    static let longestLatency = Duration.milliseconds(10)
    /// The minimum number of missing body bytes that is worth the setup of splicing and the new connection afterwards.
    package static let least: Int64 = 8 << 20
    /// The maximum number of bytes that are moved in one step and then recorded as written in the journal. A killed
    /// process loses the bytes that left the connection and are not in the file. With up to 32 KiB of unrecorded bytes,
    /// the loss is at most 256 KiB.
    package static let most: Int64 = 224 << 10

    /// The number of received body bytes at which the caller must call `paysOff` next.
    package private(set) var next = SplicePolicy.window
    private var since: Duration

    /// Creates the policy for a response body whose head has just arrived.
    ///
    /// - Parameters:
    ///   - now: the time at which the head arrived, on the caller's clock.
    ///   - latency: the time from the request to the head.
    /// - Returns: `nil` if splicing never pays off on this connection because of the latency.
    package init?(now: Duration, latency: Duration) {
        guard latency <= Self.longestLatency else { return nil }
        since = now
    }

    /// Returns whether the rest of the body should be moved within the kernel (spliced): the last bytes arrived fast
    /// and enough bytes are missing.
    ///
    /// - Parameters:
    ///   - received: the number of body bytes received.
    ///   - rest: the number of body bytes still missing.
    package mutating func paysOff(received: Int64, rest: Int64, now: Duration) -> Bool {
        guard received >= next else { return false }
        let end = (received / Self.window + 1) * Self.window
        let isFast = now - since <= Self.longestWindow * Int((end - next) / Self.window)
        (since, next) = (now, end)
        return isFast && rest >= Self.least
    }
}
