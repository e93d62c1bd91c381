package import TowlineCore

/// The observer of a batch, which runs several downloads. Each download has a number, in the order in which the list
/// was read. Calls come from any thread and must return soon.
package protocol BatchObserver: AnyObject, Sendable {
    /// Reports that a download begins.
    func started(_ number: Int, _ options: DownloadOptions)
    /// Reports the state of a download, a few times a second and whenever the state changes.
    func progressed(_ number: Int, _ snapshot: TransferSnapshot)
    /// Reports a notice for the user.
    func noticed(_ number: Int, _ notice: TransferNotice)
    /// Reports one line about a step of the download, if `BatchOptions.traces` is set.
    func traced(_ number: Int, _ line: String)
    /// Reports the result of a download that has ended.
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>)
}

extension BatchObserver {
    /// Ignores the line.
    package func traced(_ number: Int, _ line: String) {}
}

/// The options of a batch: how many downloads run at once, and how fast they are together.
package struct BatchOptions: Sendable {
    /// The number of downloads at once; `nil`: `BatchConcurrency` finds it.
    package var concurrency: Int?
    /// The most downloads at once that the process has descriptors for.
    package var affordable = Int.max
    /// The number of further downloads that may wait for the disk, each with a descriptor.
    package var publishing = BatchConcurrency.mostPublishing
    /// The rate limit of all downloads together, in bytes per second; 0: no limit.
    package var rateLimit: Int64 = 0
    /// `true` to report each step of each download.
    package var traces = false

    /// Creates the default options.
    package init() {}
}
