/// The reactions to the end of an attempt.
extension TransferStateMachine {
    static let endedEarly = "the server ended the response before all requested bytes arrived"

    mutating func ended(_ id: AttemptID, _ result: AttemptResult, _ context: TransferContext) -> [TransferAction] {
        guard let attempt = attempts.remove(id) else { return [] }
        ledger.release(id)
        if attempt.isAccepted, case .complete = result { hasCompleted = true }
        if !attempt.plan.isComparison, let rate = attempt.estimator.rate {
            typicalRate = max(rate, (typicalRate ?? 0) * 0.75)
        }
        if result.closesConnection(isAccepted: attempt.isAccepted) { budget.closed(now: context.now) }
        return noteSource(of: attempt) + follow(attempt, result, context)
    }

    private mutating func follow(
        _ attempt: Attempt, _ result: AttemptResult, _ context: TransferContext
    ) -> [TransferAction] {
        if case .sinkFailed(let error) = result { return fail(error) + drained() }
        if case .digestDiffers(let start) = result { return wrongContent(attempt, from: start) + drained() }
        if attempt.isDismissed || attempt.isDisbelieved { return drained() }
        if case .mirror(let index) = attempt.plan.source {
            return mirrorEnded(attempt, index, result, context) + drained()
        }
        switch result {
        case .complete(let framing): return completed(attempt, framing, context) + drained()
        case .stopped:
            tally.failures = 0
            return drained()
        case .failed(let failure): return failed(attempt, failure, context) + drained()
        case .overlapDiffers:
            if isOfAnotherVersion(attempt, context) {
                return giveBack(attempt, Refusal("the file on the server differs from the downloaded bytes"), context)
                    + drained()
            }
            return seamDiffers(attempt) + drained()
        case .needsOwnConnection:
            leaveShared(attempt, context)
            return drained()
        case .cancelled, .sinkFailed, .digestDiffers: return drained()
        }
    }

    private mutating func completed(
        _ attempt: Attempt, _ framing: AttemptEnd.Framing, _ context: TransferContext
    ) -> [TransferAction] {
        guard attempt.isAccepted else { return [] }
        if attempt.position > attempt.plan.lease.lowerBound { tally.failures = 0 }
        sharing = attempt.plan.sharing
        if ledger.completeLength != nil {
            // A closed connection ends a body only if nothing better gives its length. A response without bytes is no
            // progress, even if its framing is complete.
            let isShort = !ledger.missing.isEmpty && attempt.position < attempt.plan.lease.upperBound
            let isEmpty = attempt.position == attempt.plan.lease.lowerBound
            guard isShort, framing != .delimited || isEmpty else { return [] }
            if isEmpty, framing == .delimited, goesOnWithoutOverlap(after: attempt) { return [] }
            return failed(attempt, TransportFailure(.bodyCut, Self.endedEarly), context)
        }
        let cut = TransportFailure(.bodyCut, Self.endedEarly)
        // A 206 response with `*` as the length ends as announced. The bytes after it are requested next.
        guard ranges != .works || attempt.plan.question.asked == .whole else {
            return attempt.received == 0 ? failed(attempt, cut, context) : []
        }
        if framing != .delimited, attempt.position < minimumLength ?? 0 { return failed(attempt, cut, context) }
        if framing.needsProof, let actions = unprovenEnd(attempt, framing) { return actions }
        ledger.learn(completeLength: attempt.position)
        representation?.completeLength = attempt.position
        return [learnAction()]
            + noticeWithoutLength(attempt.position, framing)
    }

    /// Returns a notice that nothing proves the length of the file; empty if the way in which the body ended proves it.
    func noticeWithoutLength(_ length: Int64, _ framing: AttemptEnd.Framing) -> [TransferAction] {
        let notice = TransferNotice.withoutLength(length, framing, isIgnored: terms.ignoresLength)
        return notice.map { [.notice($0)] } ?? []
    }

    private mutating func failed(
        _ attempt: Attempt, _ failure: TransportFailure, _ context: TransferContext
    ) -> [TransferAction] {
        // The transport falls back to HTTP/1.1 once for each host, so the next attempt does not repeat this failure.
        let changesProtocol = failure.kind == .http2Failed
        let reason =
            TerminalSafeText.make(failure.message, width: 200)
            + (changesProtocol ? ". Using HTTP/1.1 for this host from now on" : "")
        if attempt.isAccepted, attempt.position > attempt.plan.lease.lowerBound {
            // The attempt delivered bytes, so the next one starts at its position without a wait.
            tally.failures = 0
            primary.tries = 0
            notBefore = nil
            guard liveCount == 0 || changesProtocol else { return [] }
            if let actions = lostBreak(reason, at: attempt.position, context) { return actions }
            return [.notice(TransferNotice(.info, .retrying, "\(reason). Reconnecting now to continue the download"))]
        }
        if changesProtocol { return [.notice(TransferNotice(.info, .retrying, reason))] }
        if attempt.plan.sharesConnection, saysNothing(failure.kind, of: attempt.plan.sharing) {
            leaveShared(attempt, context)
            return []
        }
        if !attempt.isAccepted, isExperiment(attempt, context) {
            return giveBack(attempt, Refusal(failure, reason), context)
        }
        let working = workingAtPrimary(context)
        if working > 0 {
            if RetryPolicy.mayBeTooMany(failure.kind) { limitConnections(to: working, context) }
            notBefore = context.now + terms.retry.backoff.delay(failures: 1, jitter: context.jitter)
            waitsForServer = false
            return []
        }
        if failure.kind == .closedBeforeHead, doubtsRange(attempt, passes: true, context) { return [] }
        // The response head was accepted, so the failure concerns the body.
        let kind = failure.kind == .malformed && attempt.isAccepted ? .bodyCut : failure.kind
        switch RetryPolicy.classify(kind) {
        case .permanent(let code): return primaryFailed(TowlineError(code, "\(attempt.plan.url): \(reason)"))
        case .transient(let limit):
            return failedAttempt(
                reason, nil, RetryPolicy.exhausted(kind), limit: limit,
                isTooMany: RetryPolicy.mayBeTooMany(kind), context)
        }
    }

    /// Makes the next request use a connection of its own, because the shared one of `attempt` failed or the file is
    /// not small.
    private mutating func leaveShared(_ attempt: Attempt, _ context: TransferContext) {
        needsOwnConnection = true
        if attempt.plan.question.asked == .whole { rangeDoubt.asksPlain = true }
        // A redirecting link may be valid only once, so its target is kept for the next request.
        guard !attempt.plan.chain.isEmpty, beginsAnew else { return }
        pendingRedirect = PendingRedirect(url: attempt.plan.url, chain: attempt.plan.chain, since: context.now)
    }

    /// Returns whether a failure on a shared connection says nothing about this file, so that it does not count. The
    /// end or stall of a connection affects all its streams (RFC 9113 §6.8). If several connections begin together
    /// (`sharing`), the server may not want all of them.
    private func saysNothing(_ kind: TransportFailure.Kind, of sharing: ConnectionSharing) -> Bool {
        switch kind {
        case .closedBeforeHead, .streamRefused, .headTimedOut, .bodyCut: true
        case .connectFailed, .connectTimedOut, .tlsFailed: sharing == .several
        default: false
        }
    }

    /// The number of tries that a transfer keeps for the time after other transfers of the process have released the
    /// connections that a server allows.
    private static let triesAfterOthers = 3

    /// Counts an attempt that received no bytes, and waits before the next one, or fails with `code`. `wait`: the wait
    /// that the server requested. `limit`: the maximum number of tries before the first byte; `nil`: only the user's
    /// limit.
    ///
    /// - Parameter isTooMany: `true` if the failure is typical of one connection too many. Other transfers of this
    ///   process that receive bytes from the host may use all allowed connections. This transfer must not fail because
    ///   they take long.
    mutating func failedAttempt(
        _ reason: String, _ wait: Duration?, _ code: TowlineError.Code, limit: Int? = nil, isTooMany: Bool = false,
        _ context: TransferContext
    ) -> [TransferAction] {
        // An outage breaks all connections within moments, which counts as one failure.
        if let notBefore, notBefore > context.now {
            // Each response states how long to wait; the longest wait counts.
            if let wait {
                self.notBefore = max(notBefore, context.now + wait)
                waitsForServer = true
            }
            return []
        }
        lastFailureAt = context.now
        var limit = ledger.written.isEmpty ? limit : nil
        if refutation != nil { limit = min(limit ?? .max, Self.triesAfterRefutation) }
        let allowed = terms.retry.allowedTries(limit: limit)
        let isCrowdedOut = isTooMany && context.othersWork && mirrors.isEmpty
        let most = isCrowdedOut ? allowed.map { $0 - Self.triesAfterOthers } : nil
        tally.failures = max(tally.failures, min(tally.failures + 1, most ?? .max))
        primary.failures += 1
        primary.tries += 1
        // Before the first byte, all sources are asked one after another, each with its own tries and waits.
        let isInTurn = beginsAnew && !mirrors.isEmpty
        let tried = isInTurn ? primary.tries : tally.failures
        if terms.retry.isExhausted(failures: tried, limit: limit) {
            let count = tried == 1 ? "1 attempt" : "\(tried) attempts"
            return primaryFailed(TowlineError(code, "\(primary.url): \(reason). \(count) failed"))
        }
        // Bytes from mirrors make up for a failure, but do not justify requests to the primary without a wait.
        let counted = isInTurn || mirrors.isEmpty ? tried : max(tried, primary.failures)
        let failures = isCrowdedOut ? primary.tries : counted
        let delay = max(terms.retry.backoff.delay(failures: failures, jitter: context.jitter), wait ?? .zero)
        notBefore = context.now + delay
        waitReason = reason
        if isCrowdedOut {
            waitReason += ", probably because other downloads use all connections that the server allows"
        } else if let allowed {
            waitReason += ", attempt \(tried) of \(allowed)"
        }
        waitsForServer = wait != nil
        if !mirrors.isEmpty, tally.failures < primary.failures, !beginsAnew { return [] }
        let who = mirrors.isEmpty ? "" : "\(primary.url): "
        // If another source is available, the next request may go there, and at another time.
        let asksAnother = beginsAnew && mirrors.contains { $0.leftOut == nil }
        let text = "\(who)\(waitReason)" + (asksAnother ? "" : "; retrying in \(DurationText.inSentence(delay))")
        return [.notice(TransferNotice(.info, .retrying, text))]
    }

    /// Starts the next attempt at once and resets the waits and counts of failures: failures on the old network say
    /// little about the new network. A wait that the server asked for stays, because it concerns the server.
    mutating func networkChanged() -> [TransferAction] {
        guard phase == .running, liveCount == 0, notBefore != nil, !waitsForServer else { return [] }
        (tally.failures, tally.discards) = (0, 0)
        notBefore = nil
        (primary.failures, primary.tries) = (0, 0)
        for index in mirrors.indices {
            (mirrors[index].failures, mirrors[index].tries, mirrors[index].notBefore) = (0, 0, nil)
        }
        let text = "the network connection of this machine changed. Reconnecting to the server now"
        return [.notice(TransferNotice(.info, .retrying, text))]
    }

    /// Discards the bytes that are not in `durable` after a failed sync: Linux may drop pages whose write-back failed.
    /// A second failed sync ends the transfer with `error`.
    mutating func lostBytes(_ durable: ByteRangeSet, _ error: TowlineError) -> [TransferAction] {
        tally.syncFailures += 1
        // The journal may claim more, but the last bytes of a copied part file are not trusted yet.
        var lost = ledger.written
        lost.subtract(durable)
        for range in lost.ranges { ledger.withdraw(range) }
        for index in attempts.indices { attempts[index].isDisbelieved = true }
        guard tally.syncFailures < 2 else { return fail(error) }
        let notice = TransferNotice(
            .warning, .disk,
            "\(error.message). The downloaded bytes that were not yet saved to disk are downloaded again")
        return [.notice(notice)] + drain(.resume)
    }
}
