public import Foundation

/// A request for a download: a URL, a destination and options.
///
/// The registry stores the complete request, including secrets, so that the download can resume after a relaunch.
/// Secrets do not appear in messages, events or journals (see ``Downloader``).
public struct DownloadRequest: Hashable, Sendable, Codable {
    /// The destination of the file. The directory must exist when the download starts.
    public enum Destination: Hashable, Sendable, Codable {
        /// A directory. The server or the URL supplies the file name, which is made safe.
        ///
        /// If another download uses this name, a number is added to the name.
        case directory(URL)
        /// The exact path of the file.
        case file(URL)
    }

    /// The action if another file already has the final name.
    public enum Existing: String, Hashable, Sendable, Codable {
        /// Fails with `destinationExists`.
        case fail
        /// Replaces the existing file when the new file is complete.
        case overwrite
        /// Adds the next free number to the name of the new file.
        case rename
        /// Keeps the existing file and finishes without downloading.
        case skip
        /// Replaces the existing file when the new file is complete, if the file on the server differs. Otherwise keeps
        /// it.
        ///
        /// If a finished download is added again, the server is asked again whether its file has changed.
        case update
    }

    /// A custom header field.
    ///
    /// The field is sent only to the origin of the URL (scheme, host and port), not to other origins after a redirect.
    public struct Header: Hashable, Sendable, Codable {
        /// The name of the field.
        public var name: String
        /// The value of the field.
        public var value: String

        /// Creates a header field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The URL of the file, with the scheme `http` or `https`.
    public var url: URL
    /// The destination of the file.
    public var destination: Destination
    /// Custom header fields.
    public var headers: [Header] = []
    /// Cookies to send to the hosts that they name, as the content of a cookie file in the Netscape format: one cookie
    /// per line. Mirrors receive none.
    public var cookies: String?
    /// The credentials for Basic authentication at the origin of the URL, as `name:password`; `nil` if the request
    /// supplies none.
    public var user: String?
    /// The maximum number of connections, 1 to 128; `nil` means automatic, at most 16.
    public var connections: Int?
    /// The rate limit of this download in bytes per second; `nil` means no limit.
    public var rateLimit: Int64?
    /// The expected checksum as `algorithm:hex`, for example `sha256:…`; `nil` if unknown.
    ///
    /// A file with another checksum is not published: the file does not appear under its final name.
    public var checksum: String?
    /// The priority: queued downloads with a higher number start first.
    public var priority = 0
    /// The group of the download; `nil` means no group. ``Downloader/setLimit(_:forGroup:)`` limits a group.
    public var group: String?
    /// Data of the caller. Every snapshot contains it unchanged, also after a relaunch.
    public var metadata: [String: String] = [:]
    /// The action if another file already has the final name.
    public var existing = Existing.fail
    /// A Boolean value that indicates whether the download is added paused. ``Download/resume()`` starts it.
    public var startsPaused = false
    /// The follow-up actions that run, in this order, after the file is verified and published.
    ///
    /// No action runs if the file already existed and the download was skipped, or the file is up to date.
    public var followUps: [FollowUp] = []
    /// The URL of a proxy, with the scheme `http`, `https`, `socks5` or `socks5h`.
    ///
    /// `nil` uses the proxy that environment variables such as `https_proxy` name, and an empty text uses none. A
    /// request with ``publicAddressesOnly`` must not name a proxy.
    public var proxy: String?
    /// A PEM file of the certificate authorities to trust instead of those of the system; `nil` trusts those of the
    /// system.
    public var certificateAuthorities: URL?
    /// The maximum time without a received byte, in seconds, limited to 1 to 86,400. After this time, the connection is
    /// replaced by a new one.
    public var stallTimeout: Double = 30
    /// The maximum number of consecutive attempts (requests) without a received byte before the download fails.
    ///
    /// Until the first byte arrives, attempts are counted separately for each URL. `nil` means no limit: the download
    /// waits for the network and resumes automatically.
    public var maximumTries: Int?
    /// The wait before the first retry, in seconds, from 0.001 to 86,400; `nil` means 1 second. Each further failure
    /// doubles the wait, up to a minute.
    public var retryWait: Double?
    /// The longest pause that a server may request (`Retry-After`) without making the download fail, in seconds, from
    /// 0.001 to 31,622,400; `nil` means no limit. Needs ``maximumTries``.
    public var maximumWait: Double?
    /// HTTP statuses after which a request is retried, in addition to those that are always retried: 202 and 400 to
    /// 599, except 407 and 416. `nil` means none.
    public var retryStatuses: Set<Int>?
    /// The maximum number of consecutive redirects, 0 to 100; `nil` means 20.
    public var maximumRedirects: Int?
    /// The maximum size of the file in bytes; `nil` means no limit. A longer file fails with `fileTooLarge`.
    public var maximumSize: Int64?
    /// A Boolean value that indicates whether the download may resume without proof that the file on the server is
    /// unchanged.
    ///
    /// This property matters if the server sends neither a strong ETag nor a suitable date. If `true`, only the length
    /// and the last bytes before the resume point are compared. If `false`, such a download restarts after an
    /// interruption.
    public var allowsUnsafeResume = false

    /// A Boolean value that indicates whether the download connects only to public addresses, also after redirects, and
    /// without a proxy.
    ///
    /// Set this property for URLs from untrusted users, who must not reach services on this machine or its network
    /// (CWE-918). A download of a host without a public address fails with `addressRefused`.
    public var publicAddressesOnly: Bool {
        get { isPublicOnly ?? false }
        set { isPublicOnly = newValue ? true : nil }
    }
    private var isPublicOnly: Bool?

    /// A Boolean value that indicates whether checksums that the server sends are ignored. `checksum` is still
    /// verified.
    ///
    /// Set this property if the server sends a wrong checksum.
    public var ignoresServerChecksums: Bool {
        get { areServerChecksumsIgnored ?? false }
        set { areServerChecksumsIgnored = newValue ? true : nil }
    }
    private var areServerChecksumsIgnored: Bool?

    /// A Boolean value that indicates whether a web page is accepted even if the name or the URL is that of another
    /// kind of file. If `false`, such a page is refused as a probable login page.
    public var acceptsWebPages: Bool {
        get { areWebPagesAccepted ?? false }
        set { areWebPagesAccepted = newValue ? true : nil }
    }
    private var areWebPagesAccepted: Bool?

    /// A Boolean value that indicates whether the file is downloaded from the first byte to the last over one
    /// connection.
    public var isSequential: Bool {
        get { usesOneConnection ?? false }
        set { usesOneConnection = newValue ? true : nil }
    }
    private var usesOneConnection: Bool?

    /// A Boolean value that indicates whether only HTTP/1.1 is used, even if the server offers HTTP/2.
    public var usesHTTP1Only: Bool {
        get { isHTTP1Only ?? false }
        set { isHTTP1Only = newValue ? true : nil }
    }
    private var isHTTP1Only: Bool?

    /// A Boolean value that indicates whether a redirect may lead from https to http, and a mirror of an https URL may
    /// use http.
    public var allowsDowngrade: Bool {
        get { isDowngradeAllowed ?? false }
        set { isDowngradeAllowed = newValue ? true : nil }
    }
    private var isDowngradeAllowed: Bool?

    /// Other URLs of the same file, at most 16.
    ///
    /// Mirrors deliver parts of the file and replace the first URL if it fails. Bytes of different URLs are joined only
    /// with proof: a checksum of the file or the same strong ETag. `headers` and `user` are not sent to mirrors.
    public var mirrors: [URL] {
        get { otherURLs ?? [] }
        set { otherURLs = newValue.isEmpty ? nil : newValue }
    }
    private var otherURLs: [URL]?

    /// Creates a request with the default options.
    public init(from url: URL, to destination: Destination) {
        self.url = url
        self.destination = destination
    }
}
