public import TowlineCore

/// A page of the downloads that match a ``TowlineCore/DownloadQuery``.
public struct DownloadPage: Hashable, Sendable {
    /// The snapshots of the downloads on the page.
    public let downloads: [DownloadSnapshot]
    /// The position where the next page begins, for ``TowlineCore/DownloadQuery/cursor``; `nil` on the last page.
    public let next: DownloadCursor?

    /// Creates a page of snapshots. `next` is the position of the next page; `nil` on the last page.
    public init(downloads: [DownloadSnapshot], next: DownloadCursor? = nil) {
        self.downloads = downloads
        self.next = next
    }
}

/// The snapshots of all downloads that match a query. See ``DownloadManager/downloads(_:)``.
public struct DownloadSequence: AsyncSequence, Sendable {
    /// The snapshot (state and progress) of a download that matches the query.
    public typealias Element = DownloadSnapshot
    /// The error that ends the sequence: an error of reading the list, or `closed`.
    public typealias Failure = TowlineError

    let manager: any DownloadManager
    let query: DownloadQuery

    /// The iterator over the snapshots, which holds one page of the list in memory.
    public struct Iterator: AsyncIteratorProtocol {
        let manager: any DownloadManager
        /// The query for the next page of the list; `nil` after the last page.
        var query: DownloadQuery?
        var page: ArraySlice<DownloadSnapshot> = []

        /// Returns the snapshot of the next download, or `nil` after the last one. Reads the next page of the list if
        /// needed.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(TowlineError) -> DownloadSnapshot? {
            while page.isEmpty, var query {
                let next = try await manager.page(query)
                page = next.downloads[...]
                query.cursor = next.next
                self.query = next.next == nil ? nil : query
            }
            return page.popFirst()
        }
    }

    /// Creates an iterator that begins with the first matching download.
    public func makeAsyncIterator() -> Iterator { Iterator(manager: manager, query: query) }
}
