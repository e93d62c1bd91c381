public import Foundation

/// The limits of a ``Downloader`` that are currently in effect.
///
/// ``Downloader/setMaximumRunning(_:)``, ``Downloader/setMaximumRunningPerHost(_:)``, ``Downloader/setRateLimit(_:)``
/// and ``Downloader/setLimit(_:forGroup:)`` change these limits.
public struct DownloadLimits: Hashable, Sendable {
    /// The maximum number of downloads that run at the same time.
    public let maximumRunning: Int
    /// The maximum number of downloads that run at the same time for each host.
    public let maximumRunningPerHost: Int
    /// The rate limit for all downloads together, in bytes per second; 0 means no limit.
    public let rateLimit: Int64
    /// The maximum number of running downloads for each group that has a limit, by the name of the group.
    public let groups: [String: Int]
}

/// The status of a host that running downloads use.
public struct HostStatus: Hashable, Sendable {
    /// The origin of the host, as `scheme://host:port`.
    public let host: String
    /// The number of running downloads from this host.
    public let running: Int
    /// The number of connections that the host allows at the same time; `nil` if no limit is known.
    public let ceiling: Int?
    /// The time before which the host must receive no further requests, because it sent `Retry-After`; `nil` if
    /// requests are allowed now.
    public let notBefore: Date?
}
