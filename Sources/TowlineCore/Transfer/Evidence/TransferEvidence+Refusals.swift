/// The reactions of a transfer to responses to range requests that repeat the validator only in weak form, or that
/// contain the whole file.
extension TransferEvidence {
    /// Handles a strong validator that is repeated only in weak form (`W/`): from now on, bytes before each resume
    /// point must be compared as well.
    mutating func weakened(
        _ id: AttemptID, _ reason: String, _ sources: inout TransferSources, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        guard !ranges.isWeakened, work.workingAtPrimary(context, besides: id) == 0 else {
            let mirrorsGoOn = sources.mirrorsGoOn(self, work.ledger)
            return ranges.rangeRefused(id, reason, mirrorsGoOn: mirrorsGoOn, &sources, &work, context)
        }
        ranges.isWeakened = true
        // Other attempts that have not delivered anything yet were requested on a stronger rung.
        var actions: [TransferAction] = []
        for attempt in work.live { actions += work.dismiss(attempt.id) }
        guard checksums.isEmpty, !terms.isStream else { return Reaction(actions) }
        var lost = work.ledger.written
        lost.subtract(work.ledger.written.weaklyBelieved(of: representation))
        for range in lost.ranges { work.giveUp(range) }
        return Reaction(actions + lost.ranges.map { .withdraw($0) })
    }

    /// Handles a response with the whole file to a range request although the file has not changed: repeats the request
    /// without `If-Range`, then starts over with the whole file.
    mutating func rangesIgnored(
        _ id: AttemptID, _ facts: ResponseFacts, _ sources: inout TransferSources, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        guard let attempt = work.attempts[id] else { return [] }
        if attempt.plan.question.rung == .ifRange, !ranges.dislikesIfRange {
            // Rung 2: the same request without If-Range.
            ranges.dislikesIfRange = true
            return Reaction(work.dismiss(id))
        }
        if let reaction = continueHeld(id, facts, &sources, &work, context) { return reaction }
        let others = work.workingAtPrimary(context, besides: id)
        if others > 0 {
            ranges.refusals += 1
            let actions = work.dismiss(id)
            ranges.goOnWith(others, &sources, &work, context)
            return Reaction(actions)
        }
        if sources.mirrorsGoOn(self, work.ledger) {
            return Reaction(work.dismiss(id), .primaryFailed(.unusable(sources.primary.url, StartOverReason.noRanges)))
        }
        let isPlain = attempt.plan.question.asked == .whole
        if ranges.doubt.mayHavePassed(facts, hadRanges: ranges.support == .works), isPlain {
            ranges.doubt.asksAgain = true
            return Reaction(work.dismiss(id))
        }
        if let reaction = weigh(id, facts, &work) { return reaction }
        changes.keptAnswer = facts
        if isPlain, !ranges.doubt.isCertain {
            // The request had no Range, so the next request after a break asks for a range again.
            let reason = "the server repeatedly refused to send only the missing part, and sends the whole file instead"
            return Reaction([], .startOver(Restart(reason: reason, keeper: id)))
        }
        ranges.support = .broken
        work.isSingle = true
        ranges.hasAnnouncedRestart = true
        let text =
            "\(StartOverReason.noRanges). Continuing with a single connection; an interrupted download cannot be resumed"
        let reason = "the server sent the whole file although only the missing part was requested"
        return Reaction(
            [.notice(TransferNotice(.warning, .singleStream, text))],
            .startOver(Restart(reason: reason, keeper: id)))
    }
}
