import TowlineCore
import TowlineEngine

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

    /// The states of downloads that a query can select and that ``DownloadTotals`` counts.
    public enum Filter: String, Hashable, Sendable, CaseIterable {
        /// Waiting to start, until the limits on running downloads allow another download.
        case queued
        /// Running, from the first request until the file is published.
        case active
        /// Waiting for the network, the server or free disk space.
        case waiting
        /// Paused by the user.
        case paused
        /// Finished; the file is complete.
        case finished
        /// Failed with an error.
        case failed
        /// Cancelled by the user.
        case cancelled
    }

    /// The value that the downloads are sorted by.
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
    /// The position where the page starts: ``DownloadPage/next`` of the previous page. `nil` starts with the first
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

/// A page of the downloads that match a ``DownloadQuery``.
public struct DownloadPage: Hashable, Sendable {
    /// The snapshots of the downloads on the page.
    public let downloads: [DownloadSnapshot]
    /// The position where the next page begins, for ``DownloadQuery/cursor``; `nil` on the last page.
    public let next: DownloadCursor?
}

/// The numbers of downloads and the sums of their bytes, over the complete list of downloads.
public struct DownloadTotals: Hashable, Sendable {
    /// The number of downloads in each state.
    public let counts: [DownloadQuery.Filter: Int]
    /// The sum of the downloaded bytes of all downloads.
    public let heldBytes: Int64
    /// The sum of the file sizes of all downloads, in bytes, without the files whose size is unknown.
    public let completeLength: Int64
}

extension RegistryQuery {
    init(_ query: DownloadQuery) {
        self.init()
        order = Order(rawValue: query.order.rawValue) ?? .queue
        descending = query.descending
        states = Set(query.filters.map { RegisteredState($0) })
        group = query.group
        text = query.text
        cursor = query.cursor.map { RegistryCursor(text: $0.text) }
        limit = min(max(1, query.limit), 1000)
    }
}

extension RegisteredState {
    init(_ filter: DownloadQuery.Filter) {
        switch filter {
        case .queued: self = .queued
        case .active: self = .active
        case .waiting: self = .waiting
        case .paused: self = .paused
        case .finished: self = .finished
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        }
    }
}

extension DownloadTotals {
    init(_ totals: RegistryTotals) {
        self.init(
            counts: Dictionary(
                uniqueKeysWithValues: DownloadQuery.Filter.allCases.map {
                    ($0, totals.counts[RegisteredState($0), default: 0])
                }), heldBytes: totals.heldBytes, completeLength: totals.completeLength)
    }
}
