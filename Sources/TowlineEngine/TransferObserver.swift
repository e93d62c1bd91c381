package import TowlineCore

/// The result of a transfer that succeeded.
package struct CompletedTransfer: Hashable, Sendable {
    /// The kinds of results.
    package enum Outcome: Hashable, Sendable {
        /// The file was published by this transfer.
        case published(PublishedFile)
        /// The complete file already existed. Nothing was downloaded.
        case alreadyThere(PublishedFile)
        /// The file already existed, and the server has no other version.
        case upToDate(PublishedFile)
        /// The name was taken, and the user chose to skip the download.
        case skipped(path: String)
        /// The bytes went to standard output (`-`), a descriptor, a FIFO or a device.
        case streamed(length: Int64, to: String = "-")
    }

    /// The kind of result.
    package let outcome: Outcome
    /// The number of body bytes that this transfer received from the network.
    package let receivedBytes: Int64

    /// Creates a result.
    package init(outcome: Outcome, receivedBytes: Int64) {
        self.outcome = outcome
        self.receivedBytes = receivedBytes
    }
}

/// The observer of a transfer. Calls come from any thread, one at a time for each transfer, and must return soon.
package protocol TransferObserver: AnyObject, Sendable {
    /// Reports the state of the transfer, a few times a second and whenever the state changes.
    func progressed(_ snapshot: TransferSnapshot)
    /// Reports a notice for the user.
    func noticed(_ notice: TransferNotice)
    /// Reports one line about a step of the transfer (`TransferTrace`), if `TransferServices.traces` is set.
    func traced(_ line: String)
}

extension TransferObserver {
    /// Ignores the line.
    package func traced(_ line: String) {}
}
