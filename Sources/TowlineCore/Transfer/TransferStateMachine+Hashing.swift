/// The order of requests for a file with a checksum: from the front, so that bytes are hashed while others arrive.
extension TransferStateMachine {
    /// The minimum duration in seconds of a request for bytes from the front: shorter requests cost more than they
    /// gain.
    static let frontSeconds = 0.1
    /// The minimum duration of such a request in round trips: a request costs about one round trip.
    static let frontRoundTrips = 50.0
    /// The minimum number of bytes of such a request.
    static let smallestFront: Int64 = 1 << 20

    /// The rate in bytes per second above which the bytes between two regular ticks take long to hash.
    private static let fast = 100e6

    /// `true` if arriving bytes are hashed and their rate is high or unknown. Ticks must then be frequent: bytes that
    /// rare ticks leave over are hashed at the end.
    package var isHashedFast: Bool {
        phase == .running && !checksums.isEmpty && liveCount > 0 && estimator.rate ?? .infinity > Self.fast
    }

    /// The algorithms of the known checksums, and the end of the written bytes from offset 0 that may be hashed now;
    /// `nil` if no bytes may be hashed.
    package var hashable: (algorithms: [Checksum.Algorithm], end: Int64)? {
        guard phase == .running, isConfirmed, hasStorage, !replacesPart, !checksums.isEmpty else { return nil }
        guard let first = ledger.written.ranges.first, first.lowerBound == 0 else { return nil }
        return (checksums.map(\.algorithm), first.upperBound)
    }

    /// The length of the range in one request, so that the bytes of a file with a checksum arrive from the front; `nil`
    /// if there is no limit.
    var front: Int64? {
        guard !checksums.isEmpty, wanted.isEmpty else { return nil }
        guard let rate = estimator.rate, liveCount > 0 else { return 4 * Self.smallestFront }
        let seconds = max(Self.frontSeconds, Self.frontRoundTrips * (roundTrip ?? 0))
        return max(Self.smallestFront, Int64(min(rate / Double(liveCount) * seconds, 1e15)))
    }

    /// Returns the first bytes of a gap, at most as many as one request asks for (`front`) if the gap is much longer.
    func atFront(_ gap: ByteRange) -> ByteRange {
        guard let front, gap.upperBound < .max, gap.count > 2 * front else { return gap }
        return ByteRange(gap.lowerBound, gap.lowerBound + front)
    }

    /// Returns a cut of the longest remainder: its first bytes (`front`) stay with its attempt, and the following ones
    /// go to another connection. The first request asks for the whole file, so it needs this cut. `nil` if no remainder
    /// is long enough.
    func frontCut(_ runners: [SplitPolicy.Runner]) -> SplitPolicy.Cut? {
        guard let front, let longest = runners.max(by: { $0.remaining.count < $1.remaining.count }),
            longest.remaining.count > 2 * front
        else { return nil }
        let start = longest.remaining.lowerBound + front
        return SplitPolicy.Cut(
            victim: longest.id, segment: atFront(ByteRange(start, longest.remaining.upperBound)))
    }
}
