/// How a segment is shared between the connection that has it and one that has nothing to do (DESIGN.md §5).
package struct SplitPolicy: Hashable, Sendable {
    /// A running attempt, as splitting sees it.
    package struct Runner: Hashable, Sendable {
        /// Which.
        package var id: AttemptID
        /// What it has still to bring.
        package var remaining: ByteRange
        /// Its bytes per second; `nil` while unknown.
        package var rate: Double?
        /// Seconds since it last brought a byte.
        package var silence: Double

        /// Makes one.
        package init(id: AttemptID, remaining: ByteRange, rate: Double?, silence: Double = 0) {
            self.id = id
            self.remaining = remaining
            self.rate = rate
            self.silence = silence
        }

        /// Seconds to its end, at `fallback` bytes per second where its own rate is not known.
        func secondsLeft(fallback: Double) -> Double {
            Double(remaining.count) / max(rate ?? fallback, 1)
        }
    }

    /// A cut: `victim` stops at `segment.lowerBound`, the new attempt brings `segment`.
    package struct Cut: Hashable, Sendable {
        /// Whose end is cut.
        package let victim: AttemptID
        /// What the other gets.
        package let segment: ByteRange
    }

    /// Smallest segment worth a request of its own.
    package var minimumSegment: Int64 = 256 << 10
    /// The smallest where nobody asked for many connections: a quarter of a second's worth, 256 KiB at least and 1 MiB at
    /// most. Each cut wastes what is on its way on the connection that is cut.
    package static func thriftySegment(at rate: Double?) -> Int64 {
        guard let rate else { return 1 << 20 }
        return Int64(min(max(rate / 4, 262_144), 1_048_576))
    }

    /// Least time in seconds to the end of a response that is cut: half of it is saved, and bytes already sent are
    /// lost.
    static let worthwhile = 0.1

    /// From a request to its first byte, measured; a new segment must be worth more than that.
    package var roundTrip: Double

    /// Makes a policy for a measured round trip in seconds.
    package init(roundTrip: Double) { self.roundTrip = roundTrip }

    /// The window of a new connection: ten segments (RFC 6928).
    static let firstWindow = 14_600.0

    /// How many seconds of bytes at `rate` a new connection lacks: a round trip to connect, one to ask, and those in which
    /// its window doubles (slow start, RFC 5681 §3.1) until it bears the rate, during which it brings one window's worth.
    package func delay(until rate: Double) -> Double {
        var window = Self.firstWindow
        var doublings = 1.0
        while window * 2 < rate * roundTrip, doublings < 20 {
            window *= 2
            doublings += 1
        }
        return (1 + doublings) * roundTrip
    }

    /// The cut that ends the whole soonest: of the segment that would end last, so much that both end together.
    ///
    /// - Returns: `nil` if nothing is worth cutting.
    package func cut(_ runners: [Runner]) -> Cut? {
        let known = runners.compactMap(\.rate)
        let average = known.isEmpty ? 1 : known.reduce(0, +) / Double(known.count)
        let fallback = max(average, 1)
        guard let victim = runners.max(by: { $0.secondsLeft(fallback: fallback) < $1.secondsLeft(fallback: fallback) })
        else { return nil }
        let left = victim.secondsLeft(fallback: fallback)
        let isLong = known.isEmpty || left > max(2 * roundTrip, Self.worthwhile)
        guard isLong, !known.isEmpty || victim.remaining.count >= 2 * minimumSegment else { return nil }
        // The newcomer starts late, at the average speed: after t seconds both are done when
        // mine·t + theirs·(t − late) = remaining.
        let mine = max(victim.rate ?? fallback, 1)
        let theirs = fallback
        let late = known.isEmpty ? 0 : delay(until: theirs)
        let seconds = (Double(victim.remaining.count) + theirs * late) / (mine + theirs)
        let share = Int64(min(theirs * max(0, seconds - late), Double(victim.remaining.count)))
        guard known.isEmpty || share >= minimumSegment else { return nil }
        // A slow victim keeps as little as it brings meanwhile.
        let bounded = known.isEmpty ? min(max(share, minimumSegment), victim.remaining.count - minimumSegment) : share
        return Cut(
            victim: victim.id,
            segment: ByteRange(victim.remaining.upperBound - bounded, victim.remaining.upperBound))
    }

    /// A remainder so short that fetching it twice costs nothing that anybody would notice: 64 KiB, or what a connection at
    /// that rate brings in a fiftieth of a second.
    static func trifle(at rate: Double) -> Int64 { max(64 << 10, Int64(min(rate / 50, 1e15))) }

    /// The remainder to race at the end: the one that would end last, if a fresh connection at the average speed
    /// would be done in less than half its time. One that has been silent for a while is taken to stay so for as long
    /// again: a server that paces its connections may hold the last bytes back until its next turn.
    ///
    /// - Parameters:
    ///   - budget: bytes that may be fetched twice.
    ///   - typicalRate: what a fresh connection may be expected to bring.
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
