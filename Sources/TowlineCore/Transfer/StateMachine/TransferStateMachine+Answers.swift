/// The reactions of a transfer to response heads. `ResponseEvaluator` has judged each head with a verdict.
extension TransferStateMachine {
    /// Handles the verdict on the response to an attempt, at the primary source or at a mirror.
    mutating func answered(
        _ id: AttemptID, _ verdict: ResponseVerdict, _ context: TransferContext
    ) -> [TransferAction] {
        guard phase == .running, let attempt = work.noteResponse(to: id, context.now) else { return [] }
        defer { if attempt.plan.isConfirmation, !verdict.isRedirect { evidence.changes.endClaim() } }
        if case .mirror(let index) = attempt.plan.source {
            if case .redirect(let location, _, _) = verdict, mirrorRung != nil {
                return redirected(attempt, location, nil, nil, context)
            }
            return perform(sources.answered(attempt, index, verdict, &evidence, &work, &patience, context))
        }
        // From a primary that is no longer used, only a fitting partial response counts.
        if sources.primary.leftOut != nil {
            guard case .partial = verdict else { return work.dismiss(id) }
        }
        if work.isExperiment(attempt, context), let refusal = ConnectionRefusal(verdict) {
            return perform(patience.giveBack(attempt, refusal, &evidence, &sources, &work, context))
        }
        let refused = RangeKnowledge.Refused(
            attempt, expirations: patience.expirations, evidence, sources, work, context)
        if evidence.ranges.blamesRange(verdict, refused, terms) {
            guard case .transient = verdict else { return work.dismiss(id) }
            // The server may want fewer streams on one connection.
            return work.dismiss(id) + work.stopSharing(attempt.plan)
        }
        return answeredByPrimary(attempt, verdict, context)
    }

    private mutating func answeredByPrimary(
        _ attempt: RunningAttempt, _ verdict: ResponseVerdict, _ context: TransferContext
    ) -> [TransferAction] {
        let id = attempt.id
        switch verdict {
        case .partial(let range, let facts):
            return perform(evidence.acceptPartial(id, range, facts, &sources, &work, context))
        case .whole(let facts): return perform(evidence.adoptWhole(id, facts, &sources, &work, context))
        case .empty(var facts):
            facts.representation.completeLength = 0
            return perform(evidence.adoptWhole(id, facts, hasBody: false, &sources, &work, context))
        case .complete(let length):
            work.ledger.learn(completeLength: length)
            evidence.representation?.completeLength = length
            return work.dismiss(id)
        case .askWithoutRange(let reason):
            return perform(
                evidence.ranges.withoutRange(id, reason, mirrorsGoOn: mirrorsGoOn, &sources, &work, context))
        case .changed(let reason, let facts, let isWhole):
            return perform(evidence.claimedChange(id, reason, facts, isWhole: isWhole, &sources, &work, context))
        case .rangeIgnored(let facts):
            return perform(evidence.rangesIgnored(id, facts, &sources, &work, context))
        case .rangeRefused(let reason): return rangeRefused(id, reason, context)
        case .notModified: return drain(.end(.upToDate))
        case .conditionRefused:
            // The next request has no condition. Without `If-Range`, rung 2 of the proof ladder applies.
            if evidence.existing == nil { evidence.ranges.dislikesIfRange = true }
            evidence.existing = nil
            return work.dismiss(id)
        case .weakened(let reason): return perform(evidence.weakened(id, reason, &sources, &work, context))
        case .redirect(let location, let linked, let retryAfter):
            return redirected(attempt, location, linked, retryAfter, context)
        case .linkExpired(let status, let error):
            return perform(
                patience.linkExpired(attempt.plan, "status \(status)", error, &evidence, &sources, &work, context))
        case .transient(let reason, let retryAfter, let overloaded, let status):
            return perform(
                patience.busy(
                    attempt.plan, reason, retryAfter, overloaded, isOfHost: status > 403, &evidence, &sources, &work,
                    context))
        case .webPage(let reason):
            return perform(patience.notTheFile(attempt.plan, .page(reason), &evidence, &sources, &work, context))
        case .permanent(let error):
            // After good responses, a single invalid response is a fault of that connection.
            if evidence.isConfirmed, error.code == .invalidResponse {
                return rangeRefused(id, error.message, context)
            }
            return work.dismiss(id) + primaryFailed(error)
        }
    }

    // MARK: Expired links and busy servers

    private mutating func rangeRefused(
        _ id: AttemptID, _ reason: String, _ context: TransferContext
    ) -> [TransferAction] {
        perform(evidence.ranges.rangeRefused(id, reason, mirrorsGoOn: mirrorsGoOn, &sources, &work, context))
    }
}
