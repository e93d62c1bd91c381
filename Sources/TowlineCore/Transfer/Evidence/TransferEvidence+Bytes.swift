/// Functions with which a transfer adopts, trusts or discards the bytes of its file that are already on disk, and the
/// metadata of the file.
extension TransferEvidence {
    /// Returns the bytes of an earlier transfer that count as written. If the part file is a copy, the last byte of
    /// each contiguous range is requested again, so that the bytes before it are compared. A checksum of the whole file
    /// makes this unnecessary.
    func believed(_ held: HeldDownload) -> ByteRangeSet {
        guard checksums.isEmpty else { return held.written }
        if !held.isDoubtful, held.representation.validator == .weak {
            return held.written.weaklyBelieved(of: representation)
        }
        return held.isDoubtful ? HeldSamples.believed(held) : held.written
    }

    /// Forgets the known metadata of the file, such as its length and validators. The next response defines the file
    /// again.
    mutating func forgetRepresentation() {
        if let known = changes.withLength(representation), known.completeLength != nil { changes.givenUp = known }
        ranges.isWeakened = false
        changes.minimumLength = nil
        representation = nil
        (coding.name, coding.label) = (nil, .unknown)
        checksums = terms.options.checksum.map { [$0] } ?? []
        joinedWeakly = false
    }

    /// Adopts the bytes that an earlier transfer left on disk, unless they are not trusted.
    mutating func adopt(_ held: HeldDownload, _ ledger: inout RangeLedger) -> [TransferAction] {
        isConfirmed = false
        part.giveUp(ledger)
        part.noteReplaced()
        guard held.isBelievable(terms) else {
            // The bytes stay on disk until new bytes arrive.
            (part.exists, part.isReplaced) = (true, true)
            guard !held.written.isEmpty else { return [] }
            part.replaced = HeldVersion(held.representation, count: held.written.count)
            return [.notice(.distrusted(held.written.count))]
        }
        representation = held.representation
        ranges.isWeakened = false
        // The author of an untrusted journal may have forged the checksums together with the bytes.
        let known = held.isUntrusted || held.isRenumbered || terms.options.ignoresServerChecksums ? [] : held.checksums
        for checksum in known where !checksums.contains(where: { $0.algorithm == checksum.algorithm }) {
            checksums.append(checksum)
        }
        ledger = RangeLedger(completeLength: held.representation.completeLength, written: believed(held))
        ledger.markDurable(held.durable)
        part.adopt(held)
        ranges.lackedBefore = held.lacksRanges
        part.exists = true
        part.resumedBytes = ledger.written.count
        part.announcesResuming = part.resumedBytes > 0
        // If every byte is held, no request follows, so the notice is due now.
        return ledger.isWhole ? part.announceResuming() : []
    }

    /// Forgets the metadata of the file and the written bytes (recorded in `ledger`), because a restart discards them.
    mutating func discard(_ ledger: inout RangeLedger) {
        part.giveUp(ledger)
        if !ledger.written.isEmpty { part.replaced = atStake(ledger) }
        forgetRepresentation()
        isConfirmed = false
        part.isDoubtful = false
        (part.resumedBytes, part.announcesResuming) = (0, false)
        part.isReplaced = part.exists
        ledger = RangeLedger()
    }
}

extension ByteRangeSet {
    /// Returns those of these written bytes that may be kept if the server sends only a weak validator. The end of each
    /// contiguous range is compared, so shorter ranges are discarded, and the file's last byte is requested again.
    func weaklyBelieved(of representation: Representation?) -> ByteRangeSet {
        var believed = self
        for run in ranges where run.lowerBound > 0 {
            if run.count < SegmentPlanner.weakOverlap { believed.remove(run) }
            if run.upperBound == representation?.completeLength {
                believed.remove(ByteRange(run.upperBound - 1, run.upperBound))
            }
        }
        return believed
    }
}
