/// The order of requests: bytes that a reader wants come first. The bytes of a file with a checksum are requested from
/// the front, so that they are hashed while others arrive.
extension TransferWork {
    /// The distance in bytes within which a running connection reaches a byte sooner than a new connection would.
    static let nearby: Int64 = 512 << 10

    /// The first missing range of each window (`wanted`) that readers want, the most urgent first.
    var awaited: [ByteRange] {
        wanted.compactMap { range in
            range.intersection(ledger.whole).flatMap { ledger.written.gaps(in: $0).first }
        }
    }

    /// Returns the next bytes that are neither written nor assigned to an attempt: some that a reader wants, else the
    /// first ones; `nil` if no such bytes are left.
    func nextGap() -> ByteRange? {
        let missing = ledger.missing
        for range in wanted {
            for gap in missing {
                if let part = gap.intersection(range) { return ByteRange(part.lowerBound, gap.upperBound) }
            }
        }
        return missing.first
    }

    /// Returns the attempt that will soon write the byte at `offset`; `nil` if no attempt will.
    func server(of offset: Int64) -> AttemptID? {
        live.first { attempt in
            guard let range = ledger.lease(of: attempt.plan.id), range.contains(offset) else { return false }
            let soon = Int64((attempt.rates.average.rate ?? 0) / 2)
            return offset - range.lowerBound <= max(Self.nearby, soon)
        }?.plan.id
    }

    /// Returns the attempt to close, so that the byte at `offset` can be requested: one that would reach the byte much
    /// later, else the one with the most bytes left; `nil` if all attempts serve readers (`serving`).
    func leastUseful(for offset: Int64, but serving: Set<AttemptID>) -> AttemptID? {
        let free = live.filter { !serving.contains($0.plan.id) }
        if let holder = free.first(where: { ledger.lease(of: $0.plan.id)?.contains(offset) == true }) {
            return holder.plan.id
        }
        func left(_ attempt: RunningAttempt) -> Int64 { ledger.lease(of: attempt.plan.id)?.count ?? 0 }
        return free.max { (left($0), $1.plan.id.value) < (left($1), $0.plan.id.value) }?.plan.id
    }

    /// The minimum duration in seconds of a request for bytes from the front of a file with a checksum: shorter
    /// requests cost more than they gain.
    static let frontSeconds = 0.1

    /// The minimum duration, in round trips, of a request for bytes from the front: a request costs about one round
    /// trip.
    static let frontRoundTrips = 50.0

    /// The minimum number of bytes of a request for bytes from the front of a file.
    static let smallestFront: Int64 = 1 << 20

    /// Returns the number of bytes that one request asks for, so that the bytes of a file with a checksum arrive from
    /// the front and are hashed meanwhile; `nil` if there is no limit.
    func front(_ evidence: TransferEvidence) -> Int64? {
        guard !evidence.checksums.isEmpty, wanted.isEmpty else { return nil }
        guard let rate = pace.estimator.rate, liveCount > 0 else { return 4 * Self.smallestFront }
        let seconds = max(Self.frontSeconds, Self.frontRoundTrips * (pace.roundTrip ?? 0))
        return max(Self.smallestFront, Int64(min(rate / Double(liveCount) * seconds, 1e15)))
    }

    /// Returns the first bytes of a gap, at most as many as one request asks for (`front`) if the gap is much longer.
    func atFront(_ gap: ByteRange, _ evidence: TransferEvidence) -> ByteRange {
        guard let front = front(evidence), gap.upperBound < .max, gap.count > 2 * front else { return gap }
        return ByteRange(gap.lowerBound, gap.lowerBound + front)
    }

    /// Returns a cut of the longest remainder: its first bytes (`front`) stay with its attempt, and the following ones
    /// go to another connection. The first request asks for the whole file, so it needs this cut. `nil` if no remainder
    /// is long enough.
    func frontCut(
        _ runners: [SplitPolicy.Runner], _ evidence: TransferEvidence
    ) -> SplitPolicy.Cut? {
        guard let front = front(evidence),
            let longest = runners.max(by: { $0.remaining.count < $1.remaining.count }),
            longest.remaining.count > 2 * front
        else { return nil }
        let start = longest.remaining.lowerBound + front
        return SplitPolicy.Cut(
            victim: longest.id, segment: atFront(ByteRange(start, longest.remaining.upperBound), evidence))
    }
}
