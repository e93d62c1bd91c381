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
