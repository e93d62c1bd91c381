package import TowlineCore

/// How a transfer ended well.
package struct CompletedTransfer: Hashable, Sendable {
    /// What was made.
    package enum Outcome: Hashable, Sendable {
        /// The file was published by this transfer.
        case published(PublishedFile)
        /// The file was there already, whole; nothing was fetched.
        case alreadyThere(PublishedFile)
        /// The file was there already, and the server has no other version.
        case upToDate(PublishedFile)
        /// Something was under the name and the user said to leave it.
        case skipped(path: String)
        /// Everything went to standard output (`-`), a descriptor, a FIFO or a device.
        case streamed(length: Int64, to: String = "-")
    }

    /// What was made.
    package let outcome: Outcome
    /// Bytes that came over the wire in this transfer.
    package let receivedBytes: Int64

    /// Makes one.
    package init(outcome: Outcome, receivedBytes: Int64) {
        self.outcome = outcome
        self.receivedBytes = receivedBytes
    }
}

/// What a transfer tells while it runs. Calls come from any thread, one at a time for one transfer, and must
/// return soon.
package protocol TransferObserver: AnyObject, Sendable {
    /// A few times a second, and whenever the state changes.
    func progressed(_ snapshot: TransferSnapshot)
    /// Something worth a sentence.
    func noticed(_ notice: TransferNotice)
    /// One line about a step of the transfer (`TransferTrace`), if `TransferServices.traces` is set.
    func traced(_ line: String)
}

extension TransferObserver {
    /// Ignores the line.
    package func traced(_ line: String) {}
}
