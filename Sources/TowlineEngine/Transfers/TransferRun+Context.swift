internal import TowlineCore

/// The functions that collect the facts for each decision of `TransferStateMachine`: time, host limits, progress and
/// batch slot.
extension TransferRun {
    /// Returns the facts that the state machine needs for its next decision. If the transfer needs a batch slot, or to
    /// be counted by the host, for its next attempt, and can have them, it has them afterwards.
    func context() -> TransferContext {
        let shared = attempts.writers.count { $0.plan.sharing == .one }
        let origin = machine.nextOrigin
        let host = services.board.state(of: origin)
        let sharing = mayShareConnections ? host.sharing : .none
        let now = services.now
        let hasSlot = turn.takeBack(situation)
        var context = TransferContext(
            now: now, progress: attempts.writers.map { ($0.plan.id, $0.progress) }, hostNotBefore: host.notBefore,
            hostCeiling: host.ceiling,
            // The board does not count requests that share one connection. This transfer counts its own.
            hostConnections: host.connections + shared,
            sharing: sharing, mayConnect: hasSlot && mayConnect(to: origin, shares: sharing != .none),
            jitter: Backoff.jitter(at: now))
        context.isLimited = attempts.isLimited
        context.hasSlot = hasSlot
        if !options.mirrors.isEmpty {
            context.mirrors = machine.mirrorOrigins.map { origin in
                let host = services.board.state(of: origin)
                let own = attempts.writers.count { $0.plan.sharing != .one && $0.plan.url.origin == origin }
                return TransferContext.MirrorHost(
                    notBefore: host.notBefore, ceiling: host.ceiling,
                    otherConnections: max(0, host.connections - own))
            }
        }
        return context
    }

    /// Returns the facts for the decision of the state machine after an attempt (request) has ended.
    func context(_ id: AttemptID) -> TransferContext {
        var context = context()
        if let writer = attempts.writer(id) { context.othersWork = admission.othersWork(at: writer.plan.url.origin) }
        return context
    }

    /// Returns the facts for the state machine's decision about a response, and about the host that it redirects to. If
    /// this transfer may have its own connection there (`elsewhere.mayConnect`), the host already counts it.
    func context(_ id: AttemptID, _ verdict: ResponseVerdict) -> TransferContext {
        var context = context(id)
        guard let origin = machine.leads(id, verdict) else { return context }
        let host = services.board.state(of: origin)
        context.elsewhere.notBefore = host.notBefore
        if host.notBefore ?? .zero > context.now { services.board.led(from: options.url.origin, to: origin) }
        if mayShareConnections, machine.mayShare { context.elsewhere.sharing = host.nextSharing }
        if context.elsewhere.sharing == .none {
            context.elsewhere.mayConnect = moveAdmission(to: origin)
        } else {
            admission.leave()
        }
        return context
    }
}
