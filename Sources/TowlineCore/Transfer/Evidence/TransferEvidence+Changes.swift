/// The decision whether a response shows a new version of the file, which then replaces the held bytes or the finished
/// file (docs/http-rules.md, "Believing a change"). Captive portals, broken caches, and CDN nodes with tags of their
/// own all look like a change at first.
extension TransferEvidence {
    /// Decides whether a response may replace the held bytes or the finished file.
    ///
    /// - Parameter isWhole: `true` if the body of the response is the whole file.
    /// - Returns: `nil` if the response may be used.
    mutating func weigh(
        _ id: AttemptID, _ offer: ResponseFacts, isWhole: Bool = true, _ work: inout TransferWork
    ) -> Reaction? {
        // The server sends the replaced version again. Each connection may lead to a server with another version.
        if terms.changed != .fail, !changes.hasReturned, let isOpen = part.returns(to: offer, from: representation) {
            work.isSingle = work.isSingle || terms.mirrors.isEmpty
            let actions: [TransferAction] = work.dismiss(id) + [.notice(HeldPart.returnNotice)]
            if let error = changes.countReturn(terms) { return Reaction(actions, .fail(error)) }
            return Reaction(actions, .drain(.resumeEarlier(isOpen: isOpen)))
        }
        guard terms.changed != .accept, let plan = work.attempts[id]?.plan, var held = atStake(work.ledger),
            part.exists || offer.suggestion == nil || terms.fileName != nil,
            existing?.isCurrent(offer.representation, at: plan.url) != true
        else { return nil }
        held.count += part.earlier?.count ?? 0
        let next = changes.weigh(offer, isWhole: isWhole, to: plan, over: held, terms)
        return next.map { Reaction(work.dismiss(id), $0) }
    }

    /// Handles a response that shows another version of the file, if `weigh` allows that. A change with a new validator
    /// is confirmed by one more request at once: the nodes of a server may have different versions.
    mutating func claimedChange(
        _ id: AttemptID, _ reason: String, _ facts: ResponseFacts, isWhole: Bool, _ sources: inout TransferSources,
        _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        guard let attempt = work.attempts[id] else { return [] }
        let others = work.workingAtPrimary(context, besides: id)
        if others == 0, let reaction = weigh(id, facts, isWhole: isWhole, &work) { return reaction }
        // Other requests may have been sent before the first response showed that validators differ.
        let hadValidator = attempt.plan.question.known.map { $0.validator != .none } ?? false
        if terms.options.checksum != nil, !terms.isStream, hadValidator, others > 0 || !work.ledger.written.isEmpty {
            // The checksum of the whole file decides, whatever validators the nodes of a server send.
            ranges.ignoresValidators = true
            changes.forgetClaim()
            return Reaction(work.dismiss(id))
        }
        if others > 0 {
            // The running responses belong to one version, and another connection leads to another version.
            work.isSingle = work.isSingle || sources.mirrors.isEmpty
            changes.forgetClaim()
            let actions = work.dismiss(id)
            ranges.goOnWith(others, &sources, &work, context)
            return Reaction(actions)
        }
        let isAlone = work.ledger.written.isEmpty && work.liveCount == 1
        guard isAlone || terms.changed == .accept || changes.isBelieved(isConfirmation: attempt.plan.isConfirmation)
        else { return Reaction(work.dismiss(id)) }
        // The file changed again: each connection may lead to another node, and one connection keeps its node.
        if changes.restarts > 0, sources.mirrors.isEmpty { work.isSingle = true }
        guard isWhole else {
            return Reaction(work.dismiss(id), .startOver(Restart(reason: reason, isChange: true, waits: true)))
        }
        changes.keptAnswer = facts
        return Reaction([], .startOver(Restart(reason: reason, isChange: true, keeper: id)))
    }

    /// Continues the file with the response to a request that had to confirm a change, because the response has the
    /// held version after all. Its bytes up to the first missing one are compared with the held bytes.
    ///
    /// - Returns: `nil` if nothing proves that the response has the held version, or if it confirms no change.
    mutating func continueHeld(
        _ id: AttemptID, _ facts: ResponseFacts, _ sources: inout TransferSources, _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction? {
        guard let plan = work.attempts[id]?.plan, plan.isConfirmation, changes.claim != nil, !beginsAnew(work.ledger),
            facts.contentCoding == coding.name,
            representation?.repeatsValidator(of: facts.representation, weakly: true) ?? false
        else { return nil }
        accept(id, facts, &work, context)
        changes.noteFlip()
        work.isSingle = work.isSingle || sources.mirrors.isEmpty
        isConfirmed = true
        sources.primary.failures = 0
        sources.primary.resolved = plan.url
        return Reaction([.proceed(id)])
    }
}
