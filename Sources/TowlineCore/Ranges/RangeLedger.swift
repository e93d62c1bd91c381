/// A record of the bytes of a download: missing, leased (assigned to an attempt, that is, one request), written (in the
/// part file), and durable.
///
/// Invariants, checked by `RangeLedgerTests` under random operations:
/// - durable ⊆ written;
/// - the bytes that an attempt wrote are in `written`, and no byte after its position is there because of it;
/// - a byte is missing, leased or written. Only a race, a second attempt for the same bytes, leases a byte twice.
package struct RangeLedger: Hashable, Sendable {
    /// The bytes that are assigned to an attempt and that it has not yet written.
    package struct Lease: OfAttempt, Hashable, Sendable {
        package let id: AttemptID
        /// The range from the next byte to write to the end of the assigned bytes; the end is `Int64.max` while
        /// unknown.
        package fileprivate(set) var range: ByteRange
        /// `true` if the attempt races another one: it downloads bytes that were already assigned to that one.
        package let isRace: Bool
    }

    /// The complete length of the file in bytes; `nil` while unknown.
    package private(set) var completeLength: Int64?
    /// The bytes that are in the part file, durable or not.
    package private(set) var written = ByteRangeSet()
    /// The written bytes that were synced to disk, so that they survive a power loss.
    package private(set) var durable = ByteRangeSet()
    /// The bytes that are assigned to running attempts and not yet written, one lease for each attempt.
    package private(set) var leases: [Lease] = []

    /// Creates the record of a download without bytes and with an unknown length.
    package init() {}

    /// Creates the record of a resumed download, with the bytes that an earlier run wrote. No byte counts as durable
    /// yet.
    package init(completeLength: Int64?, written: ByteRangeSet) {
        self.completeLength = completeLength
        self.written = written
        if let completeLength { clip(to: completeLength) }
    }

    /// The range of the whole file; the end is `Int64.max` while the length is unknown.
    package var whole: ByteRange { ByteRange(0, completeLength ?? .max) }

    /// `true` if the complete length is known and every byte is written.
    package var isWhole: Bool {
        guard let completeLength else { return false }
        return written.contains(ByteRange(0, completeLength))
    }

    /// Sets the complete length of the file, learned from a response. Bytes beyond it are no longer missing, leased or
    /// written.
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

    /// The bytes that are neither written nor leased (assigned to a running request), in ascending order.
    package var missing: [ByteRange] {
        var taken = written
        for lease in leases { taken.insert(lease.range) }
        return taken.gaps(in: whole)
    }

    /// Returns the bytes assigned to an attempt that it has not yet written; `nil` if it has no assigned bytes.
    package func lease(of id: AttemptID) -> ByteRange? { leases[id]?.range }

    /// Assigns bytes to an attempt, instead of any bytes assigned to it before. `isRace`: the same bytes are also
    /// assigned to another attempt.
    package mutating func lease(_ range: ByteRange, to id: AttemptID, isRace: Bool = false) {
        release(id)
        leases.append(Lease(id: id, range: range, isRace: isRace))
    }

    /// Records that an attempt wrote all bytes assigned to it up to `position`. Does nothing if no bytes are assigned
    /// to it.
    package mutating func advance(_ id: AttemptID, to position: Int64) {
        guard let lease = leases[id], position > lease.range.lowerBound else { return }
        // An attempt may write past an end that was cut in the meantime: these bytes are valid and count as written.
        let reached = max(lease.range.lowerBound, min(position, completeLength ?? .max))
        written.insert(ByteRange(lease.range.lowerBound, reached))
        leases.change(id) { $0.range = ByteRange(reached, max(lease.range.upperBound, reached)) }
    }

    /// Cuts the end of the range assigned to an attempt. The bytes after `end` are missing again, so that another
    /// attempt can get them.
    package mutating func shrink(_ id: AttemptID, to end: Int64) {
        leases.change(id) { lease in
            guard end < lease.range.upperBound else { return }
            // The bytes before `lowerBound` are written and no longer belong to the lease.
            lease.range = ByteRange(lease.range.lowerBound, max(lease.range.lowerBound, end))
        }
    }

    /// Moves the end of the range assigned to an attempt towards `end`, as far as the following bytes are missing:
    /// neither written nor assigned.
    package mutating func extend(_ id: AttemptID, to end: Int64) {
        guard let range = leases[id]?.range, range.upperBound < min(end, whole.upperBound) else { return }
        let next = missing.first { $0.lowerBound == range.upperBound }
        guard let next else { return }
        leases.change(id) { $0.range = ByteRange(range.lowerBound, min(next.upperBound, end)) }
    }

    /// Ends the assignment of bytes to an attempt, if any. The bytes that were not written are missing again.
    package mutating func release(_ id: AttemptID) { leases.removeAll { $0.id == id } }

    /// Records that the bytes of `ranges` were synced to disk. Ignores bytes that are not written (any more).
    package mutating func markDurable(_ ranges: ByteRangeSet) {
        for range in ranges.ranges {
            for present in written.intersection(range).ranges { durable.insert(present) }
        }
    }

    /// Changes written bytes back to missing, so that they are downloaded again: they were lost or are known to be
    /// wrong.
    package mutating func withdraw(_ range: ByteRange) {
        written.remove(range)
        durable.remove(range)
    }

    /// Returns the number of contiguous written bytes that end at `offset`; 0 if the byte before `offset` is missing.
    package func writtenBefore(_ offset: Int64) -> Int64 {
        guard offset > 0, let run = written.range(holding: offset - 1) else { return 0 }
        return offset - run.lowerBound
    }
}
