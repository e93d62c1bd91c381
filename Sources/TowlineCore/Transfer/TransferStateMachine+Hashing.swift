/// Where a checksum is wanted, the bytes come from the front, so that they can be hashed while the rest arrives.
extension TransferStateMachine {
    /// How long a request lasts, at least, where bytes come from the front: shorter ones cost more than they give.
    static let frontSeconds = 0.1
    /// And how many round trips: a request costs about one.
    static let frontRoundTrips = 50.0
    /// The least that a request asks for.
    static let smallestFront: Int64 = 1 << 20

    /// From so many bytes a second on, those of a regular look take long to hash.
    private static let fast = 100e6

    /// Whether what comes is to be hashed, and comes fast, or may: what a rare look leaves over is hashed at the end.
    package var isHashedFast: Bool {
        phase == .running && !checksums.isEmpty && liveCount > 0 && estimator.rate ?? .infinity > Self.fast
    }

    /// What may be hashed now: so many bytes from the beginning are written and stay.
    package var hashable: (algorithms: [Checksum.Algorithm], end: Int64)? {
        guard phase == .running, isConfirmed, hasStorage, !replacesPart, !checksums.isEmpty else { return nil }
        guard let first = ledger.written.ranges.first, first.lowerBound == 0 else { return nil }
        return (checksums.map(\.algorithm), first.upperBound)
    }

    /// How much one request asks for; `nil`: as much as there is.
    var front: Int64? {
        guard !checksums.isEmpty, wanted.isEmpty else { return nil }
        guard let rate = estimator.rate, liveCount > 0 else { return 4 * Self.smallestFront }
        let seconds = max(Self.frontSeconds, Self.frontRoundTrips * (roundTrip ?? 0))
        return max(Self.smallestFront, Int64(min(rate / Double(liveCount) * seconds, 1e15)))
    }

    /// The beginning of a gap, as much of it as one request brings.
    func atFront(_ gap: ByteRange) -> ByteRange {
        guard let front, gap.upperBound < .max, gap.count > 2 * front else { return gap }
        return ByteRange(gap.lowerBound, gap.lowerBound + front)
    }

    /// The first request asked for everything: what others are to bring is cut off it, from the front.
    func frontCut(_ runners: [SplitPolicy.Runner]) -> SplitPolicy.Cut? {
        guard let front, let longest = runners.max(by: { $0.remaining.count < $1.remaining.count }),
            longest.remaining.count > 2 * front
        else { return nil }
        let start = longest.remaining.lowerBound + front
        return SplitPolicy.Cut(
            victim: longest.id, segment: atFront(ByteRange(start, longest.remaining.upperBound)))
    }
}
