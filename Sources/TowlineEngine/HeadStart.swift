internal import TowlineCore

/// A transfer's first request, sent before there was a `TransferRun` for it.
struct HeadStart {
    /// What takes its answer, and reports to the mailbox that the transfer gets.
    let writer: AttemptWriter
    /// When it was sent.
    let startedAt: Duration
    /// The answers of the host until then.
    let answersBefore: Int
    /// Where it was admitted to connections of its own.
    let admission: HTTPURL.Origin?
    /// What was taken from the mailbox already.
    let events: [TransferMailbox.Event]
}

extension TransferRun {
    /// The request that is under way, which is this transfer's from here on.
    func takeHeadStart() -> HeadStart? {
        guard let start = headStart else { return nil }
        headStart = nil
        noteRequest(at: start.startedAt, answersBefore: start.answersBefore)
        writers.append(start.writer)
        return start
    }

    /// Nobody wants the answer of the request that is under way. What is still heard of it is of no attempt of this transfer:
    /// each has a name of its own.
    func abandonHeadStart() {
        guard let plan = headStart?.writer.plan else { return }
        headStart = nil
        services.transport.cancel(plan.id)
        services.board.ended(plan.url.origin, plan.sharing)
    }
}
