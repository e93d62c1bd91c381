public import TowlineCore

/// An event of a ``Downloader``.
public enum DownloadEvent: Hashable, Sendable {
    /// A download was added.
    case added(DownloadSnapshot)
    /// The state, progress or settings of a download changed. Only the last of several unread changes of a download is
    /// kept.
    case changed(DownloadSnapshot)
    /// A download was removed from the list.
    case removed(DownloadID)
    /// Many downloads changed at once, for example by ``Downloader/pauseAll(group:)``. Read the list of downloads
    /// again.
    case listChanged
    /// A note was added to the timeline, the history of a download.
    case noted(DownloadID, TimelineNote)
    /// The database of the downloads could not be read or written. Downloads continue if possible.
    case troubled(TowlineError)
    /// The reader was too slow and this number of `noted` and `troubled` events was dropped. The timelines still
    /// contain all notes.
    case missed(Int)
}

/// A note in the timeline of a download: what happened and why.
public struct TimelineNote: Hashable, Sendable {
    /// The number of the note. Later notes have higher numbers. The number is 0 in events.
    public let number: Int64
    /// The time of the note in milliseconds since 1970-01-01 00:00 UTC.
    public let time: Int64
    /// The kind of note: a stable name for programs, for example `restarted`.
    public let kind: String
    /// The description of the event for people, without secrets.
    public let message: String
}
