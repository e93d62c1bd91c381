public import Foundation

/// The limits that are in force; see ``Downloader/setMaximumRunning(_:)`` and the others.
public struct DownloadLimits: Hashable, Sendable {
    /// Downloads that run at once.
    public let maximumRunning: Int
    /// And for each host.
    public let maximumRunningPerHost: Int
    /// Bytes per second of all together; 0: no limit.
    public let rateLimit: Int64
    /// How many run at once of the groups that have a limit of their own.
    public let groups: [String: Int]
}

/// What is known of a host that downloads of the list are using.
public struct HostStatus: Hashable, Sendable {
    /// `scheme://host:port`.
    public let host: String
    /// How many downloads of it run.
    public let running: Int
    /// The connections it allows, where it made that known.
    public let ceiling: Int?
    /// Until when it wants to be left alone.
    public let notBefore: Date?
}
