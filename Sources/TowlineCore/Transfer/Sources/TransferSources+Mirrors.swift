/// Several sources for one file (RFC 5854 §4.2.14, RFC 6249 §4). They share its segments; if one fails, another
/// continues (docs/internals/mirrors.md).
///
/// The primary source defines the file. Bytes of a mirror are joined only with proof: a checksum of the whole file,
/// verified before publishing, or the same strong entity tag (RFC 6249 §6). A mirror with another file is left out.
extension TransferSources {
    // MARK: Results of requests to mirrors

    /// Handles the verdict on a response of the mirror at `index`, except a redirect that is followed.
    mutating func answered(
        _ attempt: RunningAttempt, _ index: Int, _ verdict: ResponseVerdict, _ evidence: inout TransferEvidence,
        _ work: inout TransferWork, _ patience: inout TransferPatience, _ context: TransferContext
    ) -> Reaction {
        let (id, plan) = (attempt.id, attempt.plan)
        switch verdict {
        case .partial(let range, let facts):
            work.attempts.change(id) {
                $0.acceptedAt = context.now
                $0.digestField = facts.contentDigests.first?.field
            }
            work.setBound(of: id, to: range.upperBound)
            mirrors[index].resolved = plan.url
            mirrors[index].hasWorked = true
            evidence.isConfirmed = true
            if evidence.ranges.support == .unknown { evidence.ranges.support = .works }
            return []
        case .redirect: return Reaction(work.dismiss(id))
        case .transient(let reason, let retryAfter, let overloaded, let status):
            let actions = busy(plan, retryAfter, overloaded, isOfHost: status > 403, &work, context)
            if let error = retryAfter.flatMap({ terms.tooLong($0, plan.url) }) {
                return actions + leaveOut(index, error.message, code: error.code, &work)
            }
            return actions + postpone(index, reason, retryAfter, &work, &patience, context)
        case .linkExpired(let status, _) where plan.url != mirrors[index].url:
            mirrors[index].resolved = mirrors[index].url
            let reason =
                "the link that this mirror redirects to no longer works (status \(status)), so the mirror is asked for"
                + " a new link"
            return work.dismiss(id) + postpone(index, reason, nil, &work, &patience, context)
        case .linkExpired(_, let error), .permanent(let error):
            return work.dismiss(id) + leaveOut(index, error.message, &work)
        case .changed(let reason, let facts, let isWhole):
            let length = work.ledger.completeLength
            let isSameLength =
                isWhole
                ? facts.representation.completeLength ?? length == length : reason == Representation.tagChanged
            guard evidence.mirrorRung(work.ledger) == .ifRange, isSameLength else {
                mirrors[index].sample = .differs
                return work.dismiss(id) + leaveOut(index, reason, &work)
            }
            let text =
                "this mirror sends a different ETag, so it may have a different file and is not used"
                + " (to use such mirrors, \(Remedy.checksum))"
            return work.dismiss(id) + leaveOut(index, text, &work)
        case .askWithoutRange(let reason), .rangeRefused(let reason), .weakened(let reason), .webPage(let reason),
            .conditionRefused(let reason):
            return work.dismiss(id) + leaveOut(index, reason, &work)
        case .whole, .empty, .complete, .rangeIgnored, .notModified:
            let reason =
                "this mirror does not support range requests and cannot send parts of the file, so it is not used"
            return work.dismiss(id) + leaveOut(index, reason, &work)
        }
    }

    /// Closes an attempt whose mirror is busy, and reports the requested `wait` and the connection limit to all
    /// downloads from its host.
    private mutating func busy(
        _ plan: AttemptPlan, _ wait: Duration?, _ overloaded: Bool, isOfHost: Bool, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> [TransferAction] {
        let others = work.attempts.count { !$0.isDismissed && $0.isAccepted && $0.plan.source == plan.source }
        var actions = work.dismiss(plan.id)
        if isOfHost, let wait { actions.append(.report(.leaveAlone(wait), of: plan.url.origin)) }
        if overloaded, others > 0 {
            self[plan.source].limit(to: others, now: context.now)
            actions.append(.report(.connections(others), of: plan.url.origin))
        }
        return actions
    }

    /// Handles the end of an attempt at the mirror at `index`, except an end because its bytes differ from the written
    /// ones.
    mutating func ended(
        _ attempt: RunningAttempt, _ index: Int, _ result: AttemptResult, _ evidence: TransferEvidence,
        _ work: inout TransferWork, _ patience: inout TransferPatience, _ context: TransferContext
    ) -> Reaction {
        let hasBrought = attempt.isAccepted && attempt.position > attempt.plan.lease.lowerBound
        if hasBrought { mirrors[index].failures = 0 }
        switch result {
        case .complete where attempt.plan.isComparison, .stopped where attempt.plan.isComparison:
            // A mirror that sends less than the requested sample is not asked again.
            mirrors[index].sample = attempt.received >= attempt.plan.overlap ? .same : .unknown
            return []
        case .failed(let failure):
            let reason = TerminalSafeText.make(failure.message, width: 200)
            if hasBrought { return [] }
            guard case .transient(let limit) = RetryPolicy.classify(failure.kind) else {
                return leaveOut(index, reason, &work)
            }
            return postpone(index, reason, nil, limit: limit, &work, &patience, context)
        case .complete:
            guard !hasBrought, attempt.isAccepted, !goesOnWithoutOverlap(after: attempt, evidence, work.ledger) else {
                return []
            }
            return postpone(index, TransferStateMachine.endedEarly, nil, &work, &patience, context)
        case .overlapDiffers, .stopped, .cancelled, .sinkFailed, .digestDiffers, .needsOwnConnection: return []
        }
    }

    /// Returns whether the next request omits the overlap, the repeated bytes before the resume point: a complete
    /// response contained nothing else, and other proof suffices. Called when `attempt` ended without a new byte.
    mutating func goesOnWithoutOverlap(
        after attempt: RunningAttempt, _ evidence: TransferEvidence, _ ledger: RangeLedger
    ) -> Bool {
        let source = attempt.plan.source
        guard attempt.plan.overlap > 0, !self[source].givesOverlapAlone, !evidence.needsOverlap(at: source, ledger)
        else { return false }
        self[source].givesOverlapAlone = true
        return true
    }

    /// Delays the next request to a mirror that delivered no bytes. After too many failures, the mirror is no longer
    /// used. `wait`: the wait that the server requested; `limit`: the maximum number of tries; `nil` without one.
    mutating func postpone(
        _ index: Int, _ reason: String, _ wait: Duration?, limit: Int? = nil, _ work: inout TransferWork,
        _ patience: inout TransferPatience, _ context: TransferContext
    ) -> Reaction {
        // The connections to a mirror fail within moments of each other, which counts as one failure.
        if let until = mirrors[index].notBefore, until > context.now {
            if let wait { mirrors[index].notBefore = max(until, context.now + wait) }
            return []
        }
        mirrors[index].failures += 1
        let failures = mirrors[index].failures
        if terms.retry.isExhausted(failures: failures, limit: limit) {
            return leaveOut(index, reason, code: .transient, &work)
        }
        let delay = max(terms.retry.backoff.delay(failures: failures, jitter: context.jitter), wait ?? .zero)
        mirrors[index].notBefore = context.now + delay
        if work.liveCount == 0 { patience.waitReason = reason }
        guard failures == 1 else { return [] }
        let text = "\(mirrors[index].url): \(reason). Retrying this source later; continuing with the other sources"
        return Reaction([.notice(TransferNotice(.info, .retrying, text))])
    }

    /// Stops using a mirror because of an error. `reason` is the message of the error.
    mutating func leaveOut(
        _ index: Int, _ reason: String, code: TowlineError.Code = .invalidResponse, _ work: inout TransferWork
    ) -> Reaction {
        guard mirrors[index].leftOut == nil else { return [] }
        mirrors[index].leftOut = TowlineError(code, "\(mirrors[index].url): \(reason)")
        var actions = [TransferAction.notice(.leftOut(mirrors[index].url, reason))]
        for attempt in work.live where attempt.plan.source == .mirror(index) && !attempt.isAccepted {
            actions += work.dismiss(attempt.id)
        }
        guard mirrors.allSatisfy({ $0.leftOut != nil }) else { return Reaction(actions) }
        guard let error = primary.leftOut else {
            // The connection budget belongs to the primary alone again.
            if let ceiling = primary.ceiling { work.budget.lower(to: ceiling, now: primary.ceilingEnd) }
            primary.ceiling = nil
            return Reaction(actions)
        }
        // If a mirror was only unreachable, its transient error shows that another run may succeed.
        return Reaction(
            actions, .sourcesFailed(mirrors.compactMap(\.leftOut).first { $0.code == .transient } ?? error))
    }

    /// Lowers the connection limit of a source that refused a connection while `count` others received bytes.
    ///
    /// - Parameters:
    ///   - sentAt: the time of the refused request.
    ///   - recovery: the time after which one more connection is tried.
    /// - Returns: the number of connections that the server allows, as far as is known.
    @discardableResult
    mutating func limitConnections(
        of source: SourceID = .primary, to count: Int, sentAt: Duration? = nil,
        recovery: Duration = .seconds(20), _ budget: inout ConnectionBudget, _ context: TransferContext
    ) -> Int {
        // With mirrors, fewer connections to one source do not mean fewer in total.
        guard mirrors.isEmpty else {
            self[source].limit(to: count, now: context.now)
            return count
        }
        return budget.refused(beside: count, now: context.now, sentAt: sentAt, recovery: recovery)
    }

    // MARK: The primary fails

    /// Stops using the primary source after an error. A mirror then defines the file, or continues the download.
    /// Without a usable mirror, the transfer fails.
    mutating func primaryFailed(
        _ error: TowlineError, _ evidence: inout TransferEvidence, _ ledger: RangeLedger,
        _ patience: inout TransferPatience
    ) -> Reaction {
        guard primary.leftOut == nil else { return [] }
        primary.leftOut = error
        guard !mirrors.isEmpty else { return Reaction([], .sourcesFailed(error)) }
        // The primary can no longer confirm a change that it claimed.
        if !ledger.written.isEmpty { evidence.changes.forgetClaim() }
        guard evidence.beginsAnew(ledger) || evidence.mirrorRung(ledger) != nil,
            mirrors.contains(where: { $0.leftOut == nil })
        else { return Reaction([], .sourcesFailed(error)) }
        patience.failures = 0
        primary.notBefore = nil
        return Reaction([.notice(.leftOut(primary.url, error.message))])
    }

    /// Replaces a primary source that failed or has to wait with a mirror that may get a request earlier. Called while
    /// no attempt runs and no bytes are written. Does nothing until all attempts at mirrors have ended, which refer to
    /// mirrors by index.
    mutating func askAnother(
        _ evidence: inout TransferEvidence, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        guard work.attempts.allSatisfy({ $0.plan.source == .primary }) else { return [] }
        let notBefore = max(primary.notBefore ?? .zero, context.hostNotBefore ?? .zero)
        let candidates = mirrors.indices.filter { mirrors[$0].leftOut == nil }
        func order(_ index: Int) -> (Duration, Int) {
            (max(context.now, mirrors[index].notBefore ?? .zero), mirrors[index].failures)
        }
        guard let next = candidates.min(by: { order($0) < order($1) }) else {
            return Reaction([], primary.leftOut.map { .sourcesFailed($0) })
        }
        let isEarlier = mirrors[next].notBefore ?? .zero < notBefore
        guard isEarlier || primary.leftOut != nil else { return [] }
        primary.notBefore = notBefore
        return Reaction(promote(next, &evidence, &work))
    }

    /// Delays the next request to the primary source, longer after each failure.
    mutating func waitForPrimary(_ context: TransferContext) {
        primary.failures += 1
        primary.notBefore = context.now + terms.retry.backoff.delay(failures: primary.failures, jitter: context.jitter)
    }

    /// Makes the mirror at `index` the primary source, whose responses define the file.
    mutating func promote(
        _ index: Int, _ evidence: inout TransferEvidence, _ work: inout TransferWork
    ) -> [TransferAction] {
        swap(&primary, &mirrors[index])
        mirrors[index].resolved = mirrors[index].url
        redirects.pending = nil
        // The knowledge about ranges concerns the previous server.
        evidence.ranges.forgetServer()
        // The knowledge about sharing its connections does as well.
        work.needsOwnConnection = true
        work.isSingle = terms.options.isSequential || terms.isStream
        return [.notice(TransferNotice(.info, .retrying, "switching to another source of the file: \(primary.url)"))]
    }
}
