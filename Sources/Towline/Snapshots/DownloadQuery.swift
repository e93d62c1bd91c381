import TowlineCore
import TowlineEngine

/// Which downloads of the list, in which order.
public struct DownloadQuery: Sendable, Hashable {
    /// What they are ordered by.
    public enum Order: String, Hashable, Sendable, CaseIterable {
        /// As they run: priority, then place.
        case queue
        /// When they were added.
        case added
        /// The final name.
        case name
        /// The size.
        case size
        /// The state.
        case state
        /// When they ended.
        case ended
    }

    /// The states that are kept, to filter by. All that a running transfer does is `active`.
    public enum Filter: String, Hashable, Sendable, CaseIterable {
        /// Waits for its turn.
        case queued
        /// A transfer is at it.
        case active
        /// Waits for the network, the server or disk space.
        case waiting
        /// Stopped by the user.
        case paused
        /// The file is there.
        case finished
        /// Ended with an error.
        case failed
        /// Given up.
        case cancelled
    }

    /// The order.
    public var order = Order.queue
    /// The other way round.
    public var descending = false
    /// Only these; empty: all.
    public var filters: Set<Filter> = []
    /// Only those of the group.
    public var group: String?
    /// Only those with this in their name or URL.
    public var text: String?
    /// At most so many, 1 … 1000.
    public var limit = 100
    /// Where the page before ended.
    public var cursor: DownloadCursor?

    /// All, as they run.
    public init() {}
}

/// Where a page of the list ended.
public struct DownloadCursor: Hashable, Sendable {
    /// What to hand on and give back, for a page of another process.
    public let text: String

    /// Takes back what `text` gave.
    public init(text: String) { self.text = text }
}

/// A page of the list.
public struct DownloadPage: Hashable, Sendable {
    /// The downloads.
    public let downloads: [DownloadSnapshot]
    /// Where the next one begins; `nil` at the end.
    public let next: DownloadCursor?
}

/// Sums over the list.
public struct DownloadTotals: Hashable, Sendable {
    /// How many there are.
    public let counts: [DownloadQuery.Filter: Int]
    /// Bytes that are there now.
    public let heldBytes: Int64
    /// Bytes in all, of those whose length is known.
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
