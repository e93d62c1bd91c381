public import Foundation
public import Logging
package import TowlineCore

extension Downloader {
    /// The settings of a ``Downloader``.
    ///
    /// The download and rate limits apply only until a limit is changed at run time. Changed limits are saved in the
    /// state directory and take precedence over this configuration the next time the directory is opened.
    public struct Configuration: Sendable {
        /// The maximum number of downloads that run at the same time.
        public var maximumRunning = 5
        /// The maximum number of downloads that run at the same time for each host.
        public var maximumRunningPerHost = 3
        /// The rate limit for all downloads together, in bytes per second; 0 means no limit.
        public var rateLimit: Int64 = 0
        /// A Boolean value that indicates whether unfinished downloads continue at launch.
        ///
        /// If `false`, no server is contacted until the app asks for it: the downloads that were queued, running or
        /// waiting when the process ended are paused at launch, and follow-ups wait. ``Download/start()`` starts one of
        /// them, ``Downloader/startAll(group:)`` starts all.
        public var resumesAtLaunch = true
        /// The interval between two snapshots of a download while bytes arrive.
        ///
        /// The interval grows, up to 5 seconds, if more than 10,000 snapshots per second would be delivered in total. A
        /// change of state is delivered immediately.
        public var snapshotInterval = Duration.milliseconds(250)
        /// The object that supplies a new link when a link has expired. `nil` means that links are not renewed.
        public var linkRenewal: (any LinkRenewal)?
        /// The delay before a download is retried after its first network failure.
        ///
        /// The delay doubles after each further failure in a row, up to 5 minutes. A change of the network ends the
        /// delay.
        public var networkRetryInterval = Duration.seconds(5)
        /// The logger for the steps of each download: requests, responses and decisions, at level `debug`.
        ///
        /// The log messages contain no header fields and no passwords. Without a logger, or at a higher level, they are
        /// not created.
        public var logger: Logger?
        /// The interval between two checks of the free disk space while a download waits for space.
        public var diskRetryInterval = Duration.seconds(10)
        /// The directories that contain all downloads: absolute paths without links. A symbolic link that leads out of
        /// them is not followed.
        package var roots: [String] = []
        /// A closure that receives the error if a change of the registry, the database of all downloads, fails in the
        /// background. Readers of ``Downloader/events`` receive the same error.
        package var onTrouble: (@Sendable (TowlineError) -> Void)?

        /// Creates a configuration with the default values.
        public init() {}
    }
}

/// A type that supplies a new link when a link has expired.
///
/// The downloader requests a new link when the server returns status 401, 403, 404 or 410 for a link that worked
/// before, and shortly before a known expiry time (`X-Amz-Expires`, `X-Goog-Expires`, `Expires`). The downloaded bytes
/// are kept if the new link is proven to lead to the same file.
public protocol LinkRenewal: Sendable {
    /// Returns a new link to the same file.
    ///
    /// - Parameters:
    ///   - request: the request of the download, with its current link.
    ///   - reason: the reason why a new link is needed.
    /// - Returns: the new link, or `nil` if no new link is available. The download then continues with the old link, or
    ///   fails with the error of the server.
    /// - Throws: any error. The error has the same effect as `nil`, and a note in the timeline reports the failure.
    func renewedLink(for request: DownloadRequest, reason: LinkRenewalReason) async throws -> RenewedLink?
}

/// The reason why the downloader requests a new link.
public enum LinkRenewalReason: Hashable, Sendable {
    /// The server refused the current link with this HTTP status code.
    case refused(status: Int)
    /// The current link contains an expiry time, which is this date.
    case expires(Date)
}

/// A new link to the same file, which replaces an expired or changed link of a download.
public struct RenewedLink: Hashable, Sendable {
    /// The new URL, which leads to the same file as the link that it replaces.
    public var url: URL
    /// The header fields that replace the header fields of the request.
    ///
    /// `nil` keeps the header fields of the request if the new link has the same origin (scheme, host and port). A link
    /// with another origin receives neither these header fields nor the cookies, user name and password of the request.
    public var headers: [DownloadRequest.Header]?

    /// Creates a link from the URL of the file and the header fields for it; `nil` keeps those of the request.
    public init(url: URL, headers: [DownloadRequest.Header]? = nil) {
        self.url = url
        self.headers = headers
    }
}
