/// The reactions to response heads, after each was evaluated with a verdict.
extension TransferStateMachine {
    mutating func answered(
        _ id: AttemptID, _ verdict: ResponseVerdict, _ context: TransferContext
    ) -> [TransferAction] {
        guard phase == .running, let index = attempts.firstIndex(where: { $0.id == id }), !attempts[index].isDismissed
        else { return [] }
        attempts[index].lastProgressAt = context.now
        let trip = (context.now - attempts[index].startedAt).seconds
        roundTrip = min(roundTrip ?? trip, trip)
        if case .mirror(let source) = attempts[index].plan.source {
            return mirrorAnswered(attempts[index], source, verdict, context)
        }
        // From a primary that is no longer used, only a fitting partial response counts.
        if primary.leftOut != nil, case .partial = verdict {} else if primary.leftOut != nil { return dismiss(id) }
        if isExperiment(attempts[index], context), let refusal = Refusal(verdict) {
            return giveBack(attempts[index], refusal, context)
        }
        if let actions = refusedForRange(id, verdict, context) { return actions }
        switch verdict {
        case .partial(let range, let facts): return acceptPartial(id, range, facts, context)
        case .whole(let facts): return adoptWhole(id, facts)
        case .empty(let facts):
            var empty = facts
            empty.representation.completeLength = 0
            return adoptWhole(id, empty, hasBody: false)
        case .complete(let length):
            ledger.learn(completeLength: length)
            representation?.completeLength = length
            return dismiss(id)
        case .askWithoutRange(let reason): return withoutRange(id, reason, context)
        case .changed(let reason, let facts): return claimedChange(id, reason, facts, context)
        case .rangeIgnored(let facts): return rangesIgnored(id, facts, context)
        case .rangeRefused(let reason): return rangeRefused(id, reason, context)
        case .notModified: return drain(.end(.upToDate))
        case .conditionRefused:
            // The next request has no condition. Without `If-Range`, rung 2 of the proof ladder applies.
            if existing == nil { dislikesIfRange = true }
            existing = nil
            return dismiss(id)
        case .weakened(let reason): return weakened(id, reason, context)
        case .redirect(let location, let linked, let retryAfter):
            return redirected(id, location, linked, retryAfter, context)
        case .linkExpired(let status, let error): return linkExpired(id, status, error, context)
        case .transient(let reason, let retryAfter, let overloaded, let status):
            return busy(id, reason, retryAfter, overloaded, isOfHost: status > 403, context)
        // Before the first byte, a login page usually outlasts every useful wait.
        case .webPage(let reason): return dismiss(id) + failedAttempt(reason, nil, .transient, limit: 2, context)
        case .permanent(let error):
            // After good responses, a single invalid response is a fault of that connection.
            if isConfirmed, error.code == .invalidResponse { return rangeRefused(id, error.message, context) }
            return dismiss(id) + primaryFailed(error)
        }
    }

    /// Records that a response is accepted, and its checksum fields, which error messages name.
    mutating func accept(_ id: AttemptID, _ facts: ResponseFacts) {
        budget.serves(attempts.count { $0.id == id || $0.isAccepted && !$0.isDismissed })
        attempts.change(id) {
            $0.acceptedAt = now
            // The time before the response does not count for the rate.
            $0.recent.reset()
            $0.digestField = facts.contentDigests.first?.field
        }
        carriesDigests = carriesDigests || !facts.contentDigests.isEmpty
        for digest in facts.wholeDigests { digestFields[digest.checksum] = digest }
    }

    private mutating func acceptPartial(
        _ id: AttemptID, _ range: ByteRange, _ facts: ResponseFacts, _ context: TransferContext
    ) -> [TransferAction] {
        guard let attempt = attempts[id] else { return [] }
        let plan = attempt.plan
        accept(id, facts)
        ranges = .works
        rangeDoubt = RangeDoubt()
        tally.refusals = 0
        tally.confirmations = 0
        if plan.isConfirmation {
            tally.isConfirming = false
            tally.flips += 1
            if tally.flips >= 3 { isSingle = true }
        }
        if plan.question.rung > .repeatedValidator { joinedWeakly = true }
        setBound(of: id, to: range.upperBound)
        if ledger.completeLength == nil, let length = facts.representation.completeLength {
            ledger.learn(completeLength: length)
        }
        guard representation != nil, hasStorage, !replacesPart else { return adoptFirst(id, facts) }
        var actions: [TransferAction] = []
        if representation?.completeLength == nil, let length = facts.representation.completeLength {
            representation?.completeLength = length
            actions.append(learnAction())
        }
        isConfirmed = true
        tally.discards = 0
        primary.failures = 0
        resolved = plan.url
        if !plan.joinsDirectly { actions.append(.proceed(id)) }
        return actions
    }

    /// Adopts the first response since the transfer began or restarted, which defines the file's length and validators.
    private mutating func adoptFirst(_ id: AttemptID, _ facts: ResponseFacts) -> [TransferAction] {
        if let actions = confirm(id, facts) { return actions }
        adopt(id, facts)
        if facts.contentCoding != nil {
            ranges = .broken
            isSingle = true
        }
        return preparing(id, facts)
    }

    /// Adopts a response that contains the complete file from its first byte. `hasBody` is `false` for an empty file.
    mutating func adoptWhole(_ id: AttemptID, _ facts: ResponseFacts, hasBody: Bool = true) -> [TransferAction] {
        if let actions = confirm(id, facts) { return actions }
        tally.isConfirming = false
        accept(id, facts)
        var facts = facts
        if facts.representation.completeLength == nil {
            facts.representation.completeLength = lengthGivenUp(facts, weakly: false)
            minimumLength = lengthGivenUp(facts, weakly: true)
        }
        adopt(id, facts)
        if let length = facts.representation.completeLength { ledger.learn(completeLength: length) }
        // A response to a request without Range does not disprove ranges that worked before.
        let isPlain = attempts[id]?.plan.question.asked == .whole
        let keepsRanges = ranges == .works && isPlain && !rangeDoubt.isCertain
        if facts.contentCoding != nil {
            ranges = .broken
        } else if ranges != .broken, !keepsRanges {
            ranges = facts.acceptsRanges == true ? .claimed : rangeDoubt.isCertain ? .broken : .unknown
        }
        rangeDoubt = RangeDoubt()
        // A server that ignores `bytes=0-` but announces range support may send other ranges (RFC 9110 §14.2). A plain
        // response is not cut for another connection, whose request may be refused again.
        if ranges != .claimed || isPlain { isSingle = true }
        let actions = preparing(id, facts)
        guard !hasBody else { return actions }
        attempts.change(id) { $0.isDismissed = true }
        ledger.release(id)
        phase = .preparing(nil)
        return [.cancel(id)] + actions
    }

    /// Returns the length of the discarded representation if the response has the same validator, otherwise `nil`. A
    /// body that ends earlier is incomplete, however it is framed (RFC 9112 §8). Representations with the same weak
    /// validator may differ in bytes and length (RFC 9110 §8.8.1).
    private func lengthGivenUp(_ facts: ResponseFacts, weakly: Bool) -> Int64? {
        guard let givenUp, facts.contentCoding == nil, !terms.ignoresLength,
            givenUp.repeatsValidator(of: facts.representation, weakly: weakly)
        else { return nil }
        return givenUp.completeLength
    }

    private mutating func adopt(_ id: AttemptID, _ facts: ResponseFacts) {
        // A reader may already know the previous representation, even if none of its bytes arrived.
        if let last = lastAdopted,
            last.strongValidator == nil || last.strongValidator != facts.representation.strongValidator
                || last.completeLength != facts.representation.completeLength
        {
            contentGeneration += 1
        }
        existing = nil
        lastAdopted = facts.representation
        representation = facts.representation
        primary.failures = 0
        contentCoding = facts.contentCoding
        label = CodingLabel(facts)
        fileName = facts.fileName
        isConfirmed = true
        if let url = attempts[id]?.plan.url { resolved = url }
        if !terms.isStream { checksums = SmallFilePolicy.checksums(besides: checksums, facts) }
    }

    private mutating func preparing(_ id: AttemptID, _ facts: ResponseFacts) -> [TransferAction] {
        phase = .preparing(id)
        let plan = PreparePlan(
            representation: facts.representation, fileName: facts.fileName, checksums: checksums,
            isReplacement: hasStorage, resolved: resolved, lacksRanges: lacksRanges)
        let url = attempts[id]?.plan.url ?? resolved
        let isNamed = terms.fileName != nil || terms.isStream || hasStorage
        let renamed = isNamed ? nil : SafeFileName.notice(facts, from: url)
        let notices = codingNotice(facts) + (renamed.map { [.notice($0)] } ?? [])
        return notices + announceStartingOver() + [.prepare(plan)]
    }

    /// Returns a notice that the file is saved without decoding; empty if the response has no content coding.
    private func codingNotice(_ facts: ResponseFacts) -> [TransferAction] {
        if let label = facts.label, !CodingLabel.isKnown(label) {
            let name = TerminalSafeText.make(label, width: 20)
            let text = "the server sent an unknown Content-Encoding (\(name)). The file is saved as received"
            return [.notice(TransferNotice(.warning, .singleStream, text))]
        }
        guard let coding = facts.contentCoding else { return [] }
        let name = TerminalSafeText.make(coding, width: 20)
        let text =
            "the server compresses the file (Content-Encoding: \(name))."
            + " The file is saved as received, without decompression."
            + " An interrupted download restarts from the beginning"
        return [.notice(TransferNotice(.warning, .singleStream, text))]
    }

    func learnAction() -> TransferAction { .learn(representation ?? Representation(), checksums) }

    /// Handles a response that does not contain the requested range: retries once, then starts over without ranges.
    mutating func rangeRefused(
        _ id: AttemptID, _ reason: String, _ context: TransferContext
    ) -> [TransferAction] {
        tally.refusals += 1
        let actions = dismiss(id)
        let others = workingAtPrimary(context)
        guard others == 0 else { return actions + goOnWith(others, context) }
        guard tally.refusals >= 2 else { return actions }
        if mirrorsGoOn { return actions + primaryFailed(unusable(reason)) }
        ranges = .broken
        isSingle = true
        tally.announcements += 1
        let text =
            "the server does not handle range requests correctly: \(reason)."
            + " Continuing with a single connection; an interrupted download cannot be resumed"
        return actions + [.notice(TransferNotice(.warning, .singleStream, text))]
            + startOver(because: reason, isChange: false, waits: true)
    }

    /// Continues with only the `others` (a number of) attempts that receive bytes. After four refused ranges, no
    /// connection is added.
    mutating func goOnWith(_ others: Int, _ context: TransferContext) -> [TransferAction] {
        limitConnections(to: others, context)
        if tally.refusals >= 4, mirrors.isEmpty { isSingle = true }
        return []
    }

    // MARK: Expired links and busy servers

    /// Handles a refusal (401, 403, 404 or 410) by a URL that worked before: a signed link has expired, or the server
    /// allows no further connection.
    private mutating func linkExpired(
        _ id: AttemptID, _ status: Int, _ error: TowlineError, _ context: TransferContext
    ) -> [TransferAction] {
        guard let plan = attempts[id]?.plan else { return [] }
        let wasElsewhere = plan.url != primary.url
        let actions = dismiss(id)
        // The refusal of another attempt at the old link has already caused a renewal.
        if plan.chain.isEmpty, plan.url != resolved { return actions }
        let others = workingAtPrimary(context)
        if others > 0 {
            let allowed = limitConnections(to: others, context)
            return actions + [.report(.connections(allowed), of: plan.url.origin)]
        }
        tally.expirations += 1
        guard wasElsewhere, tally.expirations <= 3 else { return actions + primaryFailed(error) }
        resolved = primary.url
        // While mirrors deliver bytes, the primary must not be asked repeatedly without a wait.
        if !mirrors.isEmpty { waitForPrimary(context) }
        let text = "the link no longer works (status \(status)). Requesting \(primary.url) again to get a new link"
        return actions + [.notice(TransferNotice(.info, .retrying, text))]
    }

    /// Handles a temporary refusal: waits and retries, or fails after too many tries. `retryAfter`: the wait that the
    /// server requested; if `isOfHost`, it applies to every download from the host. `overloaded`: the host wants fewer
    /// requests.
    mutating func busy(
        _ id: AttemptID, _ reason: String, _ retryAfter: Duration?, _ overloaded: Bool, isOfHost: Bool,
        _ context: TransferContext
    ) -> [TransferAction] {
        guard let plan = attempts[id]?.plan else { return [] }
        let origin = plan.url.origin
        // Some servers count streams as connections, and without sharing there are at most sixteen connections.
        var actions = dismiss(id) + stopSharing(plan)
        let wait = retryAfter
        if isOfHost, let wait { actions.append(.report(.leaveAlone(wait), of: origin)) }
        let others = workingAtPrimary(context)
        if others > 0 {
            if overloaded {
                let allowed = limitConnections(to: others, context)
                actions.append(.report(.connections(allowed), of: origin))
                guard allowed == others else { return actions }
                let text = "\(reason). Continuing with \(others) connection\(others == 1 ? "" : "s") to this server"
                actions.append(.notice(TransferNotice(.info, .limited, text)))
            } else {
                notBefore = context.now + (wait ?? terms.retry.backoff.delay(failures: 1, jitter: context.jitter))
                waitsForServer = wait != nil
            }
            return actions
        }
        if overloaded { actions.append(.report(.overloaded, of: origin)) }
        if let wait, let error = tooLong(wait, primary.url) { return actions + primaryFailed(error) }
        return actions + failedAttempt(reason, wait, .transient, isTooMany: overloaded, context)
    }
}
