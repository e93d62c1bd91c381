/// The class of a failed attempt: it decides whether another attempt follows.
package enum FailureClass: Hashable, Sendable {
    /// Another attempt may succeed. After `limit` attempts in a row without a received byte the download fails (`nil`:
    /// only the user's limit `maxTries` applies).
    case transient(limit: Int?)
    /// No further attempt can succeed: the download fails with this error code.
    case permanent(TowlineError.Code)
}

/// Decides whether a failed request is retried: a table with a row for each kind of transport failure and its reason.
/// `docs/retry-table.md` contains the table and the HTTP statuses, which `ResponseEvaluator` classifies.
package struct RetryPolicy: Hashable, Sendable {
    /// The number of consecutive attempts without a received byte after which the download fails, as the user set it;
    /// 0: no limit.
    package var maxTries: Int
    /// The first and the longest wait between attempts if the server does not request a wait.
    package var backoff: Backoff

    /// Creates the retry policy of a download from its retry limit and its waits.
    package init(maxTries: Int = 20, backoff: Backoff = Backoff(base: .seconds(1))) {
        self.maxTries = maxTries
        self.backoff = backoff
    }

    /// Returns whether a transport failure of this kind may mean that the server allows no further connection. The
    /// download then uses fewer connections.
    static func mayBeTooMany(_ kind: TransportFailure.Kind) -> Bool {
        [.closedBeforeHead, .connectFailed, .streamRefused, .connectTimedOut].contains(kind)
    }

    /// Returns the class of a kind of transport failure, from the retry table: it decides whether the request is
    /// retried.
    package static func classify(_ kind: TransportFailure.Kind) -> FailureClass {
        switch kind {
        // Wi-Fi that is just connecting resolves no name; a wrong name never resolves. Five attempts distinguish them.
        case .hostNotFound, .hostNotPublic: .transient(limit: 5)
        // The server may restart, the route may be unstable, or the port may not be open yet.
        case .connectFailed, .connectTimedOut: .transient(limit: nil)
        // The proxy may restart, but a proxy that refuses the request continues to refuse it.
        case .proxyFailed: .transient(limit: 3)
        // Only the user can correct credentials, and a proxy may lock an account after a few wrong ones.
        case .proxyUnauthorized: .permanent(.refusedByServer)
        case .proxyUnusable: .permanent(.unusableOption)
        // Only the user can name another certificate or file.
        case .clientCertificateRefused: .permanent(.refusedByServer)
        case .tlsFileUnusable: .permanent(.unusableOption)
        // Only the user can remove the option or choose another transport.
        case .unsupported: .permanent(.unusableOption)
        // Versions and ciphers do not change during a wait.
        case .tlsIncompatible: .permanent(.untrustedServer)
        // Only the user can decide to trust the server.
        case .certificateRefused: .permanent(.untrustedServer)
        case .addressRefused: .permanent(.addressRefused)
        // A failed handshake may have been a reset; a handshake without agreement fails again at once.
        case .tlsFailed: .transient(limit: 3)
        // The connection broke, which is normal; the bytes before the break are kept.
        case .closedBeforeHead, .bodyCut: .transient(limit: nil)
        // A slow server is not a dead one.
        case .headTimedOut: .transient(limit: nil)
        // The server did not process the request (RFC 9113 §8.7).
        case .streamRefused: .transient(limit: nil)
        // The next attempt uses HTTP/1.1.
        case .http2Failed: .transient(limit: nil)
        // Such a long head is an attack or a mistake; waiting helps against neither.
        case .headTooLarge: .permanent(.invalidResponse)
        // The first failure may be due to a faulty middlebox; three failures are due to the server.
        case .malformed: .transient(limit: 3)
        // Without a thread the process cannot wait for one. The run fails at once; another run may succeed.
        case .threadRefused: .permanent(.transient)
        // Descriptors or memory may become available again.
        case .local: .transient(limit: 10)
        case .other: .transient(limit: 5)
        }
    }

    /// Returns the error code of a download whose retries of a transport failure are exhausted: `transient`, or another
    /// code if a new run is unlikely to succeed.
    package static func exhausted(_ kind: TransportFailure.Kind) -> TowlineError.Code {
        switch kind {
        case .malformed: .invalidResponse
        case .hostNotPublic: .addressRefused
        default: .transient
        }
    }

    /// Returns whether the download fails after `failures` consecutive attempts without a byte. `limit` is the limit of
    /// the failure's class in the retry table; `nil`: only `maxTries` applies.
    package func isExhausted(failures: Int, limit: Int?) -> Bool {
        allowedTries(limit: limit).map { failures >= $0 } ?? false
    }

    /// Returns the maximum number of consecutive attempts without a byte: the lower of `maxTries` and `limit`; `nil`:
    /// no limit.
    package func allowedTries(limit: Int?) -> Int? { [maxTries, limit ?? 0].filter { $0 > 0 }.min() }
}
