/// Where redirects lead.
extension TransferStateMachine {
    /// Where a redirect led that is not asked yet: its host has no room or is to be left alone, or it was asked over a connection
    /// that others share.
    struct Lead: Sendable {
        let url: HTTPURL
        /// The URLs that led there.
        let chain: [HTTPURL]
        /// When it was heard of.
        let since: Duration
        /// What is known in this step is of another host.
        var isNew = true

        /// Links that are signed are good for a while; one that old is asked for anew.
        static let life = Duration.seconds(10)
    }

    /// The host that is asked next.
    package var nextOrigin: HTTPURL.Origin { lead?.url.origin ?? resolved.origin }

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
        // It may have been cut since it was asked for.
        let lease = ledger.lease(of: id) ?? plan.lease
        var actions = dismiss(id)
        // Its answer is a redirect: not even to a stream does it write anything, and what follows goes on in its place.
        ledger.release(id)
        if !isConfirmed, let notice = RedirectPolicy.notice(from: plan.url, to: target) {
            actions.append(.notice(notice))
        }
        // The request that follows a plain one is plain, too.
        if plan.source == .primary, plan.question.asked == .whole { rangeDoubt.asksPlain = true }
        let chain = plan.chain + [plan.url]
        let sharing = isFirst && mayShare ? context.elsewhere.sharing : .none
        let isLeftAlone = context.elsewhere.notBefore ?? .zero > context.now
        if isFirst, isLeftAlone || sharing == .none && !context.elsewhere.mayConnect {
            lead = Lead(url: target, chain: chain, since: context.now)
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

    /// The host that an answer leads to, if it is followed, and decides where the file is asked for at all: what is known of that
    /// host is then to be said with it (`TransferContext.elsewhere`).
    package func leads(_ id: AttemptID, _ verdict: ResponseVerdict) -> HTTPURL.Origin? {
        guard case .redirect(let location, _, let retryAfter) = verdict, let plan = attempts[id]?.plan,
            isLedAtFirst(plan), retryAfter == nil || !RedirectPolicy.isSame(location, plan.url)
        else { return nil }
        return try? target(of: location, after: plan).origin
    }

    /// Whether a redirect of it decides where the file is asked for at all.
    private func isLedAtFirst(_ plan: AttemptPlan) -> Bool {
        guard phase == .running, let attempt = attempts[plan.id], !attempt.isDismissed else { return false }
        return plan.source == .primary && plan.mayBringWhole && beginsAnew
    }

    private mutating func refused(_ plan: AttemptPlan, _ error: TowlineError) -> [TransferAction] {
        if case .mirror(let index) = plan.source { return leaveOut(index, error.message) }
        return primaryFailed(error)
    }

    /// Asks for all, where a redirect led if that is not asked yet.
    mutating func startFirst(sharing: ConnectionSharing, _ context: TransferContext) -> [TransferAction] {
        let all = ByteRange(0, .max)
        guard let led = lead.take() else { return start(all, sharing: sharing, context) }
        // Asked for anew at the first host, of which nothing is known in this step.
        guard context.now - led.since < Lead.life else { return start(all, context) }
        return start(all, at: led.url, chain: led.chain, sharing: sharing, context)
    }
}
