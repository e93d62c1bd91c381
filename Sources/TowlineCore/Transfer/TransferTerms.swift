/// What a transfer must keep to: the part of the user's wishes that decisions depend on.
package struct TransferTerms: Hashable, Sendable {
    /// The URL the user gave.
    package let source: HTTPURL
    /// The name that the URL gives the file.
    package let nameOfURL: String
    /// Connections asked for; `nil`: find out.
    package var connections: Int?
    /// One connection, first byte to last.
    package var sequential = false
    /// The server's Content-Length is not read, so neither are ranges used.
    package var ignoresLength = false
    /// Bytes go to a stream: what is out cannot be taken back.
    package var isStream = false
    /// When to try again.
    package var retry = RetryPolicy()
    /// Statuses that are transient besides those of the retry table.
    package var retryStatuses: Set<Int> = []
    /// No byte for so long means that a connection is dead.
    package var stallTimeout = Duration.seconds(30)
    /// The time limit for opening a connection, which the transport keeps.
    package var connectTimeout = Duration.seconds(30)
    /// The time limit for a response head, for messages: the transport keeps it.
    package var headTimeout = Duration.seconds(300)
    /// The longest file that is accepted, in bytes.
    package var maximumSize: Int64?
    /// Redirects followed in a row.
    package var maxRedirects = 20
    /// May a redirect lead from https to http.
    package var allowsDowngrade = false
    /// Go on with length and overlap alone.
    package var unsafeResume = false
    /// Start over if the file changed.
    package var restartsChanged = true
    /// What the user says the whole hashes to.
    package var checksum: Checksum?
    /// A web page is accepted whatever the file should be.
    package var acceptsWebPages = false
    /// The name that the user gave the file.
    package var fileName: String?
    /// The checksums that servers send are not used.
    package var ignoresServerChecksums = false
    /// Other URLs of the same file.
    package var mirrors: [HTTPURL] = []
    /// The user's own fields; they go to the first origin only.
    package var userFields = HTTPFields()
    /// Whether a user and a password, or a token, go to the first origin.
    package var hasUser = false

    /// Defaults for a URL.
    package init(source: HTTPURL) {
        self.source = source
        nameOfURL = SafeFileName.ofURL(source)
    }
}

extension ResponseQuestion {
    /// Takes over the user's wishes that a response is judged by.
    mutating func adopt(_ terms: TransferTerms) {
        ignoresServerChecksums = terms.ignoresServerChecksums
        acceptsWebPages = terms.acceptsWebPages
        retryStatuses = terms.retryStatuses
        fileName = terms.fileName
    }
}

/// What an earlier transfer left on disk.
package struct HeldDownload: Hashable, Sendable {
    /// What its bytes are of.
    package var representation: Representation
    /// The bytes that may be believed.
    package var written: ByteRangeSet
    /// The bytes that are durable.
    package var durable: ByteRangeSet
    /// Bytes before each resume point are compared, whatever proof there is.
    package var isDoubtful: Bool
    /// It is not certain that the bytes came from the server. The part file is not the file that the journal describes,
    /// or the bytes came over http and the file is now requested over https.
    package var isUntrusted: Bool
    /// Checksums that are known.
    package var checksums: [Checksum]
    /// The server gave no ranges of it.
    package var lacksRanges: Bool

    /// Makes one.
    package init(
        representation: Representation, written: ByteRangeSet, durable: ByteRangeSet = ByteRangeSet(),
        isDoubtful: Bool = false, isUntrusted: Bool = false, checksums: [Checksum] = [], lacksRanges: Bool = false
    ) {
        self.representation = representation
        self.written = written
        self.durable = durable
        self.isDoubtful = isDoubtful
        self.isUntrusted = isUntrusted
        self.checksums = checksums
        self.lacksRanges = lacksRanges
    }
}
