/// Restarts of a download from the first byte: written bytes that cannot be joined to new ones are discarded, never
/// mixed with them.
extension TransferStateMachine {
    /// The number of restarts after which a source that sent wrong bytes is no longer replaced by another.
    static let restartLimit = 5
    /// The maximum number of requests for the known version if a server has several, before the file counts as changed.
    private static let confirmationLimit = 4
    /// The minimum length in bytes of a file that is worth further connections: a shorter file is complete before they
    /// deliver.
    private static let worthSegmenting: Int64 = 1 << 20

    /// Discards the written bytes and begins again at the first byte, with a notice that states the reason.
    ///
    /// - Parameters:
    ///   - isChange: `true` if the file changed on the server. The user may have forbidden a restart in this case.
    ///   - keeper: an attempt whose paused response is the complete new file; `nil` if a new request is sent.
    ///   - waits: `true` if the next request waits after restarts in a row, because the server made the responses
    ///     useless.
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
        // The first restart is immediate. A server that makes every response useless is not asked in a loop.
        if tally.discards > 1, keeper == nil, waits {
            let delay = terms.retry.backoff.delay(failures: tally.discards - 1, jitter: jitter)
            notBefore = max(notBefore ?? .zero, now + delay)
            waitReason = reason
        }
        (tally.isConfirming, tally.confirmations) = (false, 0)
        fileChanged = isChange
        guard !ledger.written.isEmpty || isChange else { return drain(.restart(keeper: keeper)) }
        var text = "restarting from the beginning: \(reason)"
        if !ledger.written.isEmpty {
            text += ". The \(ByteCountText.format(ledger.written.count)) downloaded so far are discarded"
        }
        return [.notice(TransferNotice(.warning, .restarted, text))] + drain(.restart(keeper: keeper))
    }

    /// Forgets the old file when all attempts except `keeper` have ended, and adopts the response of `keeper` as the
    /// new file; `nil`: a new request follows.
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

    /// The kind of bytes that a complete new file would replace.
    enum Held: Hashable, Sendable {
        /// There are no such bytes.
        case nothing
        /// Bytes as the server stores them, without a content coding.
        case identity
        /// Bytes in a content coding, such as gzip. Ranges of them cannot be joined.
        case coded
    }

    /// The kind of bytes in the part file, including bytes that a restart discarded and that are still on disk.
    var held: Held {
        if ledger.written.isEmpty { return replaced }
        return contentCoding == nil ? .identity : .coded
    }

    /// Requests the file again before an empty response, or a coded one if bytes without a coding are written, replaces
    /// bytes: a partly updated server or a proxy may send such a response for a while.
    ///
    /// - Returns: `nil` if the response may be used.
    mutating func confirm(_ id: AttemptID, _ facts: ResponseFacts) -> [TransferAction]? {
        let replaces = held != .nothing || existing != nil
        guard replaces, attempts[id]?.plan.isConfirmation == false else { return nil }
        guard facts.representation.completeLength == 0 || facts.contentCoding != nil && held == .identity else {
            return nil
        }
        tally.isConfirming = true
        return dismiss(id)
    }

    /// Increases the content generation, the number that tells readers to read again, if written bytes are discarded.
    mutating func giveUpContent() {
        if !ledger.written.isEmpty { contentGeneration += 1 }
    }

    /// Forgets the known metadata of the file, such as its length and validators. The next response defines the file
    /// again.
    mutating func forgetRepresentation() {
        if representation?.completeLength != nil { givenUp = representation }
        if fileChanged { givenUp = nil }
        fileChanged = false
        isWeakened = false
        minimumLength = nil
        representation = nil
        (contentCoding, label) = (nil, .unknown)
        checksums = terms.checksum.map { [$0] } ?? []
        joinedWeakly = false
        // No mirror has sent a sample of the new file yet.
        for index in mirrors.indices where mirrors[index].sample != .differs { mirrors[index].sample = .open }
    }

    /// Handles a response that shows another version of the file. Another request has to confirm the change before
    /// bytes are discarded: captive portals, single broken caches, and CDN nodes with tags of their own all look like a
    /// change at first.
    mutating func claimedChange(
        _ id: AttemptID, _ reason: String, _ facts: ResponseFacts?, _ context: TransferContext
    ) -> [TransferAction] {
        guard let attempt = attempts[id] else { return [] }
        let others = workingAtPrimary(context, besides: id)
        // Other requests may have been sent before the first response showed that validators differ.
        let hadValidator = attempt.plan.question.known.map { $0.validator != .none } ?? false
        if terms.checksum != nil, !terms.isStream, hadValidator, others > 0 || !ledger.written.isEmpty {
            // The checksum of the whole file decides, whatever validators the nodes of a server send.
            ignoresValidators = true
            tally.isConfirming = false
            return dismiss(id)
        }
        if others > 0 {
            // The running responses belong to one version, and another connection leads to another version.
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
        // The file changed again: each connection may lead to another node, and one connection keeps its node.
        if tally.restarts > 0, mirrors.isEmpty { isSingle = true }
        guard let facts, !maySegmentAnew(facts) else {
            return dismiss(id) + startOver(because: reason, isChange: true, waits: true)
        }
        keptAnswer = facts
        return startOver(because: reason, isChange: true, keeper: id)
    }

    /// Returns whether to request the changed file once more although this response contains all of it: this response
    /// would stay the only connection, but a range can be the first of several. Used only before bytes of the old file
    /// arrived in this run: a server that sends both versions may alternate, and each discarded response has a cost.
    private func maySegmentAnew(_ facts: ResponseFacts) -> Bool {
        let length = facts.representation.completeLength ?? 0
        guard !isConfirmed, !isSingle, budget.ceiling > 1, length >= Self.worthSegmenting, facts.contentCoding == nil
        else { return false }
        guard facts.representation.strongValidator != nil || terms.checksum != nil else { return false }
        return facts.acceptsRanges == true
    }

    /// Handles a response with the whole file to a range request although the file has not changed: repeats the request
    /// without `If-Range`, then starts over with the whole file.
    mutating func rangesIgnored(
        _ id: AttemptID, _ facts: ResponseFacts, _ context: TransferContext
    ) -> [TransferAction] {
        guard let attempt = attempts[id] else { return [] }
        if attempt.plan.question.rung == .ifRange, !dislikesIfRange {
            // Rung 2: the same request without If-Range.
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
            // The request had no Range, so the next request after a break asks for a range again.
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

    /// Cancels an attempt whose response is not needed. Its range is free for others at once, except for a stream:
    /// bytes written to a stream cannot be written again, and the attempt may write until it has ended.
    mutating func dismiss(_ id: AttemptID) -> [TransferAction] {
        guard let index = attempts.firstIndex(where: { $0.id == id }), !attempts[index].isDismissed else { return [] }
        attempts[index].isDismissed = true
        attempts[index].dismissedAt = attempts[index].position
        if !terms.isStream { ledger.release(id) }
        return [.cancel(id)]
    }
}
