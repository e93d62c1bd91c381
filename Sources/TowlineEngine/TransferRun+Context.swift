internal import TowlineCore

extension TransferRun {
    /// What the world looks like now.
    func context() -> TransferContext {
        let shared = writers.count { $0.plan.sharing == .one }
        let origin = machine.nextOrigin
        let host = services.board.standing(origin)
        let sharing = mayShareConnections ? host.sharing : .none
        let now = services.now
        let hasSlot = takeBackSlot()
        var context = TransferContext(
            now: now, progress: writers.map { ($0.plan.id, $0.progress) }, hostNotBefore: host.notBefore,
            hostCeiling: host.ceiling,
            // Those that share one are not counted, but are among this transfer's own.
            hostConnections: host.connections + shared,
            sharing: sharing, mayConnect: hasSlot && mayConnect(to: origin, shares: sharing != .none),
            jitter: Backoff.jitter(at: now))
        context.isLimited = isLimited
        context.hasSlot = hasSlot
        if !options.mirrors.isEmpty {
            context.mirrors = machine.mirrorOrigins.map { origin in
                let host = services.board.standing(origin)
                let own = writers.count { $0.plan.sharing != .one && $0.plan.url.origin == origin }
                return TransferContext.MirrorHost(
                    notBefore: host.notBefore, ceiling: host.ceiling,
                    otherConnections: max(0, host.connections - own))
            }
        }
        return context
    }

    /// The same about an attempt that has ended.
    func context(_ id: AttemptID) -> TransferContext {
        var context = context()
        context.othersWork = othersWork(at: id)
        return context
    }

    /// The same about an answer, with what is to be known of the host that it leads to. As everywhere, who asks whether there is room has
    /// taken it.
    func context(_ id: AttemptID, _ verdict: ResponseVerdict) -> TransferContext {
        var context = context(id)
        guard let origin = machine.leads(id, verdict) else { return context }
        let host = services.board.standing(origin)
        context.elsewhere.notBefore = host.notBefore
        if host.notBefore ?? .zero > context.now { services.board.led(from: options.url.origin, to: origin) }
        if mayShareConnections, machine.mayShare { context.elsewhere.sharing = host.nextSharing }
        if context.elsewhere.sharing == .none {
            context.elsewhere.mayConnect = moveAdmission(to: origin)
        } else {
            giveUpAdmission()
        }
        return context
    }
}
