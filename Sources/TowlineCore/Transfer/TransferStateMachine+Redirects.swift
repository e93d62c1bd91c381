/// The handling of redirects.
extension TransferStateMachine {
    /// A redirect target that is still to be requested: its host has no free connection or asked for a pause, or a
    /// first request for it over a shared connection did not succeed.
    struct PendingRedirect: Sendable {
        let url: HTTPURL
        /// The URLs that redirected to `url`, in order.
        let chain: [HTTPURL]
        /// The time when the target was recorded.
        let since: Duration
        /// `true` in the step that recorded the target, whose context describes another host.
        var isNew = true

        /// The maximum age of a target. Signed links expire, so an older target is replaced by a new redirect.
        static let life = Duration.seconds(10)
    }

    /// The origin (scheme, host and port) of the next request to the primary source.
    package var nextOrigin: HTTPURL.Origin { pendingRedirect?.url.origin ?? resolved.origin }

    mutating func redirected(
        _ id: AttemptID, _ location: String, _ linked: LinkedChecksum?, _ retryAfter: Duration?,
        _ context: TransferContext
    ) -> [TransferAction] {
        guard let plan = attempts[id]?.plan else { return [] }
        if retryAfter != nil, plan.source == .primary, RedirectPolicy.isSame(location, plan.url) {
            let reason = "the server redirects to the same URL again and asks to wait for the file"
            return busy(id, reason, retryAfter, false, isOfHost: false, context)
        }
        let target: HTTPURL
        do throws(TowlineError) {
            target = try self.target(of: location, after: plan)
        } catch {
            if let attempt = attempts[id], isExperiment(attempt, context) {
                return giveBack(attempt, Refusal(error.message), context)
            }
            return dismiss(id) + refused(plan, error)
        }
        let isFirst = isLedAtFirst(plan)
        if plan.url.scheme == .https { hasLeftTLS = true }
        if plan.source == .primary, linked != nil || plan.chain.isEmpty { self.linked = linked }
        // The lease may have been shortened since the request.
        let lease = ledger.lease(of: id) ?? plan.lease
        var actions = dismiss(id)
        // A redirect response writes nothing, not even to a stream, and the next request takes over its lease.
        ledger.release(id)
        if !isConfirmed, let notice = RedirectPolicy.notice(from: plan.url, to: target) {
            actions.append(.notice(notice))
        }
        // The request that follows a plain one is plain as well.
        if plan.source == .primary, plan.question.asked == .whole { rangeDoubt.asksPlain = true }
        let chain = plan.chain + [plan.url]
        let sharing = isFirst && mayShare ? context.elsewhere.sharing : .none
        let isLeftAlone = context.elsewhere.notBefore ?? .zero > context.now
        if isFirst, isLeftAlone || sharing == .none && !context.elsewhere.mayConnect {
            pendingRedirect = PendingRedirect(url: target, chain: chain, since: context.now)
            return actions
        }
        return actions
            + start(
                lease, isRace: plan.isRace, from: plan.source, at: target, chain: chain, sharing: sharing, context)
    }

    private func target(of location: String, after plan: AttemptPlan) throws(TowlineError) -> HTTPURL {
        try RedirectPolicy.target(
            of: location, from: plan.url, chain: plan.chain, source: self[plan.source].url, terms)
    }

    /// Returns the host that a redirect leads to, if it decides where the whole file is requested; otherwise `nil`. The
    /// context of the `answered` event must then describe that host (`TransferContext.elsewhere`).
    package func leads(_ id: AttemptID, _ verdict: ResponseVerdict) -> HTTPURL.Origin? {
        guard case .redirect(let location, _, let retryAfter) = verdict, let plan = attempts[id]?.plan,
            isLedAtFirst(plan), retryAfter == nil || !RedirectPolicy.isSame(location, plan.url)
        else { return nil }
        return try? target(of: location, after: plan).origin
    }

    /// Returns whether a redirect of an attempt decides where the whole file is requested, because no bytes are
    /// written.
    private func isLedAtFirst(_ plan: AttemptPlan) -> Bool {
        guard phase == .running, let attempt = attempts[plan.id], !attempt.isDismissed else { return false }
        return plan.source == .primary && plan.mayBringWhole && beginsAnew
    }

    private mutating func refused(_ plan: AttemptPlan, _ error: TowlineError) -> [TransferAction] {
        if case .mirror(let index) = plan.source { return leaveOut(index, error.message) }
        return primaryFailed(error)
    }

    /// Requests the whole file, from the recorded redirect target if it is at most ten seconds old.
    mutating func startFirst(sharing: ConnectionSharing, _ context: TransferContext) -> [TransferAction] {
        let all = ByteRange(0, .max)
        guard let led = pendingRedirect.take() else { return start(all, sharing: sharing, context) }
        // An expired target is requested again from the first host, which the context does not describe.
        guard context.now - led.since < PendingRedirect.life else { return start(all, context) }
        return start(all, at: led.url, chain: led.chain, sharing: sharing, context)
    }
}
