package import TowlineCore

/// An observer of a batch, which runs the downloads of a list. Each download has a number: its position in the list,
/// from 1. Calls come from any thread and must return soon.
package protocol BatchObserver: AnyObject, Sendable {
    /// Reports that download `number` begins, with its options.
    func started(_ number: Int, _ options: DownloadOptions)
    /// Reports the state of download `number`, a few times a second and whenever the state changes.
    func progressed(_ number: Int, _ snapshot: TransferSnapshot)
    /// Reports a notice for the user, such as a warning, about download `number`.
    func noticed(_ number: Int, _ notice: TransferNotice)
    /// Reports one line about a step of download `number` for debugging, if `BatchOptions.traces` is set.
    func traced(_ number: Int, _ line: String)
    /// Reports the result of download `number`, which has ended: the completed transfer or the error.
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>)
}

/// The default implementation for observers without debugging output.
extension BatchObserver {
    /// Ignores the line: the default for an observer that shows no traces.
    package func traced(_ number: Int, _ line: String) {}
}

/// The options of a batch: how many downloads run at once, and how fast they are together.
package struct BatchOptions: Sendable {
    /// The maximum number of downloads that run at once; `nil`: `BatchConcurrency` adapts the number to the downloads.
    package var concurrency: Int?
    /// The maximum number of downloads at once, given by the process's limit on file descriptors.
    package var affordable = Int.max
    /// The number of further downloads that may wait until their files are synced to disk, each with a file descriptor.
    package var publishing = BatchConcurrency.mostPublishing
    /// The rate limit of all downloads together, in bytes per second; 0: no limit.
    package var rateLimit: Int64 = 0
    /// `true` to report each step of each download (`BatchObserver.traced`).
    package var traces = false

    /// Creates the default options: an adaptive number of downloads at once, and no rate limit.
    package init() {}
}
