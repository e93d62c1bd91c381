package import TowlineCore

/// The options of one download.
package struct DownloadOptions: Sendable {
    /// The most mirrors of one download.
    package static let mostMirrors = 16

    /// Refuses mirrors over http for a file that is requested over https: anybody on the network path could replace
    /// their bytes. A checksum of the whole file proves the bytes, unless it can be forged (CRC-32C).
    ///
    /// - Throws: `unusableOption`.
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

    /// Returns whether bytes of unknown origin may be used: a checksum proves them, or the user takes the risk.
    var allowsUntrustedBytes: Bool { unsafeResume || !(checksum?.isForgeable ?? true) }

    /// Returns whether bytes that an earlier run left may have come over http, and the user does not allow that.
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
        /// A file in `directory`. `name` is one path component; `nil`: the name from the server or the URL.
        case file(directory: String, name: String?)
        /// An output that takes the bytes in order, from the first to the last.
        case stream(StreamOutput)

        /// Standard output.
        package static let standardOutput = Target.stream(.descriptor(1))

        /// Returns whether the bytes go out in order, so that no byte can be written again.
        var isStream: Bool { if case .stream = self { true } else { false } }
    }

    /// The URL of the file.
    package var url: HTTPURL
    /// Other URLs of the same file, used for segments and if the first URL fails. Requests to them carry no credentials
    /// and none of the user's fields.
    package var mirrors: [HTTPURL] = []
    /// The destination of the file.
    package var target: Target
    /// The most connections of this download, 1 … 128; `nil`: as many as pay off, at most 16.
    package var connections: Int?
    /// The rate limit of this download, in bytes per second; `nil` or 0: no limit.
    package var rateLimit: Int64?
    /// The checksum that the complete file must have; `nil` if the user gave no checksum.
    package var checksum: Checksum?
    /// `true` if a web page is accepted, no matter what the file should be.
    package var acceptsWebPages = false
    /// `true` if checksums that servers send are ignored.
    package var ignoresServerChecksums = false
    /// The user's own header fields, which are sent to the first origin only.
    package var userFields = HTTPFields()
    /// The connection settings and the user's credentials, which are sent to the first origin only.
    package var connection = ConnectionOptions()
    /// The number of consecutive attempts without a byte after which the transfer fails; 0: no limit. It applies to
    /// each URL separately until one URL delivers a byte.
    package var maxTries = 20
    /// The HTTP statuses that are transient in addition to those of the retry table.
    package var retryStatuses: Set<Int> = []
    /// The first wait after a failure. The wait doubles up to a minute.
    package var retryWait = Duration.seconds(1)
    /// The longest pause that a server may ask for (`Retry-After`); `nil`: any.
    package var longestWait: Duration?
    /// The maximum time without a byte, after which the connection is replaced.
    package var stallTimeout = Duration.seconds(30)
    /// The longest file that is accepted, in bytes; `nil`: any.
    package var maximumSize: Int64?
    /// The most consecutive redirects that are followed.
    package var maxRedirects = 20
    /// `true` if a redirect may lead from https to http, and a mirror of an https URL may use http.
    package var allowsDowngrade = false
    /// The policy for a name that is already taken.
    package var existing = ExistingPolicy.fail
    /// `true` to wait for stable storage before the download counts as finished.
    package var durable = true
    /// `true` to resume by length and overlap alone if the server sends no validator.
    package var unsafeResume = false
    /// `true` if an unfinished download under the same name is this download, even with another URL: a link may have
    /// been renewed.
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

/// An output that takes bytes in order only.
package enum StreamOutput: Hashable, Sendable {
    /// A descriptor that this process was started with.
    case descriptor(Int32)
    /// A FIFO or a device.
    case path(String)
}
