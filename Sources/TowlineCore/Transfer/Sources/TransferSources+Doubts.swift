/// Checks that decide which of several sources sent correct bytes, and the reactions to their results
/// (docs/internals/mirrors.md). Each mirror is asked once for a sample: bytes that the primary, the source that defines
/// the file, has just delivered. A mirror with different bytes is left out before it has delivered much, and is
/// available if the primary turns out to be wrong.
extension TransferSources {
    /// The number of restarts after which a source that sent wrong bytes is no longer replaced by another.
    static let restartLimit = 5

    /// Handles a source whose bytes differ from the written bytes at the same offsets: a mirror is no longer used, or
    /// the download starts over.
    mutating func seamDiffers(
        _ attempt: RunningAttempt, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> Reaction {
        // The held bytes were already discarded as those of another source, so this source is not at fault.
        guard !attempt.hasLostItsSeam else { return [] }
        let others = mirrors.indices.filter { index in
            attempt.plan.source != .mirror(index)
                && !bytes(from: index, work).intersection(attempt.plan.seam).isEmpty
        }
        if case .mirror(let index) = attempt.plan.source {
            // A mirror with a matching sample is trusted more than a mirror without a known result.
            let isKnown = mirrors[index].sample == .same
            let wrong = isKnown ? others.first { mirrors[$0].sample != .same } ?? index : index
            return exclude(wrong, &evidence, &work)
        }
        if let index = others.first { return exclude(index, &evidence, &work) }
        let size = ByteCountText.format(attempt.plan.overlap)
        let reason =
            "the file on the server differs from the bytes downloaded earlier (the last \(size) before the resume"
            + " point), so the download cannot be resumed"
        if terms.changed == .fail {
            return Reaction([], .startOver(Restart(reason: reason, isChange: true, areBytesWrong: true)))
        }
        // A further connection would begin with bytes that are not compared.
        work.isSingle = true
        if evidence.changes.restarts > 0 { evidence.ranges.support = .broken }
        return Reaction([], .startOver(Restart(reason: reason, waits: true, areBytesWrong: true)))
    }

    /// Stops using a mirror whose bytes differ from those of the other sources, and discards the bytes that came from
    /// it. A stream fails instead.
    private mutating func exclude(
        _ index: Int, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> Reaction {
        if terms.isStream, !mirrors[index].brought.isEmpty {
            let error = TowlineError(
                .invalidResponse,
                "\(mirrors[index].url): this mirror sends different bytes than the other sources."
                    + " Some of these bytes were already written to the output."
                    + " Discard the output and download again without this mirror")
            return Reaction([], .fail(error))
        }
        mirrors[index].sample = .differs
        let reason =
            "this mirror sends different bytes than the other sources, so it has a different or damaged file and is"
            + " not used"
        var reaction = leaveOut(index, reason, &work)
        reaction.actions += withdrawAll(from: index, &evidence, &work)
        return reaction
    }

    /// Returns the bytes that a mirror has delivered so far, including those of its running attempts.
    private func bytes(from index: Int, _ work: TransferWork) -> ByteRangeSet {
        var bytes = mirrors[index].brought
        for attempt in work.attempts where attempt.plan.source == .mirror(index) && attempt.isAccepted {
            bytes.insert(ByteRange(attempt.plan.lease.lowerBound, max(attempt.plan.lease.lowerBound, attempt.position)))
        }
        return bytes
    }

    /// Discards all bytes that a mirror has delivered, and cancels its attempts.
    private mutating func withdrawAll(
        from index: Int, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> [TransferAction] {
        let suspect = bytes(from: index, work)
        var actions: [TransferAction] = []
        for attempt in work.attempts where attempt.plan.source == .mirror(index) {
            work.attempts.change(attempt.id) { $0.isDisbelieved = true }
            actions += work.dismiss(attempt.id)
        }
        mirrors[index].brought = ByteRangeSet()
        let size = ByteCountText.format(suspect.count)
        let message =
            "the \(size) received from \(mirrors[index].url) may be wrong and are downloaded again from another source"
        return actions + withdraw(suspect, message, &evidence, &work)
    }

    /// Discards bytes that may be wrong, so that they are requested again, and notifies the user with `message`.
    private func withdraw(
        _ suspect: ByteRangeSet, _ message: String, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> [TransferAction] {
        guard !suspect.isEmpty else { return [] }
        evidence.part.generation += 1
        for range in suspect.ranges { work.giveUp(range) }
        return suspect.ranges.map { .withdraw($0) } + [.notice(TransferNotice(.warning, .retrying, message))]
    }

    /// Records the rate of an ended attempt, and the bytes that it received from a mirror, which may have to be
    /// discarded later.
    ///
    /// - Returns: the actions that discard bytes. An attempt that was dismissed may write until the cancellation takes
    ///   effect, over bytes that other attempts have written and that are already hashed.
    mutating func note(
        _ attempt: RunningAttempt, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> [TransferAction] {
        guard !mirrors.isEmpty else { return [] }
        if !attempt.plan.isComparison, let rate = attempt.rates.average.rate { self[attempt.plan.source].rate = rate }
        let lower = attempt.plan.lease.lowerBound
        guard attempt.plan.source != .primary, attempt.position > lower else { return [] }
        let trusted = attempt.isAccepted ? min(attempt.position, attempt.dismissedAt ?? .max) : lower
        if trusted > lower, !attempt.isDisbelieved {
            self[attempt.plan.source].brought.insert(ByteRange(lower, trusted))
        }
        guard attempt.isDisbelieved || !attempt.isAccepted || attempt.plan.question.rung == .checksum else { return [] }
        var actions: [TransferAction] = []
        if trusted < attempt.position {
            let late = work.ledger.written.intersection(ByteRange(trusted, attempt.position))
            for range in late.ranges {
                work.giveUp(range)
                actions.append(.withdraw(range))
            }
            if !late.isEmpty { evidence.part.generation += 1 }
        }
        guard attempt.isDisbelieved || !attempt.isAccepted else { return actions }
        return actions + work.ledger.written.gaps(in: ByteRange(lower, attempt.position)).map { .withdraw($0) }
    }

    // MARK: The checksum of the file does not match

    /// Discards the bytes that came from mirrors after a checksum mismatch, so that the primary source sends them
    /// again.
    ///
    /// - Returns: `nil` if mirrors cannot be the cause.
    mutating func doubtMirrors(_ evidence: inout TransferEvidence, _ work: inout TransferWork) -> Reaction? {
        guard !mirrors.isEmpty, !terms.isStream, primary.leftOut == nil else { return nil }
        var suspect = ByteRangeSet()
        for index in mirrors.indices {
            suspect.formUnion(mirrors[index].brought)
            mirrors[index].brought = ByteRangeSet()
            let error = TowlineError(
                .checksumMismatch,
                "\(mirrors[index].url): this mirror is not used any more, because it may have sent wrong bytes:"
                    + " the downloaded file does not match its checksum")
            mirrors[index].leftOut = mirrors[index].leftOut ?? error
        }
        guard suspect.isEmpty else {
            let size = ByteCountText.format(suspect.count)
            let text =
                "the downloaded file does not match its checksum."
                + " The \(size) that came from mirrors are downloaded again from \(primary.url)"
            return Reaction(withdraw(suspect, text, &evidence, &work), .downloadMore)
        }
        // Bytes that an earlier run received from mirrors can no longer be distinguished.
        guard evidence.part.resumedBytes > 0, evidence.changes.restarts == 0 else { return nil }
        let reason =
            "the downloaded file does not match its checksum, perhaps because of bytes from an earlier run,"
            + " so all bytes are downloaded again"
        return Reaction([], .startOver(Restart(reason: reason, areBytesWrong: true)))
    }

    /// Replaces the primary source, whose bytes alone do not match the user's checksum, with a mirror that may have
    /// other bytes.
    ///
    /// A mirror whose compared bytes were the same is not used: the checksum itself is wrong then, or both sources are,
    /// and another complete download would show nothing new.
    ///
    /// - Returns: `nil` if no mirror can replace the primary.
    mutating func replacePrimary(
        refutedBy error: TowlineError, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> Reaction? {
        guard !terms.isStream, evidence.changes.restarts < Self.restartLimit else { return nil }
        let next = mirrors.indices.first { index in
            let mirror = mirrors[index]
            guard mirror.sample != .same, !mirror.isRefuted else { return false }
            let isReachable = mirror.hasWorked || mirror.failures == 0
            return mirror.leftOut.map { mirror.sample == .differs || $0.code == .checksumMismatch && isReachable }
                ?? isReachable
        }
        guard let next, primary.leftOut == nil else { return nil }
        (primary.leftOut, primary.isRefuted) = (error, true)
        for index in mirrors.indices where !mirrors[index].isRefuted {
            if mirrors[index].sample == .same {
                mirrors[index].isRefuted = true
                mirrors[index].leftOut = mirrors[index].leftOut ?? error
                continue
            }
            if mirrors[index].sample == .differs || mirrors[index].leftOut?.code == .checksumMismatch {
                mirrors[index].leftOut = nil
            }
            mirrors[index].sample = .open
        }
        let wrong = primary.url
        refutation = error
        // The discarded file says nothing about the file of another server.
        (evidence.representation, evidence.changes.givenUp) = (nil, nil)
        let reason =
            "the file downloaded from \(wrong) does not match the expected checksum, so it is downloaded again from"
            + " another source"
        return Reaction(
            promote(next, &evidence, &work), .startOver(Restart(reason: reason, areBytesWrong: true)))
    }
}
