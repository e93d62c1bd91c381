package import TowlineCore

/// What a user asks of one download.
package struct DownloadOptions: Sendable {
    /// So many mirrors at most.
    package static let mostMirrors = 16

    /// Refuses mirrors over http for a file that is requested over https: anybody on the network path could replace their
    /// bytes. A checksum of the whole file proves the bytes, unless it can be forged (CRC-32C).
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

    /// Where to put the bytes.
    package enum Target: Hashable, Sendable {
        /// A file in `directory`; `name` is one path component, `nil` to take what the server or the URL says.
        case file(directory: String, name: String?)
        /// Bytes in order, from the first to the last.
        case stream(StreamOutput)

        /// Standard output.
        package static let standardOutput = Target.stream(.descriptor(1))

        /// Returns whether the bytes go out in order, so that no byte can be written again.
        var isStream: Bool { if case .stream = self { true } else { false } }
    }

    /// Where from.
    package var url: HTTPURL
    /// Other URLs of the same file, asked for parts of it and where the first fails; they get no credentials and none of the
    /// user's fields.
    package var mirrors: [HTTPURL] = []
    /// Where to.
    package var target: Target
    /// Most connections for this download, 1 … 128; `nil`: as many as pay off, at most 16.
    package var connections: Int?
    /// Bytes per second for this download.
    package var rateLimit: Int64?
    /// What the whole must hash to.
    package var checksum: Checksum?
    /// A web page is accepted whatever the file should be.
    package var acceptsWebPages = false
    /// Checksums that servers send are not used.
    package var ignoresServerChecksums = false
    /// The user's own header fields; they go to the first origin only.
    package var userFields = HTTPFields()
    /// How to connect, and who the user is; credentials go to the first origin only.
    package var connection = ConnectionOptions()
    /// Attempts in a row that bring nothing before the transfer gives up, of each of its URLs while none has brought a byte;
    /// 0: no end.
    package var maxTries = 20
    /// Statuses that are transient besides those of the retry table.
    package var retryStatuses: Set<Int> = []
    /// The first wait after a failure; doubles up to a minute.
    package var retryWait = Duration.seconds(1)
    /// The longest pause that a server may ask for (`Retry-After`); `nil`: any.
    package var longestWait: Duration?
    /// No byte for so long means: replace the connection.
    package var stallTimeout = Duration.seconds(30)
    /// The longest file that is accepted, in bytes; `nil`: any.
    package var maximumSize: Int64?
    /// Redirects followed in a row.
    package var maxRedirects = 20
    /// May a redirect lead from https to http.
    package var allowsDowngrade = false
    /// What to do if the name is taken.
    package var existing = ExistingPolicy.fail
    /// Wait for stable storage before calling it done.
    package var durable = true
    /// Go on with length and overlap alone where the server gives no validator.
    package var unsafeResume = false
    /// What is unfinished under its name is this download, whatever its URL was then: a link may have been renewed.
    package var ownsPart = false
    /// One connection, first byte to last.
    package var sequential = false
    /// Start over when the file changed on the server; otherwise fail with `changedOnServer`.
    package var restartsChanged = true
    /// Reserve the space at the start.
    package var reservesSpace = true

    /// Defaults for a URL and a target.
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
