/// A query of the list of downloads: filters, a sort order and the page to return.
public struct DownloadQuery: Sendable, Hashable {
    /// The value that the downloads of a query are sorted by.
    public enum Order: String, Hashable, Sendable, CaseIterable {
        /// The order in which downloads start: by priority, then by position in the queue.
        case queue
        /// The time when the download was added.
        case added
        /// The final name of the file.
        case name
        /// The size of the complete file.
        case size
        /// The state of the download.
        case state
        /// The time when the download finished, failed or was cancelled.
        case ended
    }

    /// A state of downloads that a query can select and that `DownloadTotals` counts.
    public typealias Filter = RegisteredState

    /// The value that decides the order of the downloads in the result.
    public var order = Order.queue
    /// A Boolean value that indicates whether the order is reversed.
    public var descending = false
    /// The states of the downloads to include. An empty set includes all states.
    public var filters: Set<Filter> = []
    /// The group whose downloads are included; `nil` includes downloads of all groups and of no group.
    public var group: String?
    /// A text that the name or the URL must contain; `nil` includes all downloads.
    public var text: String?
    /// The maximum number of downloads on the page. The nearest value replaces one outside 1 to 1000.
    public var limit = 100
    /// The position where the page starts: `DownloadPage.next` of the previous page. `nil` starts with the first
    /// page.
    public var cursor: DownloadCursor?

    /// Creates a query for all downloads in the order of the queue.
    public init() {}
}

/// The position in a query's result where a page ended and the next page starts.
public struct DownloadCursor: Hashable, Sendable {
    /// The position as text, for example to send to another process.
    public let text: String

    /// Creates a cursor from the `text` of another cursor.
    public init(text: String) { self.text = text }
}

/// The numbers of downloads and the sums of their bytes, over the complete list of downloads.
public struct DownloadTotals: Hashable, Sendable {
    /// The number of downloads in each state.
    public package(set) var counts: [DownloadQuery.Filter: Int] = [:]
    /// The sum of the downloaded bytes of all downloads.
    public package(set) var heldBytes: Int64 = 0
    /// The sum of the file sizes of all downloads, in bytes, without the files whose size is unknown.
    public package(set) var completeLength: Int64 = 0

    /// Creates the totals of an empty list.
    package init() {}
}
