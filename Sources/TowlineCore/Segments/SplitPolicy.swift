/// Decides how a segment is divided between its connection and a connection without work (docs/internals/segments.md).
package struct SplitPolicy: Hashable, Sendable {
    /// A running attempt with the values that this policy needs to divide its segment between two connections.
    package struct Runner: Hashable, Sendable {
        /// The identifier of the running attempt.
        package var id: AttemptID
        /// The bytes that the attempt still has to receive.
        package var remaining: ByteRange
        /// The rate of the attempt in bytes per second; `nil` while unknown.
        package var rate: Double?
        /// The time in seconds since the attempt last received a byte; the attempt is expected to stay silent for as
        /// long again.
        package var silence: Double = 0

        /// Returns the seconds to the end of the attempt, at `fallback` bytes per second if its rate is unknown.
        func secondsLeft(fallback: Double) -> Double {
            Double(remaining.count) / max(rate ?? fallback, 1)
        }
    }

    /// The division of a running attempt's segment: the attempt `victim` stops at `segment.lowerBound`, and a new
    /// attempt on another connection downloads `segment`.
    package struct Cut: Hashable, Sendable {
        /// The identifier of the attempt whose segment is cut.
        package let victim: AttemptID
        /// The byte range that the new attempt on another connection downloads.
        package let segment: ByteRange
    }

    /// The length in bytes of the smallest segment that is worth a request: no cut makes a shorter one.
    package var minimumSegment: Int64 = 256 << 10
    /// Returns the `minimumSegment` to use if the user did not set the number of connections: the bytes of a quarter of
    /// a second at `rate` bytes per second, but at least 256 KiB and at most 1 MiB, the result if `rate` is `nil`. Each
    /// cut wastes the bytes in transit on the connection that is cut.
    package static func thriftySegment(at rate: Double?) -> Int64 {
        guard let rate else { return 1 << 20 }
        return Int64(min(max(rate / 4, 262_144), 1_048_576))
    }

    /// The minimum time in seconds to the end of a response that makes a cut (a division of its segment) worthwhile. A
    /// cut saves half of this time, but bytes in transit beyond the cut are lost.
    static let worthwhile = 0.1

    /// The measured time in seconds from a request to its first byte. A new segment must save more time than this.
    package var roundTrip: Double

    /// Creates a policy for a download with this measured round trip in seconds.
    package init(roundTrip: Double) { self.roundTrip = roundTrip }

    /// The number of bytes that a server sends on a new connection before it waits for an acknowledgement: ten segments
    /// (RFC 6928). Used to estimate how long a new connection stays slow.
    static let firstWindow = 14_600.0

    /// Returns how many seconds a new connection is behind one that always delivers `rate` bytes per second: a round
    /// trip to connect, one for the request, and those in which the window doubles (slow start, RFC 5681 §3.1) until it
    /// allows the rate. In the latter it delivers the bytes of one round trip at the full rate.
    package func delay(until rate: Double) -> Double {
        var window = Self.firstWindow
        var doublings = 1.0
        while window * 2 < rate * roundTrip, doublings < 20 {
            window *= 2
            doublings += 1
        }
        return (1 + doublings) * roundTrip
    }

    /// Returns the cut that ends the download soonest: it divides the segment that would end last so that both parts
    /// end at the same time. `nil` if no segment is worth cutting.
    package func cut(_ runners: [Runner]) -> Cut? {
        let known = runners.compactMap(\.rate)
        let average = known.isEmpty ? 1 : known.reduce(0, +) / Double(known.count)
        let fallback = max(average, 1)
        guard let victim = runners.max(by: { $0.secondsLeft(fallback: fallback) < $1.secondsLeft(fallback: fallback) })
        else { return nil }
        let left = victim.secondsLeft(fallback: fallback)
        let isLong = known.isEmpty || left > max(2 * roundTrip, Self.worthwhile)
        guard isLong, !known.isEmpty || victim.remaining.count >= 2 * minimumSegment else { return nil }
        // The new connection starts late, at the average rate: after t seconds both are done when
        // mine·t + theirs·(t − late) = remaining.
        let mine = max(victim.rate ?? fallback, 1)
        let theirs = fallback
        let late = known.isEmpty ? 0 : delay(until: theirs)
        let seconds = (Double(victim.remaining.count) + theirs * late) / (mine + theirs)
        let share = Int64(min(theirs * max(0, seconds - late), Double(victim.remaining.count)))
        guard known.isEmpty || share >= minimumSegment else { return nil }
        // A slow victim keeps only the bytes that it can deliver in that time.
        let bounded = known.isEmpty ? min(max(share, minimumSegment), victim.remaining.count - minimumSegment) : share
        return Cut(
            victim: victim.id,
            segment: ByteRange(victim.remaining.upperBound - bounded, victim.remaining.upperBound))
    }

    /// Returns the length in bytes of a remainder that can be downloaded twice (in a race) at no noticeable cost: the
    /// bytes that a connection at `rate` delivers in a fiftieth of a second, but at least 64 KiB.
    static func trifle(at rate: Double) -> Int64 { max(64 << 10, Int64(min(rate / 50, 1e15))) }

    /// Returns the attempt whose last bytes a second attempt should download too (a race): the one that would end last,
    /// if a new connection at the best known rate would need less than half its time. `nil` if no race pays off. An
    /// attempt that is silent is expected to stay silent for as long again: a server that paces its connections may
    /// hold back the last bytes for a while.
    ///
    /// - Parameters:
    ///   - budget: the number of bytes that may be downloaded twice.
    ///   - typicalRate: the expected rate of a new connection in bytes per second; `nil` if unknown.
    package func race(_ runners: [Runner], budget: Int64, typicalRate: Double?) -> Runner? {
        guard let best = (runners.compactMap(\.rate) + [typicalRate].compactMap { $0 }).max(), best >= 1 else {
            return nil
        }
        func left(_ runner: Runner) -> Double { max(runner.secondsLeft(fallback: best), runner.silence) }
        guard let slowest = runners.max(by: { left($0) < left($1) }), slowest.remaining.count > 0,
            slowest.remaining.count <= budget
        else { return nil }
        let fresh = delay(until: best) + Double(slowest.remaining.count) / best
        let least = slowest.remaining.count <= Self.trifle(at: best) ? 0.03 : 0.1
        return left(slowest) > max(2 * fresh, least) ? slowest : nil
    }
}
