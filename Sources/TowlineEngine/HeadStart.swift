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
    /// The response is complete, and the host board knows that.
    let isOver: Bool
}

extension TransferRun {
    /// The request that is under way, which is this transfer's from here on.
    func takeHeadStart() -> HeadStart? {
        guard let start = headStart else { return nil }
        headStart = nil
        noteRequest(at: start.startedAt, answersBefore: start.answersBefore)
        if start.isOver { counted = start.writer.plan.id }
        writers.append(start.writer)
        return start
    }

    /// Nobody wants the answer of the request that is under way. What is still heard of it is of no attempt of this transfer:
    /// each has a name of its own.
    func abandonHeadStart() {
        guard let start = headStart.take(), !start.isOver else { return }
        services.transport.cancel(start.writer.plan.id)
        services.board.ended(start.writer.plan.url.origin, start.writer.plan.sharing)
    }
}
