/// What a failure means for the next attempt.
package enum FailureClass: Hashable, Sendable {
    /// Another attempt may work: at most `limit` in a row that bring nothing (`nil`: the user's own limit).
    case transient(limit: Int?)
    /// No attempt will mend it.
    case permanent(TowlineError.Code)
}

/// The retry table: a row per way in which the wire can fail, with its reason. `docs/retry-table.md` shows it with
/// the statuses of HTTP, which `ResponseEvaluator` classifies.
package struct RetryPolicy: Hashable, Sendable {
    /// Attempts in a row that bring nothing before the transfer gives up; 0: no end.
    package var maxTries: Int
    /// How long to wait between them.
    package var backoff: Backoff
    /// The longest `Retry-After` that is waited for; a longer one ends the transfer. `nil`: any is.
    package var longestWait: Duration?

    /// Makes a policy.
    package init(maxTries: Int = 20, backoff: Backoff = Backoff(base: .seconds(1))) {
        self.maxTries = maxTries
        self.backoff = backoff
    }

    /// Whether it is how a server refuses one connection too many.
    static func mayBeTooMany(_ kind: TransportFailure.Kind) -> Bool {
        [.closedBeforeHead, .connectFailed, .streamRefused, .connectTimedOut].contains(kind)
    }

    /// The row for a failure.
    package static func classify(_ kind: TransportFailure.Kind) -> FailureClass {
        switch kind {
        // Wi-Fi that is just coming up resolves nothing; a name that is wrong never will. Five tries tell them apart.
        case .hostNotFound, .hostNotPublic: .transient(limit: 5)
        // The server restarts, the route flaps, the port is not open yet.
        case .connectFailed, .connectTimedOut: .transient(limit: nil)
        // The proxy may restart, but one that refuses us will go on refusing.
        case .proxyFailed: .transient(limit: 3)
        // Nobody but the user can correct credentials, and a proxy may lock an account after a few wrong ones.
        case .proxyUnauthorized: .permanent(.refusedByServer)
        case .proxyUnusable: .permanent(.unusableOption)
        // Nobody but the user can name another certificate or another file.
        case .clientCertificateRefused: .permanent(.refusedByServer)
        case .tlsFileUnusable: .permanent(.unusableOption)
        // Versions and ciphers do not change while anybody waits.
        case .tlsIncompatible: .permanent(.untrustedServer)
        // Nobody but the user can decide to trust.
        case .certificateRefused: .permanent(.untrustedServer)
        case .addressRefused: .permanent(.addressRefused)
        // A handshake that broke may have been a reset; one that cannot agree fails again at once.
        case .tlsFailed: .transient(limit: 3)
        // The oldest failure of all; the bytes before it are kept.
        case .closedBeforeHead, .bodyCut: .transient(limit: nil)
        // Slow is not dead.
        case .headTimedOut: .transient(limit: nil)
        // Nothing was processed (RFC 9113 §8.7).
        case .streamRefused: .transient(limit: nil)
        // The next attempt speaks HTTP/1.1.
        case .http2Failed: .transient(limit: nil)
        // A head that long is an attack or a mistake; neither passes by waiting.
        case .headTooLarge: .permanent(.invalidResponse)
        // Once may be a broken middle box, three times is the server.
        case .malformed: .transient(limit: 3)
        // Without a thread the process cannot wait for one. The run fails at once; another run may succeed.
        case .threadRefused: .permanent(.transient)
        // Descriptors or memory come back.
        case .local: .transient(limit: 10)
        case .other: .transient(limit: 5)
        }
    }

    /// The error code once the tries of a transient failure are used up. Where it never worked at all and asking
    /// again is no use, that is not `transient`.
    package static func exhausted(_ kind: TransportFailure.Kind) -> TowlineError.Code {
        switch kind {
        case .malformed: .invalidResponse
        case .hostNotPublic: .addressRefused
        default: .transient
        }
    }

    /// Whether `failures` in a row are too many.
    package func isExhausted(failures: Int, limit: Int?) -> Bool {
        allowedTries(limit: limit).map { failures >= $0 } ?? false
    }

    /// Attempts in a row that may bring nothing; `nil`: no end.
    package func allowedTries(limit: Int?) -> Int? { [maxTries, limit ?? 0].filter { $0 > 0 }.min() }
}
