/// The input of a transfer from the user: the URLs and the options that affect its decisions.
package struct TransferTerms: Hashable, Sendable {
    /// The URL that the user gave.
    package let source: HTTPURL
    /// The file name in the URL, used if the server sends none and the user gave none.
    package let nameOfURL: String
    /// The options of the transfer. A transfer that ignores Content-Length is also sequential.
    package var options = TransferOptions()
    /// `true` to ignore the server's Content-Length (`--ignore-length`), which also excludes range requests.
    package var ignoresLength = false
    /// `true` if the bytes go to a stream, such as standard output. Written bytes then cannot be removed.
    package var isStream = false
    /// The time limit for opening a connection, which the transport (the HTTP client) enforces.
    package var connectTimeout = Duration.seconds(30)
    /// The time limit for a response head, which the transport (the HTTP client) enforces. The state machine shows it
    /// in messages.
    package var headTimeout = Duration.seconds(300)
    /// The action if the file changed on the server after bytes were downloaded.
    package var changed = ChangePolicy.restart
    /// The minimum time between a claimed change of the file and the request that confirms the change: a server that
    /// fails for a moment would confirm its own error.
    package var confirmationWait = Duration.seconds(2)
    /// `true` if the caller starts the transfer again after it failed with `transient`. The maximum number of attempts
    /// then does not end the download, so messages do not count attempts.
    package var isRepeated = false
    /// The name that the user gave the file; `nil`: the server or the URL names it.
    package var fileName: String?
    /// The mirrors: the other URLs of the same file.
    package var mirrors: [HTTPURL] = []
    /// The user's own header fields. They are sent only to the origin of `source`.
    package var userFields = HTTPFields()
    /// `true` if the request to the origin of `source` carries a user name and password, or a token. The message for a
    /// refusal depends on it.
    package var hasUser = false

    /// Creates the default terms (options) for a transfer from a URL.
    package init(source: HTTPURL) {
        self.source = source
        nameOfURL = SafeFileName.ofURL(source)
    }

    /// The policy for retries: the number of tries and the waits between them.
    var retry: RetryPolicy {
        RetryPolicy(maxTries: options.maximumTries ?? 20, backoff: Backoff(base: options.retryWait))
    }
}

/// Limits, texts and errors of a transfer that depend on the user's options.
extension TransferTerms {
    /// The time without a byte after which a response is cut whose bytes would be lost.
    var patientTimeout: Duration { options.stallTimeout * 10 }

    /// Returns the part of a notice that names the number of a failed attempt and the maximum; empty if the download
    /// does not end when the maximum is reached.
    ///
    /// - Parameter code: the code of the error with which the transfer fails at the maximum.
    func attemptCount(_ number: Int, of allowed: Int?, _ code: TowlineError.Code) -> String {
        guard let allowed, !(isRepeated && code == .transient) else { return "" }
        return ", attempt \(number) of \(allowed)"
    }

    /// Returns an error if `wait`, which the server at `url` asks for, is longer than the user accepts (`--max-wait`);
    /// otherwise `nil`.
    func tooLong(_ wait: Duration, _ url: HTTPURL) -> TowlineError? {
        guard let longest = options.maximumWait, wait > longest else { return nil }
        return TowlineError(
            .transient,
            "\(url): the server asks for a pause of \(DurationText.inSentence(wait)) before the next request"
                + " (Retry-After). Start the download again after that time, or"
                + " \(Remedy.longerWait) than \(DurationText.inSentence(longest))")
    }
}

extension ResponseQuestion {
    /// Copies the user's options that affect the evaluation of a response.
    mutating func adopt(_ terms: TransferTerms) {
        ignoresServerChecksums = terms.options.ignoresServerChecksums
        acceptsWebPages = terms.options.acceptsWebPages
        retryStatuses = terms.options.retryStatuses
        fileName = terms.fileName
    }
}

/// The part of a file that an earlier transfer left on disk, with the metadata in its journal.
package struct HeldDownload: Hashable, Sendable {
    /// The metadata (length, validators) of the file that the bytes belong to.
    package var representation: Representation
    /// The bytes of the part file that count as written, according to the journal.
    package var written: ByteRangeSet
    /// The bytes of the part file that were synced to disk and survive a power loss.
    package var durable: ByteRangeSet
    /// `true` to compare the bytes before each resume point, even if there is other proof.
    package var isDoubtful: Bool
    /// `true` if the part file may be the file that the journal describes, but has another inode number. The bytes
    /// before each resume point and samples of the others then prove it (`HeldSamples`).
    package var isRenumbered = false
    /// `true` if the bytes may not come from the server: the part file is not the file that the journal describes,
    /// or the bytes came over http and the file is now requested over https.
    package var isUntrusted: Bool
    /// The checksums of the whole file that the user or the server gave.
    package var checksums: [Checksum]
    /// `true` if the server did not support range requests for the file.
    package var lacksRanges: Bool

    /// Creates a description of the part of a file that an earlier transfer left on disk.
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

extension HeldDownload {
    /// Returns whether bytes that an earlier transfer left on disk may be used.
    ///
    /// A journal beside a part file that is not its own proves nothing: both may come from an archive or another user.
    /// Bytes that came over http prove nothing for https. Only a checksum that the user gave and that nobody can forge
    /// proves such bytes. An empty file needs one request to prove it.
    func isBelievable(_ terms: TransferTerms) -> Bool {
        if isUntrusted, terms.options.checksum?.isForgeable ?? true, !terms.options.allowsUnsafeResume { return false }
        return representation.completeLength != 0
    }
}
