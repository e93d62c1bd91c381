/// Where redirects lead.
extension TransferStateMachine {
    /// Where a redirect led that is not asked yet: its host has no room, or it was asked over a connection that others share.
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
        _ id: AttemptID, _ location: String, _ context: TransferContext
    ) -> [TransferAction] {
        guard let plan = attempts[id]?.plan else { return [] }
        let target: HTTPURL
        do throws(TowlineError) {
            target = try RedirectPolicy.target(
                of: location, from: plan.url, chain: plan.chain, source: self[plan.source].url, terms)
        } catch {
            return dismiss(id) + refused(plan, error)
        }
        let isFirst = isLedAtFirst(plan)
        // It may have been cut since it was asked for.
        let lease = ledger.lease(of: id) ?? plan.lease
        var actions = dismiss(id)
        // Its answer is a redirect: not even to a stream does it write anything, and what follows goes on in its place.
        ledger.release(id)
        if !isConfirmed, let notice = RedirectPolicy.notice(from: plan.url, to: target) {
            actions.append(.notice(notice))
        }
        let chain = plan.chain + [plan.url]
        let sharing = isFirst && mayShare ? context.elsewhere.sharing : .none
        if isFirst, sharing == .none, !context.elsewhere.mayConnect {
            lead = Lead(url: target, chain: chain, since: context.now)
            return actions
        }
        return actions
            + start(
                lease, isRace: plan.isRace, from: plan.source, at: target, chain: chain, sharing: sharing, context)
    }

    /// Whether a redirect of it decides where the file is asked for at all.
    package func isLedAtFirst(_ plan: AttemptPlan) -> Bool {
        guard phase == .running, let attempt = attempts[plan.id], !attempt.isDismissed else { return false }
        return plan.source == .primary && plan.mayBringWhole && beginsAnew
    }

    private mutating func refused(_ plan: AttemptPlan, _ error: TowlineError) -> [TransferAction] {
        if case .mirror(let index) = plan.source { return leaveOut(index, error.message) }
        return primaryFailed(error)
    }

    /// Asks where a redirect led, now that there is room.
    mutating func followLead(
        _ lease: ByteRange, sharing: ConnectionSharing, _ context: TransferContext
    ) -> [TransferAction] {
        let led = lead.take()
        guard let led, context.now - led.since < Lead.life else {
            // What is known is of the host that it led to.
            return start(lease, sharing: led == nil ? sharing : .none, context)
        }
        return start(lease, at: led.url, chain: led.chain, sharing: sharing, context)
    }
}
