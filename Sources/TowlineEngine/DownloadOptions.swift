package import TowlineCore

/// The options of one download: its URL, its destination, and how to transfer the file.
package struct DownloadOptions: Sendable {
    /// The maximum number of mirrors of one download.
    package static let mostMirrors = 16

    /// Refuses mirrors over http for a file that is requested over https: anybody on the network path could replace
    /// their bytes. A checksum of the whole file proves the bytes, unless it can be forged (CRC-32C).
    ///
    /// - Throws: `unusableOption` if a mirror is refused.
    package func checkMirrors() throws(TowlineError) {
        guard url.scheme == .https, !allowsDowngrade, checksum?.isForgeable ?? true,
            let mirror = mirrors.first(where: { $0.scheme == .http })
        else { return }
        throw TowlineError(
            .unusableOption,
            "\(mirror.withoutSecrets): a mirror over http cannot be trusted for a file that is requested over https. Give "
                + "a checksum of the file (sha256, for example), use an https mirror, or allow it with --allow-downgrade"
        )
    }

    /// Returns whether bytes on disk that may come from another file can be used: a checksum proves them, or the user
    /// takes the risk (`unsafeResume`).
    var allowsUntrustedBytes: Bool { unsafeResume || !(checksum?.isForgeable ?? true) }

    /// Returns whether bytes that an earlier run left may have come over http, although this download uses https and
    /// the user does not allow http.
    func isDowngrade(from record: DownloadRecord) -> Bool {
        guard url.scheme == .https else { return false }
        return record.source.hasPrefix("http://") || record.mayBePlain && !allowsDowngrade
    }

    /// Returns whether bytes of this run may come over http although the URL is https: from a mirror, or after a
    /// redirect.
    var mayBringPlainBytes: Bool {
        url.scheme == .https && (allowsDowngrade || mirrors.contains { $0.scheme == .http })
    }

    /// The destination of the bytes.
    package enum Target: Hashable, Sendable {
        /// A file in `directory`. `name` is one path component; `nil`: the name that the server or the URL gives.
        case file(directory: String, name: String?)
        /// An output that takes the bytes in order, from the first to the last.
        case stream(StreamOutput)

        /// Standard output.
        package static let standardOutput = Target.stream(.descriptor(1))

        /// Returns whether the bytes are written in order, so that no byte can be written again.
        var isStream: Bool { if case .stream = self { true } else { false } }
    }

    /// The URL of the file.
    package var url: HTTPURL
    /// Other URLs of the same file, used for some byte ranges and if the first URL fails. Requests to them carry no
    /// credentials and none of the user's fields.
    package var mirrors: [HTTPURL] = []
    /// The destination of the bytes: a file or an output stream.
    package var target: Target
    /// The maximum number of connections of this download, 1 … 128; `nil`: as many as increase the rate, at most 16.
    package var connections: Int?
    /// The rate limit of this download, in bytes per second; `nil` or 0: no limit.
    package var rateLimit: Int64?
    /// The checksum that the complete file must have; `nil` if the user gave no checksum.
    package var checksum: Checksum?
    /// `true` to accept a web page whatever the file should be. Otherwise a page, such as a login page, in place of
    /// another kind of file is an error.
    package var acceptsWebPages = false
    /// `true` to ignore checksums that servers send.
    package var ignoresServerChecksums = false
    /// The user's own header fields, which are sent to the origin of `url` only.
    package var userFields = HTTPFields()
    /// The connection settings, and the user's credentials, which are sent to the origin of `url` only.
    package var connection = ConnectionOptions()
    /// The number of consecutive attempts without a byte after which the transfer fails; 0: no limit. Counted for each
    /// URL separately until one URL delivers a byte.
    package var maxTries = 20
    /// The HTTP statuses after which a request is retried, in addition to those that are always retried (429 or 503,
    /// for example).
    package var retryStatuses: Set<Int> = []
    /// Returns whether `retryStatuses` may contain a status: 202 and the errors, except 407 and 416, which have other
    /// meanings.
    package static func mayRetry(status: Int) -> Bool {
        status == 202 || 400...599 ~= status && ![407, 416].contains(status)
    }
    /// The wait before the first retry after a failure. Each further retry doubles the wait, up to a minute.
    package var retryWait = Duration.seconds(1)
    /// The longest pause that a server may request (`Retry-After`) without making the transfer fail; `nil`: any.
    package var longestWait: Duration?
    /// The maximum time without a received byte. After that, the connection is replaced.
    package var stallTimeout = Duration.seconds(30)
    /// The maximum length of the file in bytes; a longer file makes the download fail. `nil`: any.
    package var maximumSize: Int64?
    /// The maximum number of consecutive redirects that are followed; one more makes the request fail.
    package var maxRedirects = 20
    /// `true` if a redirect may lead from https to http, and a mirror of an https URL may use http.
    package var allowsDowngrade = false
    /// The rule for a destination whose name another file already has.
    package var existing = ExistingPolicy.fail
    /// `true` to wait for stable storage before the download counts as finished.
    package var durable = true
    /// `true` to resume an unfinished file if the server sends no validator (ETag or Last-Modified). The only proof
    /// that the file is unchanged is then its length and some repeated bytes that are compared.
    package var unsafeResume = false
    /// `true` if an unfinished file under the same name belongs to this download, even if it came from another URL: a
    /// link may have been renewed.
    package var ownsPart = false
    /// `true` to use one connection, from the first byte to the last.
    package var sequential = false
    /// `true` to start over if the file changed on the server, `false` to fail with `changedOnServer`.
    package var restartsChanged = true
    /// `true` to reserve the disk space at the start.
    package var reservesSpace = true

    /// Creates the default options for a URL and a target.
    package init(url: HTTPURL, target: Target) {
        self.url = url
        self.target = target
    }
}

/// An output that takes bytes in order only, such as a pipe.
package enum StreamOutput: Hashable, Sendable {
    /// A file descriptor that this process was started with.
    case descriptor(Int32)
    /// The path of a FIFO or a device.
    case path(String)
}
