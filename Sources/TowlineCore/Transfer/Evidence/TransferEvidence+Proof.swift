/// Functions that choose the proof with which new bytes are joined to the written ones (`ResponseQuestion.Rung`), such
/// as an equal ETag.
extension TransferEvidence {
    /// Returns the strongest proof that new bytes of the primary source fit the written ones; `nil`: no resuming.
    func joinRung(_ ledger: RangeLedger) -> ResponseQuestion.Rung? {
        guard let representation = representation, ranges.support != .broken,
            coding.name == nil
        else { return nil }
        if ranges.ignoresValidators { return .checksum }
        switch representation.validator {
        case .strong where !ranges.isWeakened:
            return ranges.dislikesIfRange ? .repeatedValidator : .ifRange
        case .strong where !checksums.isEmpty, .weak where !checksums.isEmpty: return .checksum
        case .strong, .weak:
            let seam = ledger.missing.first?.lowerBound ?? 0
            let holdsEnough = ledger.writtenBefore(seam) >= SegmentPlanner.weakOverlap
            if representation.completeLength != nil, holdsEnough { return .weakWithOverlap }
        case .none where !checksums.isEmpty: return .checksum
        case .none: break
        }
        return terms.options.allowsUnsafeResume && representation.completeLength != nil ? .unsafe : nil
    }

    /// Returns the proof with which a mirror's bytes are joined to those of the primary source; `nil` without proof, so
    /// that mirrors are not asked. Even a strong date proves nothing between two servers.
    func mirrorRung(_ ledger: RangeLedger) -> ResponseQuestion.Rung? {
        guard part.exists, !part.isReplaced, coding.name == nil,
            !changes.isConfirming, ledger.completeLength != nil, let representation = representation
        else { return nil }
        if !checksums.isEmpty, !terms.isStream { return .checksum }
        guard case .strong = representation.validator, representation.entityTag != nil else { return nil }
        return .ifRange
    }

    /// Returns the proof that new bytes of a source (URL) fit the written ones; `nil` if they cannot be joined.
    func rung(at source: SourceID, _ ledger: RangeLedger) -> ResponseQuestion.Rung? {
        source == .primary ? joinRung(ledger) : mirrorRung(ledger)
    }

    /// Returns the metadata that a response of a source has to match; `nil` before the first response.
    func known(at source: SourceID, _ ledger: RangeLedger) -> Representation? {
        let isProvenByChecksum = source == .primary ? ranges.ignoresValidators : mirrorRung(ledger) == .checksum
        guard isProvenByChecksum else { return representation }
        return Representation(completeLength: ledger.completeLength, mediaType: representation?.mediaType)
    }

    /// Returns whether two connections may write at the same time: no comparison with earlier bytes is needed.
    func mayBeSegmented(_ ledger: RangeLedger) -> Bool {
        guard ranges.support == .works || ranges.support == .claimed, coding.name == nil,
            ledger.completeLength != nil, !ranges.doubt.asksPlain, changes.claim == nil
        else { return false }
        switch joinRung(ledger) {
        case .ifRange, .repeatedValidator, .checksum: return true
        default: return false
        }
    }

    /// Returns whether there are no written bytes that another request could continue, so that the next request is for
    /// the whole file.
    func beginsAnew(_ ledger: RangeLedger) -> Bool {
        ledger.written.isEmpty || part.isReplaced || representation == nil
    }

    /// Returns the version of the file that a response with another version would replace: the bytes in the part file,
    /// including bytes that a restart discarded and that are still on disk, or the file that an update may replace.
    /// Otherwise it is the version that a response described before its body broke at the first byte.
    func atStake(_ ledger: RangeLedger) -> HeldVersion? {
        let known = (changes.withLength(representation) ?? changes.givenUp).map {
            HeldVersion($0, coding: coding.name, count: ledger.written.count)
        }
        guard ledger.written.isEmpty else { return known }
        return part.replaced ?? part.earlier ?? existing.map(HeldVersion.init) ?? known
    }

    /// Returns whether only a comparison of the bytes before the resume point can prove that a source's bytes fit.
    func needsOverlap(at source: SourceID, _ ledger: RangeLedger) -> Bool {
        switch rung(at: source, ledger) {
        case .ifRange, .repeatedValidator: part.isDoubtful
        // A checksum covers the whole file, even a copied part file. For a stream it comes too late.
        case .checksum: terms.isStream
        case .weakWithOverlap, .unsafe, .nothingToJoin, nil: true
        }
    }
}
