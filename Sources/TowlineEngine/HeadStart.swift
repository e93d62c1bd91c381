internal import TowlineCore

/// A transfer's first request, sent before there was a `TransferRun` for it.
struct HeadStart {
    /// What takes its answer, and reports to the mailbox that the transfer gets.
    let writer: AttemptWriter
    /// Where it was admitted to connections of its own.
    let admission: HTTPURL.Origin?
    /// What was taken from the mailbox already.
    let events: [TransferMailbox.Event]
}

extension TransferRun {
    /// Whether a request need not be sent, since it is the one that is under way. One that turns out not to be is given up.
    func takesHeadStart(_ plan: AttemptPlan) -> Bool {
        guard let writer = headStart?.writer, writer.plan == plan else {
            abandonHeadStart()
            return false
        }
        headStart = nil
        writers.append(writer)
        return true
    }

    /// Nobody wants the answer of the request that is under way.
    func abandonHeadStart() {
        guard let plan = headStart?.writer.plan else { return }
        headStart = nil
        services.transport.cancel(plan.id)
        services.board.ended(plan.url.origin, plan.sharing)
    }
}
