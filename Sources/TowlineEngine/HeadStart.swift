internal import TowlineCore

/// The first request of a transfer, sent by a `SmallFileRun` before the `TransferRun` that takes it over was created.
struct HeadStart {
    /// The receiver of the response, which reports to the mailbox of the transfer.
    let writer: AttemptWriter
    /// The time at which the request was sent.
    let startedAt: Duration
    /// The number of responses that the host had given to this process when the request was sent.
    let answersBefore: Int
    /// The origin that counts this request as one of its transfers with connections of their own (`HostBoard.admit`);
    /// `nil` if the request shares a connection.
    let admission: HTTPURL.Origin?
    /// The events that were already taken from the mailbox and must still be handled.
    let events: [TransferMailbox.Event]
    /// `true` if the response is complete and the host board, which counts running requests, already counts the request
    /// as ended.
    let isOver: Bool
}

extension TransferRun {
    /// Makes the request that was sent before this transfer was created an attempt of this transfer. Returns `nil` if
    /// no such request exists, or if it was taken over or cancelled.
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
