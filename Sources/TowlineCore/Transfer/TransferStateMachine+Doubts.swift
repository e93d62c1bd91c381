/// Whose bytes are right, where several sources give some: what tells, and what follows.
///
/// Before the checksum of the whole speaks at the end, and where only a tag does, a sample is compared: each mirror is
/// asked once for some bytes that the primary has just brought. One that has others is left out before it has brought
/// much, and is there if it turns out that the primary was wrong.
extension TransferStateMachine {
    /// Returns whether bytes that an earlier transfer left on disk may be used.
    ///
    /// A journal beside a part file that is not its own proves nothing: both may come from an archive or another user. Bytes
    /// that came over http prove nothing for https. Only a checksum that the user gave and that nobody can forge proves such
    /// bytes. An empty file needs one request to prove it.
    func isBelievable(_ held: HeldDownload) -> Bool {
        if held.isUntrusted, terms.checksum?.isForgeable ?? true, !terms.unsafeResume { return false }
        return held.representation.completeLength != 0
    }

    /// Starts without the bytes that an earlier transfer left on disk. They stay until new bytes arrive.
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

    /// Asks each mirror that works, and was not asked yet, for bytes that the primary has brought.
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

    /// Where the bytes end that the primary brought last.
    private var sampleEnd: Int64? {
        let ends = live.filter { attempt in
            attempt.plan.source == .primary && attempt.isAccepted && !attempt.isDisbelieved
                && attempt.position - attempt.plan.lease.lowerBound >= Self.weakOverlap
        }
        return ends.map(\.position).filter { ledger.writtenBefore($0) >= Self.weakOverlap }.max()
    }

    /// A mirror has given its sample, and no byte of it differed.
    mutating func compared(_ attempt: Attempt, _ index: Int) -> [TransferAction] {
        // One that answers with less than it was asked for is not asked for ever.
        mirrors[index].sample = attempt.received >= attempt.plan.overlap ? .same : .unknown
        return []
    }

    // MARK: Doubts

    /// What is held and what a source sends for the same offsets are different bytes.
    mutating func seamDiffers(_ attempt: Attempt) -> [TransferAction] {
        // Whose they were is known by now, and no fault of this source.
        guard !attempt.hasLostItsSeam else { return [] }
        let others = mirrors.indices.filter { index in
            attempt.plan.source != .mirror(index) && !bytes(from: index).intersection(attempt.plan.seam).isEmpty
        }
        if case .mirror(let index) = attempt.plan.source {
            // One whose sample was right is believed before one of which nothing is known.
            let isKnown = mirrors[index].sample == .same
            return condemn(isKnown ? others.first { mirrors[$0].sample != .same } ?? index : index)
        }
        if let index = others.first { return condemn(index) }
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

    /// Bytes that are held are not believed any more; what was compared with them says nothing.
    mutating func giveUp(_ range: ByteRange) {
        ledger.withdraw(range)
        for index in attempts.indices where attempts[index].plan.seam.intersection(range) != nil {
            attempts[index].hasLostItsSeam = true
        }
    }

    /// A mirror's bytes are not those of the others.
    mutating func condemn(_ index: Int) -> [TransferAction] {
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

    /// What a mirror brought, and what it is bringing, so far.
    func bytes(from index: Int) -> ByteRangeSet {
        var bytes = mirrors[index].brought
        for attempt in attempts where attempt.plan.source == .mirror(index) && attempt.isAccepted {
            bytes.insert(ByteRange(attempt.plan.lease.lowerBound, max(attempt.plan.lease.lowerBound, attempt.position)))
        }
        return bytes
    }

    /// What a mirror brought is not believed, and what it is bringing neither.
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

    /// The checksum does not match, and some bytes came from mirrors: those are fetched from the primary.
    ///
    /// - Returns: `nil` if it must be something else.
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
        // What an earlier run took from mirrors is not told apart any more.
        guard resumedBytes > 0, tally.restarts == 0 else { return nil }
        let reason =
            "the downloaded file does not match its checksum, perhaps because of bytes from an earlier run,"
            + " so all bytes are downloaded again"
        return startOver(because: reason, isChange: false)
    }

    /// Nobody is left to ask.
    mutating func failSources(_ error: TowlineError) -> [TransferAction] {
        if let actions = acceptUnproven(insteadOf: error) { return actions }
        // Of nobody else came a byte: that is to be heard of, and what was refuted is kept where nobody has begun anew.
        guard let refutation else { return fail(error) }
        return (replacesPart ? [.setAside] : []) + fail(refutation)
    }

    /// Tries of a source that is asked because another was refuted, before it brings anything: the checksum may be wrong,
    /// and nobody is to wait for long for a server that is not there.
    static let triesAfterRefutation = 3

    /// The primary's bytes alone do not match the user's checksum: a mirror that may have others takes its place.
    ///
    /// Not one whose sample was the same: the checksum itself is wrong then, or both are, and a whole download would tell
    /// nobody.
    ///
    /// - Returns: `nil` if there is none.
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
        // What is given up says nothing of another server's file.
        (representation, givenUp) = (nil, nil)
        let reason =
            "the file downloaded from \(wrong) does not match the expected checksum, so it is downloaded again from"
            + " another source"
        return promote(next) + startOver(because: reason, isChange: false)
    }

    /// Returns the held bytes that count as written. If the part file is a copy, the last byte of each run is requested
    /// again, so that the bytes before it are compared. A checksum of the whole file makes this unnecessary.
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

    /// A Boolean value that indicates whether a missing part file is an error. Publishing renames the part file and
    /// does its own checks. A restart or an end discards the part file.
    var isPartExpected: Bool {
        switch phase {
        case .publishing, .draining(.restart), .draining(.end): false
        default: !replacesPart
        }
    }
}
