internal import TowlineCore

/// The first HTTP request of a transfer, which a `SmallFileRun` (for a file that may be small) sent before it handed
/// the download over to a new `TransferRun`.
struct HeadStart {
    /// The receiver of the response, which posts its events to the event queue of the transfer.
    let writer: AttemptWriter
    /// The time at which the first request of the transfer was sent.
    let startedAt: Duration
    /// The number of responses that the host had given to any download of this process when the request was sent.
    let answersBefore: Int
    /// The host that has permitted this request a connection of its own, and counts its transfer (`HostBoard.admit`);
    /// `nil` if the request shares a connection.
    let admission: HTTPURL.Origin?
    /// The events of the request that were already taken from the event queue, and that the transfer must still handle.
    let events: [TransferMailbox.Event]
    /// `true` if the response is complete, and the host board, which counts the running requests of each host, already
    /// counts the request as ended.
    let isOver: Bool
}
