/// The terms of a transfer: the user's options that affect its decisions.
package struct TransferTerms: Hashable, Sendable {
    /// The URL that the user gave.
    package let source: HTTPURL
    /// The name that the URL gives the file.
    package let nameOfURL: String
    /// The number of connections that the user set; `nil`: find the best number.
    package var connections: Int?
    /// `true` to use one connection, from the first byte to the last.
    package var sequential = false
    /// `true` to ignore the server's Content-Length, which also excludes ranges.
    package var ignoresLength = false
    /// `true` if the bytes go to a stream. Written bytes then cannot be removed.
    package var isStream = false
    /// The policy for retries.
    package var retry = RetryPolicy()
    /// The statuses that are transient in addition to those of the retry table.
    package var retryStatuses: Set<Int> = []
    /// The time without a byte after which a connection counts as dead.
    package var stallTimeout = Duration.seconds(30)
    /// The time limit for opening a connection, which the transport keeps.
    package var connectTimeout = Duration.seconds(30)
    /// The time limit for a response head, for messages: the transport keeps it.
    package var headTimeout = Duration.seconds(300)
    /// The length of the longest file that is accepted, in bytes; `nil`: no limit.
    package var maximumSize: Int64?
    /// The maximum number of redirects followed in a row.
    package var maxRedirects = 20
    /// `true` if redirects from https to http are followed.
    package var allowsDowngrade = false
    /// `true` to resume with an equal length and overlap as the only proof.
    package var unsafeResume = false
    /// `true` to start over if the file changed.
    package var restartsChanged = true
    /// The checksum of the whole file that the user gave.
    package var checksum: Checksum?
    /// `true` to accept a web page whatever the expected file type.
    package var acceptsWebPages = false
    /// The name that the user gave the file.
    package var fileName: String?
    /// `true` to ignore the checksums that servers send.
    package var ignoresServerChecksums = false
    /// The other URLs of the same file.
    package var mirrors: [HTTPURL] = []
    /// The user's own header fields. They are sent to the first origin only.
    package var userFields = HTTPFields()
    /// `true` if a user name and password, or a token, are sent to the first origin.
    package var hasUser = false

    /// Creates the default terms for a URL.
    package init(source: HTTPURL) {
        self.source = source
        nameOfURL = SafeFileName.ofURL(source)
    }
}

extension ResponseQuestion {
    /// Copies the user's options that affect the evaluation of a response.
    mutating func adopt(_ terms: TransferTerms) {
        ignoresServerChecksums = terms.ignoresServerChecksums
        acceptsWebPages = terms.acceptsWebPages
        retryStatuses = terms.retryStatuses
        fileName = terms.fileName
    }
}

/// The part of a file that an earlier transfer left on disk.
package struct HeldDownload: Hashable, Sendable {
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// The bytes that count as written.
    package var written: ByteRangeSet
    /// The bytes that are durable.
    package var durable: ByteRangeSet
    /// `true` to compare the bytes before each resume point, even if there is other proof.
    package var isDoubtful: Bool
    /// `true` if the bytes may not come from the server: the part file is not the file that the journal describes,
    /// or the bytes came over http and the file is now requested over https.
    package var isUntrusted: Bool
    /// The known checksums.
    package var checksums: [Checksum]
    /// `true` if the server did not support range requests for the file.
    package var lacksRanges: Bool

    /// Creates a description of the bytes.
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
