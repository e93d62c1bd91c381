/// The readable bytes of a running transfer, for readers of the incomplete file.
package struct TransferContent: Hashable, Sendable {
    /// The generation, a number that increases when bytes may have changed. All bytes with one number belong to one
    /// version of the file; the next number may mean different bytes at the same offsets.
    package var generation: Int
    /// The complete length of the file in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The bytes of the file that are written and can be read.
    package var written: ByteRangeSet
    /// The strong validator that the server sent for the file; `nil` if it sent no strong validator.
    package var strongValidator: String?
    /// `true` if a response arrived or bytes of an earlier transfer exist: the length is unlikely to change.
    package var isBegun: Bool
}

/// The written bytes of a transfer, from the first byte of the file, that may be hashed while the rest arrives, because
/// checksums of the file are known.
package struct HashableContent {
    /// The algorithms of the known checksums, with which the bytes are hashed.
    package let algorithms: [Checksum.Algorithm]
    /// The offset at which the written bytes that begin at offset 0 end: the bytes before it may be hashed.
    package let end: Int64

    /// Creates the description of the bytes of a transfer that may be hashed now; `nil` if no bytes may be hashed.
    package init?(of machine: TransferStateMachine) {
        let evidence = machine.evidence
        guard machine.phase == .running, evidence.isConfirmed, evidence.part.exists, !evidence.part.isReplaced,
            !evidence.checksums.isEmpty, let first = machine.work.ledger.written.ranges.first, first.lowerBound == 0
        else { return nil }
        (algorithms, end) = (evidence.checksums.map(\.algorithm), first.upperBound)
    }
}
