/// Which bytes of a download are missing, leased to an attempt, written, and durable.
///
/// Invariants, checked by `RangeLedgerTests` under random operations:
/// - durable ⊆ written;
/// - a lease's own written bytes are in `written`, and nothing after its position is claimed because of it;
/// - a byte is missing, leased or written, and only a race leases a byte twice.
package struct RangeLedger: Hashable, Sendable {
    /// The bytes one attempt is to bring.
    package struct Lease: OfAttempt, Hashable, Sendable {
        package let id: AttemptID
        /// From the next byte it is to write to the end; `Int64.max` while the end is not known.
        package fileprivate(set) var range: ByteRange
        /// Whether another attempt has the same bytes.
        package let isRace: Bool
    }

    /// The size of the whole, once known.
    package private(set) var completeLength: Int64?
    /// Bytes that are in the part file.
    package private(set) var written = ByteRangeSet()
    /// Bytes that survive a power loss.
    package private(set) var durable = ByteRangeSet()
    /// What is leased.
    package private(set) var leases: [Lease] = []

    /// Nothing known.
    package init() {}

    /// What an earlier transfer left.
    package init(completeLength: Int64?, written: ByteRangeSet) {
        self.completeLength = completeLength
        self.written = written
        if let completeLength { clip(to: completeLength) }
    }

    /// The whole, its end open while unknown.
    package var whole: ByteRange { ByteRange(0, completeLength ?? .max) }

    /// Whether every byte of a known length is written.
    package var isWhole: Bool {
        guard let completeLength else { return false }
        return written.contains(ByteRange(0, completeLength))
    }

    /// Learns the length; what lies beyond is no longer missing, leased or written.
    package mutating func learn(completeLength: Int64) {
        self.completeLength = completeLength
        clip(to: completeLength)
    }

    private mutating func clip(to length: Int64) {
        let beyond = ByteRange(length, .max)
        written.remove(beyond)
        durable.remove(beyond)
        for index in leases.indices where leases[index].range.upperBound > length {
            leases[index].range = ByteRange(min(leases[index].range.lowerBound, length), length)
        }
    }

    /// The bytes that are neither written nor leased, ascending.
    package var missing: [ByteRange] {
        var taken = written
        for lease in leases { taken.insert(lease.range) }
        return taken.gaps(in: whole)
    }

    /// What an attempt is to bring.
    package func lease(of id: AttemptID) -> ByteRange? { leases[id]?.range }

    /// Leases bytes to an attempt.
    package mutating func lease(_ range: ByteRange, to id: AttemptID, isRace: Bool = false) {
        release(id)
        leases.append(Lease(id: id, range: range, isRace: isRace))
    }

    /// Records that an attempt wrote everything up to `position`.
    package mutating func advance(_ id: AttemptID, to position: Int64) {
        guard let lease = leases[id], position > lease.range.lowerBound else { return }
        // An attempt may run past an end that was cut meanwhile: those bytes are right, and written.
        let reached = max(lease.range.lowerBound, min(position, completeLength ?? .max))
        written.insert(ByteRange(lease.range.lowerBound, reached))
        leases.change(id) { $0.range = ByteRange(reached, max(lease.range.upperBound, reached)) }
    }

    /// Cuts the end of a lease; the rest is missing again.
    package mutating func shrink(_ id: AttemptID, to end: Int64) {
        leases.change(id) { lease in
            guard end < lease.range.upperBound else { return }
            // What lies before it is no longer its own.
            lease.range = ByteRange(lease.range.lowerBound, max(lease.range.lowerBound, end))
        }
    }

    /// Moves the end of a lease towards `end`, as far as the bytes that follow it are missing.
    package mutating func extend(_ id: AttemptID, to end: Int64) {
        guard let range = leases[id]?.range, range.upperBound < min(end, whole.upperBound) else { return }
        let next = missing.first { $0.lowerBound == range.upperBound }
        guard let next else { return }
        leases.change(id) { $0.range = ByteRange(range.lowerBound, min(next.upperBound, end)) }
    }

    /// Ends a lease; what it did not write is missing again.
    package mutating func release(_ id: AttemptID) { leases.removeAll { $0.id == id } }

    /// Records what a checkpoint made durable.
    package mutating func markDurable(_ ranges: ByteRangeSet) {
        for range in ranges.ranges {
            for present in written.intersection(range).ranges { durable.insert(present) }
        }
    }

    /// Takes written bytes back: they were lost or proven wrong.
    package mutating func withdraw(_ range: ByteRange) {
        written.remove(range)
        durable.remove(range)
    }

    /// Written bytes that end right at `offset`, contiguous.
    package func writtenBefore(_ offset: Int64) -> Int64 {
        guard offset > 0, let run = written.range(holding: offset - 1) else { return 0 }
        return offset - run.lowerBound
    }
}
