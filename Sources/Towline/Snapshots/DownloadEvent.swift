public import TowlineCore

/// An event of a ``DownloadManager``.
public enum DownloadEvent: Hashable, Sendable {
    /// A download was added.
    case added(DownloadSnapshot)
    /// The state, progress or settings of a download changed. Only the last of several unread changes of a download is
    /// kept.
    case changed(DownloadSnapshot)
    /// A download was removed from the list.
    case removed(DownloadID)
    /// Many downloads changed at once, for example by ``DownloadManager/pauseAll(group:)``. Read the list of downloads
    /// again.
    case listChanged
    /// A note was added to the timeline, the history of a download.
    case noted(DownloadID, TimelineNote)
    /// The registry, the database of the downloads, could not be read or written, or was repaired. Downloads continue
    /// if possible.
    case troubled(TowlineError)
    /// The reader was too slow and this number of `noted` and `troubled` events was dropped. The timelines still
    /// contain all notes.
    case missed(Int)
}
