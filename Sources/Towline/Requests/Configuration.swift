public import Foundation
package import TowlineCore

/// How a ``Downloader`` works. Limits can be changed while it runs and are kept; what is given here is where a state
/// directory that has none begins.
public struct Configuration: Sendable {
    /// Downloads that run at once.
    public var maximumRunning = 5
    /// And for each host.
    public var maximumRunningPerHost = 3
    /// Bytes per second of all together; 0: no limit.
    public var rateLimit: Int64 = 0
    /// Downloads that were under way when the process ended go on at launch. Otherwise they are paused.
    public var resumesAtLaunch = true
    /// How often snapshots are delivered while bytes arrive, in seconds; less often where many read of many downloads,
    /// at 10,000 deliveries a second. Changes of state are delivered at once.
    public var snapshotInterval: Double = 0.25
    /// Asked for a new link where the old one no longer works.
    public var linkRenewal: (any LinkRenewal)?
    /// The first wait for a network that is gone, in seconds; it doubles up to five minutes, and a change of the
    /// network ends it.
    public var networkRetryInterval: Double = 5
    /// How often a full disk is looked at again, in seconds.
    public var diskRetryInterval: Double = 10
    /// Hears of each change of the list that could not be made while nobody asked for it, as readers of events do.
    package var onTrouble: (@Sendable (TowlineError) -> Void)?

    /// The defaults.
    public init() {}
}

/// Gives a new link where an old one has expired.
///
/// Asked when the server answers 401, 403, 404 or 410 to a link that worked before, and shortly before a known expiry
/// (`X-Amz-Expires`, `X-Goog-Expires`, `Expires`). The bytes that are there are kept if the new link is proven to lead
/// to the same file.
public protocol LinkRenewal: Sendable {
    /// - Parameters:
    ///   - request: what was asked for, with the link as it is now.
    ///   - reason: why a new one is needed.
    /// - Returns: the new link; `nil` if there is none, and the download fails for that reason.
    func renewedLink(for request: DownloadRequest, reason: LinkRenewalReason) async throws -> RenewedLink?
}

/// Why a new link is needed.
public enum LinkRenewalReason: Hashable, Sendable {
    /// The server refused it with this status.
    case refused(status: Int)
    /// It says itself that it ends then.
    case expires(Date)
}

/// A new link to the same file.
public struct RenewedLink: Hashable, Sendable {
    /// The link.
    public var url: URL
    /// Header fields that take the place of the request's; `nil`: those stay, unless the link is of another origin, which
    /// gets neither them nor the request's user.
    public var headers: [DownloadRequest.Header]?

    /// Makes one.
    public init(url: URL, headers: [DownloadRequest.Header]? = nil) {
        self.url = url
        self.headers = headers
    }
}
