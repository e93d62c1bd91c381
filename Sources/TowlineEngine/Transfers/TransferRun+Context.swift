internal import TowlineCore

/// The functions that collect the input for each decision of `TransferStateMachine`: time, host limits, progress and
/// the right to run in a batch.
extension TransferRun {
    /// Returns the input for the next decision of the state machine. First takes the batch slot (right to run) and the
    /// host's permission for a connection, if the next request needs them and they are free.
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

    /// Returns the input for the decision of the state machine after the HTTP request `id` has ended.
    func context(_ id: AttemptID) -> TransferContext {
        var context = context()
        if let writer = attempts.writer(id) { context.othersWork = admission.othersWork(at: writer.plan.url.origin) }
        return context
    }

    /// Returns the input for the decision of the state machine about a response or a redirect. If the redirect's target
    /// permits a connection of its own (`elsewhere.mayConnect`), it already counts this transfer.
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
