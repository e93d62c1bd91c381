package import TowlineCore

/// An observer of a batch, which runs the downloads of a list. Each download has a number: its position in the list,
/// from 1. Calls come from any thread and must return soon.
package protocol BatchObserver: AnyObject, Sendable {
    /// Reports that the download at position `number` of the list begins, with its options.
    func started(_ number: Int, _ options: DownloadOptions)
    /// Reports the progress of the download at position `number` of the list, a few times a second and whenever its
    /// state changes.
    func progressed(_ number: Int, _ snapshot: TransferSnapshot)
    /// Reports a notice for the user, such as a warning, about the download at position `number` of the list.
    func noticed(_ number: Int, _ notice: TransferNotice)
    /// Reports one line of text for debugging about a step of the download at position `number` of the list. Called
    /// only if `BatchOptions.traces` is `true`.
    func traced(_ number: Int, _ line: String)
    /// Reports that the download at position `number` of the list has ended, and its result: the completed transfer or
    /// the error.
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>)
}

/// The default implementation for observers that show no debugging output.
extension BatchObserver {
    /// Ignores the line of text for debugging: the default for an observer that shows none.
    package func traced(_ number: Int, _ line: String) {}
}

/// The options of a batch: the number of downloads that run at once, their common rate limit, and debugging output.
package struct BatchOptions: Sendable {
    /// The maximum number of downloads that run at once; `nil`: `BatchConcurrency` adapts the number to the downloads.
    package var concurrency: Int?
    /// The maximum number of downloads that run at once with the file descriptors that the process may open.
    package var affordable = Int.max
    /// The number of further downloads that may run while they only wait until their complete files are synced to disk.
    /// Each uses a file descriptor.
    package var publishing = BatchConcurrency.mostPublishing
    /// The rate limit of all downloads together, in bytes per second; 0: no limit.
    package var rateLimit: Int64 = 0
    /// `true` to report each step of each download as a line of text for debugging (`BatchObserver.traced`).
    package var traces = false

    /// Creates the default options: an adaptive number of downloads at once, and no rate limit.
    package init() {}
}
