/// Starting over: bytes that cannot be joined are given up, never mixed.
extension TransferStateMachine {
    /// Sources that are tried in turn because the bytes of the one before were wrong.
    static let restartLimit = 5
    /// Requests that ask for the known version where a server has several, before it counts as changed.
    private static let confirmationLimit = 4
    /// A shorter file is there before further connections would be.
    private static let worthSegmenting: Int64 = 1 << 20

    /// Gives up what is held and begins again, with a notice that says why.
    ///
    /// - Parameters:
    ///   - isChange: the file changed on the server (which the user may have forbidden to follow).
    ///   - keeper: an attempt whose paused answer is the whole of the new file.
    ///   - waits: after restarts in a row, the next request waits: the server made the responses useless.
    mutating func startOver(
        because reason: String, isChange: Bool, keeper: AttemptID? = nil, waits: Bool = false
    ) -> [TransferAction] {
        if case .draining(.end) = phase { return [] }
        if isChange, !terms.restartsChanged {
            return fail(
                TowlineError(
                    .changedOnServer,
                    "\(terms.source): \(reason). The bytes downloaded so far are kept."
                        + " Use --if-changed restart to discard them and download the new version"))
        }
        if terms.isStream, !ledger.written.isEmpty {
            return fail(
                TowlineError(
                    isChange ? .changedOnServer : .invalidResponse,
                    "\(terms.source): \(reason)."
                        + " The download cannot restart, because bytes were already written to the output."
                        + " Discard the output and download again"))
        }
        tally.restarts += 1
        tally.discards += 1
        if let most = terms.retry.allowedTries(limit: nil), tally.discards > most {
            let count = most == 1 ? "1 restart" : "\(most) restarts"
            return fail(
                TowlineError(
                    .transient,
                    "\(terms.source): the download failed after \(count) from the beginning."
                        + " Reason for the last restart: \(reason)"))
        }
        // The first restart is immediate. A server that makes every answer useless is not asked in a loop.
        if tally.discards > 1, keeper == nil, waits {
            let delay = terms.retry.backoff.delay(failures: tally.discards - 1, jitter: jitter)
            notBefore = max(notBefore ?? .zero, now + delay)
            waitReason = reason
        }
        (tally.isConfirming, tally.confirmations) = (false, 0)
        isAnother = isChange
        guard !ledger.written.isEmpty || isChange else { return drain(.restart(keeper: keeper)) }
        var text = "restarting from the beginning: \(reason)"
        if !ledger.written.isEmpty {
            text += ". The \(ByteCountText.format(ledger.written.count)) downloaded so far are discarded"
        }
        return [.notice(TransferNotice(.warning, .restarted, text))] + drain(.restart(keeper: keeper))
    }

    /// All attempts but the keeper are gone: forget the old representation.
    mutating func restart(_ keeper: AttemptID?) -> [TransferAction] {
        giveUpContent()
        if !ledger.written.isEmpty { (replaced, replacedMediaType) = (held, representation?.mediaType) }
        ledger = RangeLedger()
        forgetRepresentation()
        for index in mirrors.indices { mirrors[index].brought = ByteRangeSet() }
        isConfirmed = false
        isDoubtful = false
        (resumedBytes, announcesResuming) = (0, false)
        replacesPart = hasStorage
        phase = .running
        guard let keeper, let facts = keptAnswer else {
            keptAnswer = nil
            return []
        }
        keptAnswer = nil
        attempts.change(keeper) { attempt in
            attempt.plan.lease = ByteRange(0, .max)
            attempt.plan.overlap = 0
            attempt.position = 0
            attempt.bound = .max
        }
        ledger.lease(ByteRange(0, .max), to: keeper)
        return adoptWhole(keeper, facts)
    }

    /// The kind of bytes that a whole new file would replace.
    enum Held: Hashable, Sendable {
        case nothing
        /// Bytes as they are stored.
        case identity
        /// Bytes in a content coding.
        case coded
    }

    /// The bytes in the part file, also those that a restart has discarded and that are still on disk.
    var held: Held {
        if ledger.written.isEmpty { return replaced }
        return contentCoding == nil ? .identity : .coded
    }

    /// Asks once more before an empty answer, or a coded one where identity bytes are held, replaces bytes: a server
    /// that is half updated, or a proxy, gives such an answer for a while.
    ///
    /// - Returns: `nil` if the answer may be used.
    mutating func confirm(_ id: AttemptID, _ facts: ResponseFacts) -> [TransferAction]? {
        let replaces = held != .nothing || existing != nil
        guard replaces, attempts[id]?.plan.isConfirmation == false else { return nil }
        guard facts.representation.completeLength == 0 || facts.contentCoding != nil && held == .identity else {
            return nil
        }
        tally.isConfirming = true
        return dismiss(id)
    }

    /// What was written is given up.
    mutating func giveUpContent() {
        if !ledger.written.isEmpty { contentGeneration += 1 }
    }

    /// The next answer says anew what the file is.
    mutating func forgetRepresentation() {
        if representation?.completeLength != nil { givenUp = representation }
        if isAnother { givenUp = nil }
        isAnother = false
        isWeakened = false
        lengthOnceKnown = nil
        representation = nil
        (contentCoding, label) = (nil, .unknown)
        checksums = terms.checksum.map { [$0] } ?? []
        joinedWeakly = false
        // Of another file nobody gave a sample yet.
        for index in mirrors.indices where mirrors[index].sample != .differs { mirrors[index].sample = .open }
    }

    /// A claim that the file changed. It is asked about once more before anything is thrown away: captive portals,
    /// single broken caches and CDN nodes with tags of their own all look like a change at first.
    mutating func claimedChange(
        _ id: AttemptID, _ reason: String, _ facts: ResponseFacts?, _ context: TransferContext
    ) -> [TransferAction] {
        guard let attempt = attempts[id] else { return [] }
        let others = workingAtPrimary(context, besides: id)
        // Others may have been asked before the first response showed that validators differ.
        let hadValidator = attempt.plan.question.known.map { $0.validator != .none } ?? false
        if terms.checksum != nil, !terms.isStream, hadValidator, others > 0 || !ledger.written.isEmpty {
            // The checksum of the whole decides, whatever the nodes of a server call their copies.
            ignoresValidators = true
            tally.isConfirming = false
            return dismiss(id)
        }
        if others > 0 {
            // The running responses are of one version, and another connection leads to another one.
            isSingle = isSingle || mirrors.isEmpty
            tally.isConfirming = false
            return dismiss(id) + goOnWith(others, context)
        }
        if ledger.written.isEmpty, live.count == 1 {
            return believedChange(id, reason, facts)
        }
        let hasSeveral = tally.flips > 0 && tally.confirmations < Self.confirmationLimit
        if !attempt.plan.isConfirmation || hasSeveral {
            tally.isConfirming = true
            tally.confirmations += 1
            return dismiss(id)
        }
        return believedChange(id, reason, facts)
    }

    private mutating func believedChange(
        _ id: AttemptID, _ reason: String, _ facts: ResponseFacts?
    ) -> [TransferAction] {
        // Changed again: perhaps each connection leads to another node, and the node of one connection stays the same.
        if tally.restarts > 0, mirrors.isEmpty { isSingle = true }
        guard let facts, !maySegmentAnew(facts) else {
            return dismiss(id) + startOver(because: reason, isChange: true, waits: true)
        }
        keptAnswer = facts
        return startOver(because: reason, isChange: true, keeper: id)
    }

    /// Whether the changed file is asked for once more although this answer carries the whole of it: that would be the only
    /// connection to the end, where a range is the beginning of several. Only before anything of the old file came in this
    /// run: who gives one and then the other may do so in turn, and each answer that is thrown away has a cost.
    private func maySegmentAnew(_ facts: ResponseFacts) -> Bool {
        let length = facts.representation.completeLength ?? 0
        guard !isConfirmed, !isSingle, budget.ceiling > 1, length >= Self.worthSegmenting, facts.contentCoding == nil
        else { return false }
        guard facts.representation.strongValidator != nil || terms.checksum != nil else { return false }
        return facts.acceptsRanges == true
    }

    /// The server answers ranges with the whole although nothing changed.
    mutating func rangesIgnored(
        _ id: AttemptID, _ facts: ResponseFacts, _ context: TransferContext
    ) -> [TransferAction] {
        guard let attempt = attempts[id] else { return [] }
        if attempt.plan.question.rung == .ifRange, !dislikesIfRange {
            // Rung 2: the same question without If-Range.
            dislikesIfRange = true
            return dismiss(id)
        }
        let others = workingAtPrimary(context, besides: id)
        if others > 0 {
            tally.refusals += 1
            return dismiss(id) + goOnWith(others, context)
        }
        if mirrorsGoOn { return dismiss(id) + primaryFailed(unusable(Self.noRanges)) }
        if rangeDoubt.mayHavePassed(facts, hadRanges: ranges == .works), attempt.plan.question.asked == .whole {
            rangeDoubt.asksAgain = true
            return dismiss(id)
        }
        if let actions = confirm(id, facts) { return actions }
        keptAnswer = facts
        if attempt.plan.question.asked == .whole, !rangeDoubt.isCertain {
            // This answers no range: the next request after a break asks for one again.
            let reason = "the server repeatedly refused to send only the missing part, and sends the whole file instead"
            return startOver(because: reason, isChange: false, keeper: id)
        }
        ranges = .broken
        isSingle = true
        tally.announcements += 1
        let text = "\(Self.noRanges). Continuing with a single connection; an interrupted download cannot be resumed"
        let reason = "the server sent the whole file although only the missing part was requested"
        return [.notice(TransferNotice(.warning, .singleStream, text))]
            + startOver(because: reason, isChange: false, keeper: id)
    }

    /// Closes an attempt whose answer is of no use; its lease is free at once, but for a stream: what is written there
    /// cannot be written again, and until it has ended it may write.
    mutating func dismiss(_ id: AttemptID) -> [TransferAction] {
        guard let index = attempts.firstIndex(where: { $0.id == id }), !attempts[index].isDismissed else { return [] }
        attempts[index].isDismissed = true
        attempts[index].dismissedAt = attempts[index].position
        if !terms.isStream { ledger.release(id) }
        return [.cancel(id)]
    }
}
