/// The reactions of a transfer to connections that stall or are slow (docs/internals/slow-connections.md).
extension TransferPatience {
    /// Ends connections that stall, and those that are far slower than a new one is expected to be.
    mutating func endStalled(
        _ evidence: inout TransferEvidence, _ sources: inout TransferSources, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        var actions: [TransferAction] = []
        for attempt in work.attempts where !attempt.isDismissed {
            guard let limit = work.stallLimit(of: attempt, evidence, context) else { continue }
            guard context.now - attempt.lastProgressAt >= limit else {
                let timeout = terms.options.stallTimeout
                let text = work.attempts.change(attempt.id) {
                    $0.noteSilence(timeout, limit: limit, now: context.now)
                }
                guard let text = text ?? nil else { continue }
                waitReason = text
                actions.append(.notice(TransferNotice(.info, .waiting, text)))
                continue
            }
            var reaction = endStalled(attempt, limit, &evidence, &sources, &work, context)
            actions += reaction.actions
            // Other sources may have stalled as well.
            if case .primaryFailed(let error) = reaction.next {
                reaction = sources.primaryFailed(error, &evidence, work.ledger, &self)
                actions += reaction.actions
            }
            guard reaction.next == nil else { return Reaction(actions, reaction.next) }
        }
        return actions + endSlowest(&evidence, &sources, &work, context)
    }

    private mutating func endStalled(
        _ attempt: RunningAttempt, _ limit: Duration, _ evidence: inout TransferEvidence,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        if attempt.plan.source == .primary, work.isExperiment(attempt, context) {
            let refusal = ConnectionRefusal(ConnectionRefusal.noData)
            return giveBack(attempt, refusal, &evidence, &sources, &work, context)
        }
        // The other streams on a shared connection have stalled as well.
        let actions = work.dismiss(attempt.id) + work.stopSharing(attempt.plan)
        let reason = "no data received from the server for \(DurationText.inSentence(limit))"
        if case .mirror(let index) = attempt.plan.source {
            if attempt.position > attempt.plan.lease.lowerBound { sources.mirrors[index].failures = 0 }
            return actions + sources.postpone(index, reason, nil, &work, &self, context)
        }
        guard !isFruitless(attempt, work, context) else {
            return actions
                + countFailure(
                    Failure(reason: reason, cause: .responseTimedOut), evidence, &sources, work.ledger, context)
        }
        let text = "\(reason). Opening a new connection"
        return Reaction(actions + [.notice(TransferNotice(.info, .retrying, text))])
    }

    private mutating func endSlowest(
        _ evidence: inout TransferEvidence, _ sources: inout TransferSources, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        // Unless ranges are known to work, a new connection would begin at the first byte.
        guard evidence.ranges.support == .works || evidence.ranges.support == .claimed,
            evidence.joinRung(work.ledger) != nil,
            sources.mayAskPrimary(context) || sources.mayAskMirror(evidence, work, context),
            let slowest = work.slow.slowest(
                of: &work.attempts, work.ledger, typicalRate: work.pace.typicalRate,
                stallTimeout: terms.options.stallTimeout, now: context.now)
        else { return [] }
        let actions = replace(slowest, &evidence, sources, &work, context)
        let rate = ByteCountText.format(Int64(slowest.rates.average.rate ?? 0))
        guard isFruitless(slowest, work, context), slowest.plan.source == .primary else {
            let text = "a connection to the server is slow (\(rate)/s). Opening a new connection"
            return Reaction(actions + [.notice(TransferNotice(.info, .retrying, text))])
        }
        let failure = Failure(
            reason: "the connection to the server is too slow (\(rate)/s)", cause: .responseTimedOut)
        return actions + countFailure(failure, evidence, &sources, work.ledger, context)
    }

    /// Starts a connection for the rest of a slow one, which continues until the new one delivers bytes.
    private func replace(
        _ slow: RunningAttempt, _ evidence: inout TransferEvidence, _ sources: TransferSources,
        _ work: inout TransferWork, _ context: TransferContext
    ) -> [TransferAction] {
        // Two attempts never write to a stream at once, nor do two sources if only a checksum proves the bytes.
        guard !terms.isStream, sources.mirrors.isEmpty, slow.position > slow.plan.lease.lowerBound,
            !evidence.needsWholeResponses, let rest = work.ledger.lease(of: slow.id), !rest.isEmpty
        else { return work.dismiss(slow.id) }
        work.ledger.shrink(slow.id, to: rest.lowerBound)
        let isPlain = evidence.ranges.doubt.takePlain(beginsAnew: evidence.beginsAnew(work.ledger))
        return SegmentPlanner(sources: sources, evidence: evidence, context: context)
            .start(rest, via: .init(isPlain: isPlain), &work)
    }

    /// Returns whether an attempt that ends now counts as a failure: it wrote no byte, no attempt did for a stall
    /// timeout (the limit without a byte), and no failure was counted in that time. An outage thus counts once, not
    /// once for each connection. A stall on a shared connection says nothing about this file, whose next request has a
    /// connection of its own.
    func isFruitless(_ attempt: RunningAttempt, _ work: TransferWork, _ context: TransferContext) -> Bool {
        guard attempt.position <= attempt.plan.lease.lowerBound, !attempt.plan.sharesConnection else { return false }
        let isNew = lastFailureAt.map { context.now - $0 >= terms.options.stallTimeout } ?? true
        return isNew && work.hasNoRecentProgress(context)
    }
}
