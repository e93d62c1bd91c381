package import TowlineCore

/// What a batch tells while it runs: several downloads, each with its number in the order they were read.
/// Calls come from any thread and must return soon.
package protocol BatchObserver: AnyObject, Sendable {
    /// A download's turn has come.
    func started(_ number: Int, _ options: DownloadOptions)
    /// A few times a second, and whenever the state changes.
    func progressed(_ number: Int, _ snapshot: TransferSnapshot)
    /// Something worth a sentence.
    func noticed(_ number: Int, _ notice: TransferNotice)
    /// One line about a step of the download, if `BatchOptions.traces` is set.
    func traced(_ number: Int, _ line: String)
    /// The download is over.
    func ended(_ number: Int, _ result: Result<CompletedTransfer, TowlineError>)
}

extension BatchObserver {
    /// Ignores the line.
    package func traced(_ number: Int, _ line: String) {}
}

/// How many at once, and how fast together.
package struct BatchOptions: Sendable {
    /// Downloads at once; `nil`: as `BatchConcurrency` finds.
    package var concurrency: Int?
    /// There are descriptors for so many.
    package var affordable = Int.max
    /// So many more may wait for the disk, each with a descriptor.
    package var publishing = BatchConcurrency.mostPublishing
    /// Bytes per second of all together; 0: no limit.
    package var rateLimit: Int64 = 0
    /// Report each step of each download.
    package var traces = false

    /// Defaults.
    package init() {}
}
