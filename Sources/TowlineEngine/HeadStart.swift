internal import TowlineCore

/// The first request of a transfer, sent before its `TransferRun` was created.
struct HeadStart {
    /// The writer that takes the response, and reports to the mailbox of the transfer.
    let writer: AttemptWriter
    /// The time at which the request was sent.
    let startedAt: Duration
    /// The number of responses that the host had given by then.
    let answersBefore: Int
    /// The origin at which the request is admitted with a connection of its own; `nil` if none.
    let admission: HTTPURL.Origin?
    /// The events that were already taken from the mailbox.
    let events: [TransferMailbox.Event]
    /// `true` if the response is complete and the host board already counts the request as ended.
    let isOver: Bool
}

extension TransferRun {
    /// Takes over the request that was sent before this transfer was created. Returns `nil` without such a request.
    func takeHeadStart() -> HeadStart? {
        guard let start = headStart else { return nil }
        headStart = nil
        noteRequest(at: start.startedAt, answersBefore: start.answersBefore)
        if start.isOver { counted = start.writer.plan.id }
        writers.append(start.writer)
        return start
    }

    /// Cancels the request that was sent before this transfer was created. Later events of it match no attempt of this
    /// transfer, because each attempt has its own ID.
    func abandonHeadStart() {
        guard let start = headStart.take(), !start.isOver else { return }
        services.transport.cancel(start.writer.plan.id)
        services.board.ended(start.writer.plan.url.origin, start.writer.plan.sharing)
    }
}
