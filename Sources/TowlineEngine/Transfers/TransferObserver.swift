package import TowlineCore

/// The result of a transfer that succeeded.
package struct CompletedTransfer: Hashable, Sendable {
    /// The kinds of success: the file was downloaded, was not needed, or was written to an output.
    package enum Outcome: Hashable, Sendable {
        /// This transfer downloaded the file and gave it its final name.
        case published(PublishedFile)
        /// The complete file already existed at the destination, so no bytes were downloaded.
        case alreadyThere(PublishedFile)
        /// The file already existed at the destination, and the server has no newer version.
        case upToDate(PublishedFile)
        /// The file name was taken, and the user chose to keep the existing file (`ExistingPolicy.skip`).
        case skipped(path: String)
        /// The bytes were written in order to the output `to`: standard output (`-`), a descriptor, a FIFO or a device.
        /// `length` is their number.
        case streamed(length: Int64, to: String = "-")
    }

    /// The kind of success, with the file or the output that the bytes went to.
    package let outcome: Outcome
    /// The number of body bytes that this transfer received from the network.
    package let receivedBytes: Int64
}

/// An observer of one transfer, which shows its progress. Calls come from any thread, one at a time for each transfer,
/// and must return soon.
package protocol TransferObserver: AnyObject, Sendable {
    /// Reports the progress of the transfer, a few times a second and whenever its state changes.
    func progressed(_ snapshot: TransferSnapshot)
    /// Reports a notice for the user, such as a warning or the start of a retry.
    func noticed(_ notice: TransferNotice)
    /// Reports one line of text for debugging about a step of the transfer (`TransferTrace`). Called only if
    /// `TransferServices.traces` is `true`.
    func traced(_ line: String)
}

/// The default implementation for observers that show no debugging output.
extension TransferObserver {
    /// Ignores the line of text for debugging: the default for an observer that shows none.
    package func traced(_ line: String) {}
}
