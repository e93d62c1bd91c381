/// Checks that decide which of several sources sent correct bytes, and the reactions to their results.
///
/// The checksum of the whole file decides only at the end, and an entity tag is only a claim. Therefore each mirror is
/// asked once for a sample: bytes that the primary, the source that defines the file, has just delivered. A mirror with
/// different bytes is left out before it has delivered much, and is available if the primary turns out to be wrong.
extension TransferStateMachine {
    /// Returns whether bytes that an earlier transfer left on disk may be used.
    ///
    /// A journal beside a part file that is not its own proves nothing: both may come from an archive or another user.
    /// Bytes that came over http prove nothing for https. Only a checksum that the user gave and that nobody can forge
    /// proves such bytes. An empty file needs one request to prove it.
    func isBelievable(_ held: HeldDownload) -> Bool {
        if held.isUntrusted, terms.checksum?.isForgeable ?? true, !terms.unsafeResume { return false }
        return held.representation.completeLength != 0
    }

    /// Starts without the bytes that an earlier transfer left on disk. The bytes stay on disk until new bytes arrive.
    mutating func distrust(_ held: HeldDownload) -> [TransferAction] {
        hasStorage = true
        replacesPart = true
        if !held.written.isEmpty { (replaced, replacedMediaType) = (.identity, held.representation.mediaType) }
        guard !held.written.isEmpty else { return [] }
        let size = ByteCountText.format(held.written.count)
        let text =
            "restarting from the beginning: the \(size) downloaded so far are not trusted, because they came over http or"
            + " from a copied part file. To keep such bytes, start with the checksum of the file (--checksum)"
        return [.notice(TransferNotice(.warning, .restarted, text))]
    }

    // MARK: The sample

    /// Requests a sample from each mirror that works and was not asked yet: bytes that the primary source has
    /// delivered, for comparison.
    mutating func compareMirrors(_ context: TransferContext) -> [TransferAction] {
        guard !mirrors.isEmpty, mirrorRung != nil, let end = sampleEnd else { return [] }
        var actions: [TransferAction] = []
        for index in mirrors.indices where mirrors[index].sample == .open && mirrors[index].hasWorked {
            let isUnderWay = live.contains { $0.plan.source == .mirror(index) && $0.plan.isComparison }
            let origin = mirrors[index].resolved.origin
            guard !isUnderWay, overlap(before: ByteRange(end, end), from: .mirror(index)) > 0,
                live.count(where: { $0.plan.url.origin == origin }) < room(at: index, context)
            else {
                continue
            }
            actions += start(ByteRange(end, end), from: .mirror(index), context)
        }
        return actions
    }

    /// The end of the sample to request: the highest offset that the primary source has reached with at least 64 KiB
    /// before it; `nil` if it has delivered less.
    private var sampleEnd: Int64? {
        let ends = live.filter { attempt in
            attempt.plan.source == .primary && attempt.isAccepted && !attempt.isDisbelieved
                && attempt.position - attempt.plan.lease.lowerBound >= Self.weakOverlap
        }
        return ends.map(\.position).filter { ledger.writtenBefore($0) >= Self.weakOverlap }.max()
    }

    /// Records that the comparison of a mirror's sample has ended without a difference.
    mutating func compared(_ attempt: Attempt, _ index: Int) -> [TransferAction] {
        // A mirror that sends less than the requested sample is not asked again.
        mirrors[index].sample = attempt.received >= attempt.plan.overlap ? .same : .unknown
        return []
    }

    // MARK: Doubts

    /// Handles a source whose bytes differ from the written bytes at the same offsets: a mirror is left out, or the
    /// download starts over.
    mutating func seamDiffers(_ attempt: Attempt) -> [TransferAction] {
        // The held bytes were already discarded as those of another source, so this source is not at fault.
        guard !attempt.hasLostItsSeam else { return [] }
        let others = mirrors.indices.filter { index in
            attempt.plan.source != .mirror(index) && !bytes(from: index).intersection(attempt.plan.seam).isEmpty
        }
        if case .mirror(let index) = attempt.plan.source {
            // A mirror with a matching sample is trusted more than a mirror without a known result.
            let isKnown = mirrors[index].sample == .same
            return excludeMirror(isKnown ? others.first { mirrors[$0].sample != .same } ?? index : index)
        }
        if let index = others.first { return excludeMirror(index) }
        let size = ByteCountText.format(attempt.plan.overlap)
        let reason =
            "the file on the server differs from the bytes downloaded earlier (the last \(size) before the resume"
            + " point), so the download cannot be resumed"
        if !terms.restartsChanged { return startOver(because: reason, isChange: true) }
        if tally.restarts > 0 {
            ranges = .broken
            isSingle = true
        }
        return startOver(because: reason, isChange: false, waits: true)
    }

    /// Discards written bytes that may be wrong. A running comparison with them no longer counts.
    mutating func giveUp(_ range: ByteRange) {
        ledger.withdraw(range)
        for index in attempts.indices where attempts[index].plan.seam.intersection(range) != nil {
            attempts[index].hasLostItsSeam = true
        }
    }

    /// Leaves out a mirror whose bytes differ from those of the other sources, and discards the bytes that came from
    /// it. A stream fails instead.
    mutating func excludeMirror(_ index: Int) -> [TransferAction] {
        if terms.isStream, !mirrors[index].brought.isEmpty {
            return fail(
                TowlineError(
                    .invalidResponse,
                    "\(mirrors[index].url): this mirror sends different bytes than the other sources."
                        + " Some of these bytes were already written to the output."
                        + " Discard the output and download again without this mirror"))
        }
        mirrors[index].sample = .differs
        let reason =
            "this mirror sends different bytes than the other sources, so it has a different or damaged file and is"
            + " not used"
        return leaveOut(index, reason) + withdrawAll(from: index)
    }

    /// Returns the bytes that a mirror has delivered so far, including those of its running attempts.
    func bytes(from index: Int) -> ByteRangeSet {
        var bytes = mirrors[index].brought
        for attempt in attempts where attempt.plan.source == .mirror(index) && attempt.isAccepted {
            bytes.insert(ByteRange(attempt.plan.lease.lowerBound, max(attempt.plan.lease.lowerBound, attempt.position)))
        }
        return bytes
    }

    /// Discards all bytes that a mirror has delivered, and cancels its attempts.
    private mutating func withdrawAll(from index: Int) -> [TransferAction] {
        let suspect = bytes(from: index)
        var actions: [TransferAction] = []
        for attempt in attempts where attempt.plan.source == .mirror(index) {
            attempts.change(attempt.id) { $0.isDisbelieved = true }
            actions += dismiss(attempt.id)
        }
        mirrors[index].brought = ByteRangeSet()
        let size = ByteCountText.format(suspect.count)
        let message =
            "the \(size) received from \(mirrors[index].url) may be wrong and are downloaded again from another source"
        return actions + withdraw(suspect, message)
    }

    private mutating func withdraw(_ suspect: ByteRangeSet, _ message: String) -> [TransferAction] {
        guard !suspect.isEmpty else { return [] }
        contentGeneration += 1
        for range in suspect.ranges { giveUp(range) }
        return suspect.ranges.map { .withdraw($0) } + [.notice(TransferNotice(.warning, .retrying, message))]
    }

    /// Discards the bytes that came from mirrors after a checksum mismatch, so that the primary source sends them
    /// again.
    ///
    /// - Returns: `nil` if mirrors cannot be the cause.
    mutating func doubtMirrors() -> [TransferAction]? {
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
            phase = .running
            let size = ByteCountText.format(suspect.count)
            return withdraw(
                suspect,
                "the downloaded file does not match its checksum."
                    + " The \(size) that came from mirrors are downloaded again from \(primary.url)")
        }
        // Bytes that an earlier run received from mirrors can no longer be distinguished.
        guard resumedBytes > 0, tally.restarts == 0 else { return nil }
        let reason =
            "the downloaded file does not match its checksum, perhaps because of bytes from an earlier run,"
            + " so all bytes are downloaded again"
        return startOver(because: reason, isChange: false)
    }

    /// Fails because no source is left to ask, unless an earlier response whose end nobody confirmed can be the file.
    mutating func failSources(_ error: TowlineError) -> [TransferAction] {
        if let actions = acceptUnproven(insteadOf: error) { return actions }
        // No other source sent a byte after the mismatch of the primary's bytes, so the mismatch is the error. The
        // wrong file is set aside if no new part file was begun.
        guard let refutation else { return fail(error) }
        return (replacesPart ? [.setAside] : []) + fail(refutation)
    }

    /// The maximum number of tries, before its first byte, of a source that replaces one whose file does not match the
    /// user's checksum: the checksum may be wrong, and the user must not wait long for an unreachable server.
    static let triesAfterRefutation = 3

    /// Replaces the primary source, whose bytes alone do not match the user's checksum, with a mirror that may have
    /// other bytes.
    ///
    /// A mirror whose compared bytes were the same is not used: the checksum itself is wrong then, or both sources are,
    /// and another complete download would show nothing new.
    ///
    /// - Returns: `nil` if no mirror can replace the primary.
    mutating func replacePrimary(refutedBy error: TowlineError) -> [TransferAction]? {
        guard !terms.isStream, tally.restarts < Self.restartLimit else { return nil }
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
        (representation, givenUp) = (nil, nil)
        let reason =
            "the file downloaded from \(wrong) does not match the expected checksum, so it is downloaded again from"
            + " another source"
        return promote(next) + startOver(because: reason, isChange: false)
    }

    /// Returns the bytes of an earlier transfer that count as written. If the part file is a copy, the last byte of
    /// each run is requested again, so that the bytes before it are compared. A checksum of the whole file makes this
    /// unnecessary.
    func believed(_ held: HeldDownload) -> ByteRangeSet {
        guard checksums.isEmpty else { return held.written }
        if !held.isDoubtful, held.representation.validator == .weak { return weaklyBelieved(held.written) }
        var believed = held.written
        guard held.isDoubtful else { return believed }
        for run in held.written.ranges {
            believed.remove(ByteRange(run.upperBound - 1, run.upperBound))
        }
        return believed
    }

    /// `true` if the lack of the part file is an error. Publishing renames the part file and does its own checks. A
    /// restart or an end discards the part file.
    var isPartExpected: Bool {
        switch phase {
        case .publishing, .draining(.restart), .draining(.end): false
        default: !replacesPart
        }
    }
}
