public import TowlineCore

/// A page of the downloads that match a ``TowlineCore/DownloadQuery``.
public struct DownloadPage: Hashable, Sendable {
    /// The snapshots of the downloads on the page.
    public let downloads: [DownloadSnapshot]
    /// The position where the next page begins, for ``TowlineCore/DownloadQuery/cursor``; `nil` on the last page.
    public let next: DownloadCursor?
}
