/// The reactions of a transfer to responses that define its file, continue it, or show another version of it.
extension TransferEvidence {
    /// Records that a response is accepted, and the names of its fields with checksums, for error messages.
    mutating func accept(
        _ id: AttemptID, _ facts: ResponseFacts, _ work: inout TransferWork, _ context: TransferContext
    ) {
        work.budget.serves(work.attempts.count { $0.id == id || $0.isAccepted && !$0.isDismissed })
        work.attempts.change(id) {
            $0.acceptedAt = context.now
            // The time before the response does not count for the rate.
            $0.rates.recent.reset()
            $0.digestField = facts.contentDigests.first?.field
        }
        digests.areSent = digests.areSent || !facts.contentDigests.isEmpty
        for digest in facts.wholeDigests { digests.fields[digest.checksum] = digest }
    }

    /// Accepts a response that contains the requested range of the file, so that its body is written.
    mutating func acceptPartial(
        _ id: AttemptID, _ range: ByteRange, _ facts: ResponseFacts, _ sources: inout TransferSources,
        _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        guard let plan = work.attempts[id]?.plan else { return [] }
        accept(id, facts, &work, context)
        ranges.support = .works
        ranges.doubt = RangeDoubt()
        ranges.refusals = 0
        changes.confirmations = 0
        if plan.isConfirmation {
            changes.noteFlip()
            work.isSingle = work.isSingle || sources.mirrors.isEmpty
        }
        if plan.question.rung > .repeatedValidator { joinedWeakly = true }
        work.setBound(of: id, to: range.upperBound)
        if work.ledger.completeLength == nil, let length = facts.representation.completeLength {
            work.ledger.learn(completeLength: length)
        }
        guard representation != nil, part.exists, !part.isReplaced else {
            return adoptFirst(id, facts, &sources, &work)
        }
        var actions: [TransferAction] = []
        if representation?.completeLength == nil, let length = facts.representation.completeLength {
            representation?.completeLength = length
            actions.append(learnAction())
        }
        isConfirmed = true
        sources.primary.failures = 0
        sources.primary.resolved = plan.url
        if !plan.joinsDirectly { actions.append(.proceed(id)) }
        return Reaction(actions)
    }

    /// Adopts the first response since the transfer began or restarted, which defines the file's length and validators.
    private mutating func adoptFirst(
        _ id: AttemptID, _ facts: ResponseFacts, _ sources: inout TransferSources, _ work: inout TransferWork
    ) -> Reaction {
        if let reaction = weigh(id, facts, &work) { return reaction }
        adopt(id, facts, &sources, work)
        if facts.contentCoding != nil {
            ranges.support = .broken
            work.isSingle = true
        }
        return Reaction(preparing(id, facts, sources, work), .prepare(id))
    }

    /// Adopts a response that contains the complete file from its first byte. `hasBody` is `false` for an empty file.
    ///
    /// - Parameter isBelieved: `true` if it is decided that the response may replace held bytes.
    mutating func adoptWhole(
        _ id: AttemptID, _ facts: ResponseFacts, hasBody: Bool = true, isBelieved: Bool = false,
        _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) -> Reaction {
        if !isBelieved, let reaction = weigh(id, facts, &work) { return reaction }
        changes.forgetClaim()
        accept(id, facts, &work, context)
        var facts = facts
        if facts.representation.completeLength == nil {
            let held = atStake(work.ledger)?.representation
            facts.representation.completeLength = changes.noteKnownLength(for: facts, over: held, terms)
        }
        adopt(id, facts, &sources, work)
        if let length = facts.representation.completeLength { work.ledger.learn(completeLength: length) }
        // A response to a request without Range does not disprove ranges that worked before.
        let plan = work.attempts[id]?.plan
        let isPlain = plan?.question.asked == .whole
        let keepsRanges = ranges.support == .works && isPlain && !ranges.doubt.isCertain
        if facts.contentCoding != nil {
            ranges.support = .broken
        } else if ranges.support != .broken, !keepsRanges {
            ranges.support = facts.acceptsRanges == true ? .claimed : ranges.doubt.isCertain ? .broken : .unknown
        }
        ranges.doubt = RangeDoubt()
        // A server that ignores `bytes=0-` but announces range support may send other ranges (RFC 9110 §14.2). A plain
        // response is not cut for another connection, whose request may be refused again.
        let mayGrow = plan?.isConfirmation == true && ranges.support == .works || ranges.support == .claimed && !isPlain
        if !mayGrow { work.isSingle = true }
        let actions = preparing(id, facts, sources, work)
        guard !hasBody else { return Reaction(actions, .prepare(id)) }
        work.attempts.change(id) { $0.isDismissed = true }
        work.ledger.release(id)
        return Reaction([.cancel(id)] + actions, .prepare(nil))
    }

    private mutating func adopt(
        _ id: AttemptID, _ facts: ResponseFacts, _ sources: inout TransferSources, _ work: TransferWork
    ) {
        // A reader may already know the previous representation, even if none of its bytes arrived.
        if let last = changes.lastAdopted,
            last.strongValidator == nil || last.strongValidator != facts.representation.strongValidator
                || last.completeLength != facts.representation.completeLength
        {
            part.generation += 1
        }
        existing = nil
        changes.lastAdopted = facts.representation
        representation = facts.representation
        sources.primary.failures = 0
        coding = ContentCoding(name: facts.contentCoding, label: CodingLabel(facts))
        fileName = facts.fileName
        isConfirmed = true
        if let url = work.attempts[id]?.plan.url { sources.primary.resolved = url }
        if !terms.isStream { checksums = SmallFilePolicy.checksums(besides: checksums, facts) }
    }

    private mutating func preparing(
        _ id: AttemptID, _ facts: ResponseFacts, _ sources: TransferSources, _ work: TransferWork
    ) -> [TransferAction] {
        var plan = PreparePlan(
            representation: facts.representation, fileName: facts.fileName, checksums: checksums,
            isReplacement: part.exists, resolved: sources.primary.resolved, lacksRanges: lacksRanges)
        plan.keepsReplaced = part.exists && part.keepsReplaced
        let url = work.attempts[id]?.plan.url ?? sources.primary.resolved
        let isNamed = terms.fileName != nil || terms.isStream || part.exists
        let notices = [TransferNotice.savedAsReceived(facts), isNamed ? nil : SafeFileName.notice(facts, from: url)]
        return notices.compactMap { $0.map { .notice($0) } } + announceStartingOver(work.ledger) + [.prepare(plan)]
    }

    /// Returns the action that stores the known metadata and checksums of the file in the journal.
    func learnAction() -> TransferAction { .learn(representation ?? Representation(), checksums) }
}
