public import TowlineCore

/// What happens to the downloads of a ``Downloader``.
public enum DownloadEvent: Hashable, Sendable {
    /// A download was added.
    case added(DownloadSnapshot)
    /// Something about it is different. Of several changes that were not read in time only the last is kept.
    case changed(DownloadSnapshot)
    /// It was removed from the list.
    case removed(DownloadID)
    /// Many are different at once, as after ``Downloader/pauseAll(group:)``: whoever shows the list reads it again.
    case listChanged
    /// Something was written into its timeline.
    case noted(DownloadID, TimelineNote)
    /// The list itself could not be read or written; downloads go on where they can.
    case troubled(TowlineError)
    /// The reader was so slow that this many notes were left out; the timelines have them.
    case missed(Int)
}

/// An entry of a download's timeline: what happened to it and why.
public struct TimelineNote: Hashable, Sendable {
    /// Its number, ascending; 0 in events.
    public let number: Int64
    /// When, in milliseconds since 1970.
    public let time: Int64
    /// A stable name for programs, such as `restarted`.
    public let kind: String
    /// One sentence, without secrets.
    public let message: String
}
