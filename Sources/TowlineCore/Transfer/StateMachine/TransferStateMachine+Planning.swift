/// Functions that choose the next requests of a running transfer, follow redirects, and notice when all bytes are
/// written.
extension TransferStateMachine {
    /// Returns the actions that start the requests that should run now, or that finish a complete file. Idempotent.
    mutating func plan(_ context: TransferContext) -> [TransferAction] {
        if evidence.part.exists, !evidence.part.isReplaced, work.ledger.isWhole {
            return work.awaitsDigests(evidence) ? [] : drain(.finish)
        }
        if let ceiling = context.hostCeiling, ceiling < work.budget.ceiling, sources.mirrors.isEmpty {
            work.budget.lower(to: ceiling, now: context.now, recovery: nil)
        }
        var actions = work.stopRelieved(context) + dismissBeaten(context)
        work.reclaim()
        actions += planNext(context)
        return actions + work.hold(context)
    }

    private mutating func planNext(_ context: TransferContext) -> [TransferAction] {
        let asksPrimary = sources.mayAskPrimary(context)
        if work.liveCount == 0, beginsAnew, !asksPrimary {
            let another = perform(sources.askAnother(&evidence, &work, context))
            if !another.isEmpty || sources.primary.leftOut != nil { return another }
        }
        guard asksPrimary || sources.mayAskMirror(evidence, work, context) else {
            work.waitsForTurn = false
            return work.liveCount == 0 ? perform(patience.waitForHost(&sources, context)) : []
        }
        guard work.liveCount > 0 else {
            // A dismissed attempt may still write to a stream.
            if terms.isStream, !work.attempts.isEmpty { return [] }
            // More transfers may share connections than may have their own, and one that shares may later need its own.
            let lacksConnection = !context.mayConnect && sharing(context) == .none
            work.waitsForTurn = sources.redirects.pending?.isNew ?? false || !context.hasSlot || lacksConnection
            if asksPrimary { sources.primary.notBefore = nil }
            return work.waitsForTurn ? [] : startSole(context)
        }
        guard evidence.isConfirmed, !work.isSingle, evidence.mayBeSegmented(work.ledger) else { return [] }
        return SegmentPlanner(sources: sources, evidence: evidence, context: context).startFurther(&work)
    }

    /// Cancels requests whose assigned bytes others have written, as after a race. If a cancelled request would have
    /// received bytes that differ from the written ones, later responses show the difference as well.
    private mutating func dismissBeaten(_ context: TransferContext) -> [TransferAction] {
        guard !evidence.needsWholeResponses else { return [] }
        var actions: [TransferAction] = []
        for attempt in work.beaten {
            // A server that responds only after another response has ended does not serve two connections.
            if work.isExperiment(attempt, context), !attempt.plan.isRace {
                let refusal = ConnectionRefusal(ConnectionRefusal.noData, isLimit: false)
                actions += perform(patience.giveBack(attempt, refusal, &evidence, &sources, &work, context))
            } else {
                actions += work.dismiss(attempt.id)
            }
        }
        return actions
    }

    /// `true` if the next request may share a connection with other transfers, because the file may be small.
    package var mayShare: Bool { !work.needsOwnConnection && !work.isSingle }

    /// Returns how the next request shares its connection with other transfers; `.none` if it has one of its own.
    private func sharing(_ context: TransferContext) -> ConnectionSharing {
        guard beginsAnew, mayShare else { return .none }
        return context.sharing.limited(ceiling: context.hostCeiling, connections: context.hostConnections)
    }

    /// Starts the only request: for the first missing bytes, or for the whole file if no bytes are written.
    private mutating func startSole(_ context: TransferContext) -> [TransferAction] {
        // While no attempt ran, no bytes could be written, which is not a stall.
        work.pace.lastWrittenAt = context.now
        if beginsAnew {
            let sharing = sharing(context)
            if evidence.part.exists { evidence.part.isReplaced = true }
            evidence.forgetRepresentation()
            sources.forgetSamples()
            evidence.part.giveUp(work.ledger)
            work.ledger = RangeLedger()
            evidence.isConfirmed = evidence.isConfirmed && evidence.ranges.support == .works
            let route = sources.redirects.takeFirst(sharing: sharing, context)
            return start(ByteRange(0, .max), via: route, context)
        }
        if evidence.changes.claim != nil, let gap = work.ledger.missing.first { return start(gap, context) }
        if let source = sources.next(evidence, work, context), source != .primary, let gap = work.ledger.missing.first {
            return start(gap, from: source, context)
        }
        guard evidence.joinRung(work.ledger) != nil else {
            if mirrorsGoOn { return [] }
            return startOver(Restart(reason: evidence.lackOfProof))
        }
        guard let gap = work.ledger.missing.first else { return [] }
        return start(gap, context)
    }

    /// Starts a request for the range `lease`; without a Range field if the last request was refused perhaps for it.
    mutating func start(
        _ lease: ByteRange, isRace: Bool = false, from source: SourceID = .primary,
        via route: SegmentPlanner.Route = .init(), _ context: TransferContext
    ) -> [TransferAction] {
        var route = route
        if source == .primary { route.isPlain = evidence.ranges.doubt.takePlain(beginsAnew: beginsAnew) }
        if source == .primary, evidence.changes.claim != nil {
            (route.isPlain, route.url) = (true, route.url ?? sources.primary.url)
        }
        return SegmentPlanner(sources: sources, evidence: evidence, context: context)
            .start(lease, isRace: isRace, from: source, via: route, &work)
    }

    /// The origin of the next request to the primary source.
    package var nextOrigin: HTTPURL.Origin { sources.redirects.pending?.url.origin ?? sources.primary.resolved.origin }

    /// Handles a redirect of an attempt: requests the target now or later, or fails if the redirect cannot be followed.
    mutating func redirected(
        _ attempt: RunningAttempt, _ location: String, _ linked: LinkedChecksum?, _ retryAfter: Duration?,
        _ context: TransferContext
    ) -> [TransferAction] {
        let plan = attempt.plan
        if retryAfter != nil, plan.source == .primary, RedirectPolicy.isSame(location, plan.url) {
            let reason = "the server redirects to the same URL again and asks to wait for the file"
            return perform(
                patience.busy(plan, reason, retryAfter, false, isOfHost: false, &evidence, &sources, &work, context))
        }
        let target: HTTPURL
        do throws(TowlineError) {
            target = try sources.target(of: location, after: plan)
        } catch {
            if work.isExperiment(attempt, context) {
                return perform(
                    patience.giveBack(attempt, ConnectionRefusal(error.message), &evidence, &sources, &work, context))
            }
            let actions = work.dismiss(attempt.id)
            guard case .mirror(let index) = plan.source else { return actions + primaryFailed(error) }
            return actions + perform(sources.leaveOut(index, error.message, &work))
        }
        if plan.source == .primary, linked != nil || plan.chain.isEmpty { evidence.linked = linked }
        // The lease may have been shortened since the request.
        let lease = work.ledger.lease(of: attempt.id) ?? plan.lease
        let route = sources.redirects.follow(
            plan, to: target, isFirst: isLedAtFirst(plan), mayShare: mayShare, context)
        var actions = work.dismiss(attempt.id)
        // A redirect response writes nothing, not even to a stream, and the next request takes over its lease.
        work.ledger.release(attempt.id)
        if !evidence.isConfirmed, let notice = RedirectPolicy.notice(from: plan.url, to: target) {
            actions.append(.notice(notice))
        }
        // The request that follows a plain one is plain as well.
        if plan.source == .primary, plan.question.asked == .whole { evidence.ranges.doubt.asksPlain = true }
        guard let route else { return actions }
        return actions + start(lease, isRace: plan.isRace, from: plan.source, via: route, context)
    }

    /// Returns the host that a redirect leads to, if it decides where the whole file is requested; otherwise `nil`. The
    /// context of the `answered` event must then describe that host (`TransferContext.elsewhere`).
    package func leads(_ id: AttemptID, _ verdict: ResponseVerdict) -> HTTPURL.Origin? {
        guard case .redirect(let location, _, let retryAfter) = verdict, let plan = work.attempts[id]?.plan,
            isLedAtFirst(plan), retryAfter == nil || !RedirectPolicy.isSame(location, plan.url)
        else { return nil }
        return try? sources.target(of: location, after: plan).origin
    }

    /// Returns whether a redirect of an attempt decides where the whole file is requested, because no bytes are
    /// written.
    private func isLedAtFirst(_ plan: AttemptPlan) -> Bool {
        guard phase == .running, let attempt = work.attempts[plan.id], !attempt.isDismissed else { return false }
        return plan.source == .primary && plan.mayBringWhole && beginsAnew
    }

    /// The proof that a mirror's bytes fit those of the primary source; `nil` without proof.
    var mirrorRung: ResponseQuestion.Rung? { evidence.mirrorRung(work.ledger) }
    /// `true` if there are no written bytes that another request could continue.
    package var beginsAnew: Bool { evidence.beginsAnew(work.ledger) }
    /// `true` if the download can continue without the primary source.
    var mirrorsGoOn: Bool { sources.mirrorsGoOn(evidence, work.ledger) }
}
