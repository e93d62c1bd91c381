/// A state machine for one transfer, as a value: it takes events, returns actions, and uses no socket, file or clock.
///
/// Phases: `idle → running ⇄ preparing → … → verifying → publishing → ended`, and `draining` while attempts must end:
/// the file is not verified, published or replaced while an attempt may still write.
package struct TransferStateMachine: Sendable {
    let terms: TransferTerms
    package internal(set) var phase = TransferPhase.idle
    var sources: TransferSources
    var evidence: TransferEvidence
    var work: TransferWork
    var patience: TransferPatience
    /// The result of the transfer; `nil` until it ends.
    var ending: TransferEnding?
    /// The time of the current event on the monotonic clock.
    var now = Duration.zero
    /// The random number of the current event, in 0 ..< 1, which varies the waits before retries.
    var jitter = 0.5

    /// Creates a state machine. `firstID`: the identifier of the first attempt; later ones count up, so give each
    /// transfer of a process its own block. `hostCeiling`: the number of connections that the host is known to allow;
    /// `hostUsual`: the number that paid off at this host before; `nil` if unknown.
    package init(terms: TransferTerms, firstID: UInt64 = 1, hostCeiling: Int? = nil, hostUsual: Int? = nil) {
        self.terms = terms
        sources = TransferSources(terms)
        evidence = TransferEvidence(terms)
        let isSingle = terms.options.isSequential || terms.isStream
        let budget = ConnectionBudget(
            requested: isSingle ? 1 : terms.options.connections, hostCeiling: terms.mirrors.isEmpty ? hostCeiling : nil,
            usual: hostUsual)
        work = TransferWork(terms: terms, nextID: firstID, budget: budget, isSingle: isSingle)
        patience = TransferPatience(terms)
    }

    /// Handles one event of the transfer and returns the actions that the caller performs in order.
    package mutating func handle(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        guard phase != .ended else { return [] }
        sources.redirects.pending?.isNew = false
        var actions = follow(context)
        actions += act(on: event, context)
        if [.running, .publishing].contains(phase) || phase.isPreparing,
            let error = work.ledger.tooLarge(evidence.representation?.completeLength, terms)
        {
            return fail(error)
        }
        // If no bytes can be joined, planning starts over, and a second pass plans the new download.
        for _ in 0..<2 where phase == .running { actions += plan(context) }
        return actions
    }

    private mutating func act(on event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        switch event {
        case .begin(let held): return begin(held, context)
        case .takenOver(let plan, let startedAt): return takeOver(plan, startedAt, context)
        case .answered(let id, let verdict): return answered(id, verdict, context)
        case .ended(let id, let result): return ended(id, result, context)
        case .prepared: return prepared(context)
        case .storageFailed(let error): return fail(error)
        case .partLost(let reason):
            guard phase.needsPart, !evidence.part.isReplaced else { return [] }
            fallthrough
        case .partDamaged(let reason): return startOver(Restart(reason: reason, areBytesWrong: true))
        case .tick:
            guard phase == .running else { return [] }
            return patience.announceSilence(work, context)
                + perform(patience.endStalled(&evidence, &sources, &work, context))
        case .checkpointed(let durable):
            work.ledger.markDurable(durable)
            return []
        case .checkpointFailed(let durable, let error):
            // Publishing syncs again, detects failures of earlier syncs, and ends with the journal closed.
            guard phase != .publishing else { return [] }
            return perform(patience.lostBytes(except: durable, error, evidence.part.makeRoom(error, phase), &work))
        case .verified(let mismatches): return verified(mismatches)
        case .published: return end(.finished)
        case .networkChanged(let network):
            let isNews = patience.replaceNetwork(network) && phase == .running
            return isNews ? patience.networkReturned(&sources, &work, &evidence, context) : []
        case .wanted(let ranges):
            work.wanted = ranges
            return []
        // The few steps of publishing are better finished than left to the next run.
        case .stop: return phase == .publishing ? [] : drain(.end(.stopped))
        }
    }

    /// Performs the actions of a reaction, and the step that follows them.
    mutating func perform(_ reaction: Reaction) -> [TransferAction] {
        switch reaction.next {
        case nil: break
        case .prepare(let id): phase = .preparing(id)
        case .downloadMore: phase = .running
        case .drain(let goal): return reaction.actions + drain(goal)
        case .startOver(let restart): return reaction.actions + startOver(restart)
        case .retry(let plan, let failure):
            let context = TransferContext(now: now, jitter: jitter)
            return reaction.actions + perform(patience.notTheFile(plan, failure, &evidence, &sources, &work, context))
        case .confirm(let reason): return reaction.actions + patience.waitToConfirm(reason, &sources.primary, now: now)
        case .primaryFailed(let error): return reaction.actions + primaryFailed(error)
        case .sourcesFailed(let error): return reaction.actions + failSources(error)
        case .fail(let error): return reaction.actions + fail(error)
        case .failAside(let error):
            phase = .draining(.end(.failed(error)))
            return reaction.actions + (terms.isStream ? [] : [.setAside]) + drained()
        }
        return reaction.actions
    }

    /// Records the progress of each attempt, and how the number of connections affects the rate.
    private mutating func follow(_ context: TransferContext) -> [TransferAction] {
        (now, jitter) = (context.now, context.jitter)
        let step = work.follow(context)
        for source in step.sources { patience.noteProgress(at: source, &sources) }
        if step.isJoined, evidence.part.isAhead(work.ledger) { evidence.changes.noteJoined() }
        var actions: [TransferAction] = step.hasClaims ? evidence.part.announceResuming() : []
        if evidence.isConfirmed, !work.isSingle { work.measure(step, context) }
        if phase == .running { actions += evidence.part.removeEarlier(ifReplacedBy: work.ledger.durable.count) }
        return evidence.part.proves(work.ledger.written) ? actions + [.adoptPart] : actions
    }

    // MARK: Beginning

    /// Begins the transfer, or adopts the bytes of an earlier one (`held`), perhaps found only when the first response
    /// gave the file name.
    private mutating func begin(_ held: HeldDownload?, _ context: TransferContext) -> [TransferAction] {
        phase = .running
        work.pace.lastWrittenAt = context.now
        guard let held else { return [] }
        var actions: [TransferAction] = []
        for attempt in work.attempts { actions += work.dismiss(attempt.id) }
        return actions + evidence.adopt(held, &work.ledger)
    }

    /// Adopts a first request that was sent before this state machine was created (`SmallFilePolicy`).
    private mutating func takeOver(
        _ plan: AttemptPlan, _ startedAt: Duration, _ context: TransferContext
    ) -> [TransferAction] {
        let actions = begin(nil, context)
        evidence.linked = plan.question.linked
        sources.redirects.hasLeftTLS = plan.chain.contains { $0.scheme == .https }
        work.begin(plan, at: startedAt, lastProgressAt: context.now)
        return actions
    }

    private mutating func prepared(_ context: TransferContext) -> [TransferAction] {
        evidence.part.exists = true
        evidence.part.noteReplaced()
        guard case .preparing(let id) = phase else { return [] }
        phase = .running
        // The time for creating the part file does not count as a stall of the server.
        work.pace.lastWrittenAt = context.now
        guard let id, work.attempts.change(id, { $0.lastProgressAt = context.now }) != nil else { return [] }
        return [.proceed(id)]
    }

    // MARK: Beginning again

    /// Begins again at the first byte, with a notice that states the reason. No new byte is joined to the written ones.
    mutating func startOver(_ restart: Restart) -> [TransferAction] {
        if case .draining(.end) = phase { return [] }
        let held = work.ledger.written.count
        if let error = evidence.changes.countRestart(restart, holdsBytes: held > 0, terms) { return fail(error) }
        patience.wait(before: restart, discards: evidence.changes.discards, &sources, jitter: jitter, now: now)
        evidence.part.replacement = restart.replacement
        guard held > 0 || restart.isChange else { return drain(.restart(keeper: restart.keeper)) }
        return [.notice(restart.notice(over: held))] + drain(.restart(keeper: restart.keeper))
    }

    /// Forgets the old file when all attempts except `keeper` have ended, and adopts the response of `keeper` as the
    /// new file; `nil`: a new request follows.
    private mutating func restart(_ keeper: AttemptID?) -> [TransferAction] {
        evidence.discard(&work.ledger)
        sources.forgetBytes()
        phase = .running
        guard let answer = evidence.changes.keptAnswer.take(), let keeper else { return [] }
        work.restart(keeper)
        let context = TransferContext(now: now)
        return perform(evidence.adoptWhole(keeper, answer, isBelieved: true, &sources, &work, context))
    }

    // MARK: Ending

    /// Stops using the primary source after an error. A mirror then defines the file, or continues the download.
    /// Without a usable mirror, the transfer fails.
    mutating func primaryFailed(_ error: TowlineError) -> [TransferAction] {
        perform(sources.primaryFailed(error, &evidence, work.ledger, &patience))
    }

    /// Fails because no source is left to ask, unless an earlier response whose end nobody confirmed can be the file.
    private mutating func failSources(_ error: TowlineError) -> [TransferAction] {
        if let actions = evidence.acceptUnproven(insteadOf: error, &work) { return actions }
        // No other source sent a byte after the mismatch of the primary's bytes, so the mismatch is the error. The
        // wrong file is set aside if no new part file was begun.
        guard let refutation = sources.refutation else { return fail(error) }
        return (evidence.part.isReplaced ? [.setAside] : []) + fail(refutation)
    }

    mutating func fail(_ error: TowlineError) -> [TransferAction] { drain(.end(.failed(error))) }

    /// Cancels every request except the one that a restart keeps. The step `goal` follows when they have ended.
    mutating func drain(_ goal: TransferGoal) -> [TransferAction] {
        // A stop or a failure replaces a milder goal of draining. No other goal replaces a stop or a failure.
        if case .draining(.end) = phase { return [] }
        phase = .draining(goal)
        var keeper: AttemptID?
        if case .restart(let id) = goal { keeper = id }
        return work.cancelAll(except: keeper) + drained()
    }

    /// Continues with the step that follows draining if no request is left to wait for.
    mutating func drained() -> [TransferAction] {
        guard case .draining(let goal) = phase else { return [] }
        if case .restart(let keeper) = goal {
            return work.attempts.allSatisfy { $0.id == keeper } ? restart(keeper) : []
        }
        guard work.attempts.isEmpty else { return [] }
        switch goal {
        case .finish where work.ledger.isWhole: return finish()
        // The digest of a response that ended meanwhile did not match, so bytes are missing again.
        case .finish, .resume, .restart: phase = .running
        case .resumeEarlier(let isOpen):
            evidence.discard(&work.ledger)
            sources.forgetBytes()
            phase = .preparing(nil)
            return [.resumeEarlier(isOpen: isOpen)]
        case .end(let ending): return end(ending)
        }
        return []
    }

    private mutating func end(_ ending: TransferEnding) -> [TransferAction] {
        (phase, self.ending) = (.ended, ending)
        return [.finish(ending)]
    }

    // MARK: Verification

    private mutating func finish() -> [TransferAction] {
        // If the checksum does not match, the next state is connecting.
        work.pace.lastReceivedAt = nil
        guard !evidence.checksums.isEmpty else { return publish() }
        phase = .verifying
        return [.verify(evidence.checksums, length: work.ledger.completeLength ?? 0)]
    }

    private mutating func publish() -> [TransferAction] {
        phase = .publishing
        let modified = evidence.representation?.lastModified
        return evidence.part.removeEarlier() + [.publish(length: work.ledger.completeLength ?? 0, modified: modified)]
    }

    private mutating func verified(_ mismatches: [ChecksumMismatch]) -> [TransferAction] {
        guard phase == .verifying else { return [] }
        if mismatches.isEmpty { return [.notice(.verified(evidence.checksums))] + publish() }
        if let notice = evidence.outranked(mismatches) { return [.notice(notice)] + publish() }
        return perform(evidence.refuted(by: mismatches, &sources, &work))
    }
}
