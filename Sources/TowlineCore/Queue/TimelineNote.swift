/// A note in the timeline, the history of a download: what happened and why.
public struct TimelineNote: Hashable, Sendable {
    /// The number of the note in the timeline of its download. Later notes have higher numbers. The number is 0 in a
    /// note that is reported in an event.
    public let number: Int64
    /// The time of the note in milliseconds since 1970-01-01 00:00 UTC.
    public let time: Int64
    /// The kind of note: a stable name for programs, for example `restarted`.
    public let kind: String
    /// The description of the event for people, without secrets.
    public let message: String

    /// Creates a note in the timeline of a download. `time` is in milliseconds since 1970.
    package init(number: Int64 = 0, time: Int64, kind: String, message: String) {
        self.number = number
        self.time = time
        self.kind = kind
        self.message = message
    }
}
