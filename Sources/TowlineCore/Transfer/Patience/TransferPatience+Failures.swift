/// The reactions of a transfer to requests to the primary source that failed, were refused, or delivered fewer bytes
/// than requested.
extension TransferPatience {
    /// Handles the end of a response that is complete by its own framing: its end may give the length of the file, or
    /// bytes may be missing, so that the attempt counts as failed.
    mutating func completed(
        _ attempt: RunningAttempt, _ framing: AttemptEnd.Framing, _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        guard attempt.isAccepted else { return [] }
        if attempt.position > attempt.plan.lease.lowerBound { failures = 0 }
        work.sharing = attempt.plan.sharing
        let cut = TransportFailure(.bodyCut, TransferStateMachine.endedEarly)
        if work.ledger.completeLength != nil {
            // A closed connection ends a body only if nothing better gives its length. A response without bytes is no
            // progress, even if its framing is complete.
            let isShort = !work.ledger.missing.isEmpty && attempt.position < attempt.plan.lease.upperBound
            let isEmpty = attempt.position == attempt.plan.lease.lowerBound
            guard isShort, framing != .delimited || isEmpty else { return [] }
            if isEmpty, framing == .delimited,
                sources.goesOnWithoutOverlap(after: attempt, evidence, work.ledger)
            {
                return []
            }
            return failed(attempt, cut, &evidence, &sources, &work, context)
        }
        // A 206 response with `*` as the length ends as announced. The bytes after it are requested next.
        guard evidence.ranges.support != .works || attempt.plan.question.asked == .whole else {
            return attempt.received == 0 ? failed(attempt, cut, &evidence, &sources, &work, context) : []
        }
        if framing != .delimited, attempt.position < evidence.changes.minimumLength ?? 0 {
            return failed(attempt, cut, &evidence, &sources, &work, context)
        }
        if framing.needsProof,
            let reaction = evidence.unprovenEnd(attempt, framing, at: sources.primary.url, &work)
        {
            return reaction
        }
        work.ledger.learn(completeLength: attempt.position)
        evidence.representation?.completeLength = attempt.position
        return Reaction([evidence.learnAction()] + evidence.noticeWithoutLength(attempt.position, framing))
    }

    /// Handles a failed request to the primary source: the transfer retries, uses fewer connections, or stops using the
    /// source.
    mutating func failed(
        _ attempt: RunningAttempt, _ failure: TransportFailure, _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        // The transport falls back to HTTP/1.1 once for each host, so the next attempt does not repeat this failure.
        let changesProtocol = failure.kind == .http2Failed
        let reason =
            TerminalSafeText.make(failure.message, width: 200)
            + (changesProtocol ? ". Using HTTP/1.1 for this host from now on" : "")
        if attempt.isAccepted, attempt.position > attempt.plan.lease.lowerBound {
            return broke(attempt, reason, reports: changesProtocol, evidence, &sources, work, context)
        }
        if changesProtocol { return [.notice(TransferNotice(.info, .retrying, reason))] }
        if attempt.plan.sharesConnection, failure.saysNothing(of: attempt.plan.sharing) {
            leaveShared(attempt, &evidence, &sources, &work, context.now)
            return []
        }
        if !attempt.isAccepted, work.isExperiment(attempt, context) {
            return giveBack(
                attempt, ConnectionRefusal(failure, reason), &evidence, &sources, &work, context)
        }
        let working = work.workingAtPrimary(context)
        if working > 0 {
            if RetryPolicy.mayBeTooMany(failure.kind) {
                sources.limitConnections(to: working, &work.budget, context)
            }
            sources.primary.notBefore =
                context.now + terms.retry.backoff.delay(failures: 1, jitter: context.jitter)
            waitsForServer = false
            return []
        }
        if failure.kind == .closedBeforeHead,
            evidence.ranges.doubtsRange(
                RangeKnowledge.Refused(attempt, expirations: expirations, evidence, sources, work, context),
                passes: true, terms)
        {
            return []
        }
        // The response head was accepted, so the failure concerns the body.
        let kind = failure.kind == .malformed && attempt.isAccepted ? .bodyCut : failure.kind
        switch RetryPolicy.classify(kind) {
        case .permanent(let code):
            let cause = TowlineError.NetworkFailure(kind)
            return Reaction(
                [], .primaryFailed(TowlineError(code, "\(attempt.plan.url): \(reason)", networkFailure: cause)))
        case .transient(let limit):
            let isTooMany = RetryPolicy.mayBeTooMany(kind)
            let failure = Failure(
                reason: TerminalSafeText.make(failure.summary, width: 200),
                detail: failure.detail.map { " (\(TerminalSafeText.make($0, width: 200)))" } ?? "",
                code: RetryPolicy.exhausted(kind), cause: TowlineError.NetworkFailure(kind), limit: limit,
                isTooMany: isTooMany)
            return countFailure(failure, evidence, &sources, work.ledger, context)
        }
    }

    /// Handles the failure of an attempt that delivered bytes: the next one continues at the same offset without a
    /// wait.
    ///
    /// - Parameter reports: `true` if the user is notified although other attempts run.
    private mutating func broke(
        _ attempt: RunningAttempt, _ reason: String, reports: Bool, _ evidence: TransferEvidence,
        _ sources: inout TransferSources, _ work: TransferWork, _ context: TransferContext
    ) -> Reaction {
        failures = 0
        sources.primary.tries = 0
        sources.primary.notBefore = nil
        guard work.liveCount == 0 || reports else { return [] }
        let lost = lostBreak(reason, at: attempt.position, evidence, &sources, work, context)
        let text = "\(reason). Reconnecting now to continue the download"
        return lost ?? [.notice(TransferNotice(.info, .retrying, text))]
    }

    /// Handles a response that ended early and whose bytes cannot be joined to those of the next response.
    ///
    /// - Returns: `nil` if the next request can resume.
    mutating func lostBreak(
        _ reason: String, at position: Int64, _ evidence: TransferEvidence, _ sources: inout TransferSources,
        _ work: TransferWork, _ context: TransferContext
    ) -> Reaction? {
        let discards = evidence.changes.discards
        guard !terms.isStream, !sources.mirrorsGoOn(evidence, work.ledger), !work.ledger.isWhole,
            evidence.joinRung(work.ledger) == nil || discards > 1
        else { return nil }
        let canJoin = evidence.joinRung(work.ledger) != nil
        return countBreak(reason, at: position, canJoin: canJoin, discards: discards, &sources, context)
    }

    /// Makes the next request use a connection of its own, because the shared one of `attempt` failed or the file is
    /// not small.
    mutating func leaveShared(
        _ attempt: RunningAttempt, _ evidence: inout TransferEvidence, _ sources: inout TransferSources,
        _ work: inout TransferWork, _ now: Duration
    ) {
        work.needsOwnConnection = true
        if attempt.plan.question.asked == .whole { evidence.ranges.doubt.asksPlain = true }
        // A redirecting link may be valid only once, so its target is kept for the next request.
        guard !attempt.plan.chain.isEmpty, evidence.beginsAnew(work.ledger) else { return }
        sources.redirects.pending = PendingRedirect(
            url: attempt.plan.url, chain: attempt.plan.chain, since: now)
    }

    /// Ends an attempt on an additional connection that was refused. Its range returns to the running response, and
    /// fewer connections are used from now on. Running responses are not disturbed.
    mutating func giveBack(
        _ attempt: RunningAttempt, _ refusal: ConnectionRefusal, _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        var actions = work.dismiss(attempt.id)
        if refusal.mayBeIfRange, attempt.plan.question.rung == .ifRange, !evidence.ranges.dislikesIfRange {
            evidence.ranges.dislikesIfRange = true
            return Reaction(actions)
        }
        let isNew = work.further.countRejection(of: attempt, now: context.now)
        if refusal.isAboutRanges {
            evidence.ranges.refusals += 1
            let most = evidence.ranges.support == .works ? 4 : 2
            if sources.mirrors.isEmpty, evidence.ranges.refusals >= most { work.isSingle = true }
        }
        let wait = refusal.retryAfter ?? .zero
        guard refusal.isLimit || work.further.rejections > 1 else {
            let delay = terms.retry.backoff.delay(failures: work.further.rejections, jitter: context.jitter)
            sources.primary.notBefore = max(sources.primary.notBefore ?? .zero, context.now + max(delay, wait))
            waitsForServer = refusal.retryAfter != nil
            return Reaction(actions)
        }
        // Other requests sent at the same time may be accepted: the last response shows how many the server allows.
        let waiting = work.live.count { $0.plan.source == .primary && !$0.isAccepted }
        let working = max(1, work.workingAtPrimary(context)) + waiting
        // A server that still counts closed connections allows more.
        let allowed = sources.limitConnections(
            to: working, sentAt: attempt.startedAt, recovery: max(work.further.recovery, wait), &work.budget, context)
        guard allowed == working else { return Reaction(actions) }
        if isNew { work.further.lowerings += 1 }
        if refusal.concernsHost { actions.append(.report(.connections(working), of: attempt.plan.url.origin)) }
        guard waiting == 0 else { return Reaction(actions) }
        let text =
            "\(refusal.reason). Continuing with \(working) connection\(working == 1 ? "" : "s") to this server"
        return Reaction(actions + [.notice(TransferNotice(.info, .limited, text))])
    }

    /// Handles a successful response that is not the file, such as a web page or the text of an error. A link that
    /// worked before is requested again, once.
    mutating func notTheFile(
        _ plan: AttemptPlan, _ failure: Failure, _ evidence: inout TransferEvidence, _ sources: inout TransferSources,
        _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        if evidence.isConfirmed, plan.url != sources.primary.url, plan.chain.isEmpty, expirations == 0 {
            let error = TowlineError.unusable(plan.url, failure.reason)
            return linkExpired(plan, "it sends something else", error, &evidence, &sources, &work, context)
        }
        return work.dismiss(plan.id) + countFailure(failure, evidence, &sources, work.ledger, context)
    }

    /// Handles a refusal by a URL that worked before: a signed link has expired, or the server allows no further
    /// connection. `answer` names the response in the notice.
    mutating func linkExpired(
        _ plan: AttemptPlan, _ answer: String, _ error: TowlineError, _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        let wasElsewhere = plan.url != sources.primary.url
        let actions = work.dismiss(plan.id)
        // The refusal of another attempt at the old link has already caused a renewal.
        if plan.chain.isEmpty, plan.url != sources.primary.resolved { return Reaction(actions) }
        let others = work.workingAtPrimary(context)
        if others > 0 {
            let allowed = sources.limitConnections(to: others, &work.budget, context)
            return Reaction(actions + [.report(.connections(allowed), of: plan.url.origin)])
        }
        expirations += 1
        guard wasElsewhere, expirations <= 3 else { return Reaction(actions, .primaryFailed(error)) }
        sources.primary.resolved = sources.primary.url
        // While mirrors deliver bytes, the primary must not be asked repeatedly without a wait.
        if !sources.mirrors.isEmpty { sources.waitForPrimary(context) }
        let text =
            "the link no longer works (\(answer)). Requesting \(sources.primary.url) again to get a new link"
        return Reaction(actions + [.notice(TransferNotice(.info, .retrying, text))])
    }

    /// Handles a temporary refusal: waits and retries, or fails after too many tries. `retryAfter`: the wait that the
    /// server requested; if `isOfHost`, it applies to every download from the host. `overloaded`: the host wants fewer
    /// requests.
    mutating func busy(
        _ plan: AttemptPlan, _ reason: String, _ retryAfter: Duration?, _ overloaded: Bool, isOfHost: Bool,
        _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        let origin = plan.url.origin
        // Some servers count streams as connections, and without sharing there are at most sixteen connections.
        var actions = work.dismiss(plan.id) + work.stopSharing(plan)
        if isOfHost, let retryAfter { actions.append(.report(.leaveAlone(retryAfter), of: origin)) }
        let others = work.workingAtPrimary(context)
        if others > 0 {
            if overloaded {
                let allowed = sources.limitConnections(to: others, &work.budget, context)
                actions.append(.report(.connections(allowed), of: origin))
                guard allowed == others else { return Reaction(actions) }
                let text = "\(reason). Continuing with \(others) connection\(others == 1 ? "" : "s") to this server"
                actions.append(.notice(TransferNotice(.info, .limited, text)))
            } else {
                let delay = terms.retry.backoff.delay(failures: 1, jitter: context.jitter)
                sources.primary.notBefore = context.now + (retryAfter ?? delay)
                waitsForServer = retryAfter != nil
            }
            return Reaction(actions)
        }
        if overloaded { actions.append(.report(.overloaded, of: origin)) }
        if let retryAfter, let error = terms.tooLong(retryAfter, sources.primary.url) {
            return Reaction(actions, .primaryFailed(error))
        }
        let failure = Failure(reason: reason, wait: retryAfter, isTooMany: overloaded)
        return actions + countFailure(failure, evidence, &sources, work.ledger, context)
    }
}

extension RangeKnowledge.Refused {
    /// Creates the circumstances of a refused request. `expirations`: the number of times in a row that a link expired.
    init(
        _ attempt: RunningAttempt, expirations: Int, _ evidence: TransferEvidence, _ sources: TransferSources,
        _ work: TransferWork, _ context: TransferContext
    ) {
        let plan = attempt.plan
        let isExpired = plan.url != sources.primary.url && expirations == 0
        self.init(
            question: plan.question,
            isAlone: plan.source == .primary && work.live.allSatisfy { $0.id == attempt.id },
            beginsAnew: evidence.beginsAnew(work.ledger),
            isOldLink: isExpired || plan.url != sources.primary.resolved && plan.chain.isEmpty,
            mirrorsGoOn: sources.mirrorsGoOn(evidence, work.ledger),
            hasMirror: sources.mirrors.contains { $0.leftOut == nil }, othersWork: context.othersWork)
    }
}
