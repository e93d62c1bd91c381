extension TowlineError {
    /// A failure of the network or of a server, as the cause of an error. New kinds can be added without breaking
    /// existing clients.
    public struct NetworkFailure: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the failure, as printed by `--json`.
        public let description: String

        /// The host name cannot be resolved.
        public static let hostNotFound = NetworkFailure("hostNotFound")
        /// The host cannot be reached, or it refuses the connection.
        public static let connectionFailed = NetworkFailure("connectionFailed")
        /// The connection to the host or proxy was not open within the time limit.
        public static let connectionTimedOut = NetworkFailure("connectionTimedOut")
        /// The connection closed before the response was complete.
        public static let connectionLost = NetworkFailure("connectionLost")
        /// The server was connected but sent no byte, or too few, in time.
        public static let responseTimedOut = NetworkFailure("responseTimedOut")
        /// The response is not valid HTTP.
        public static let malformedResponse = NetworkFailure("malformedResponse")
        /// The proxy cannot be reached, or it refuses the request or its credentials.
        public static let proxyFailed = NetworkFailure("proxyFailed")
        /// The server's certificate is not trusted, expired, or for another host.
        public static let certificateRefused = NetworkFailure("certificateRefused")
        /// The server requires a client certificate and received none, or rejected it.
        public static let clientCertificateRefused = NetworkFailure("clientCertificateRefused")
        /// The TLS handshake failed for a reason other than a refused certificate.
        public static let tlsFailed = NetworkFailure("tlsFailed")

        private init(_ name: String) { description = name }

        /// Creates the network failure whose stable name, as in `description`, is `name`. Returns `nil` for an unknown
        /// name.
        package init?(name: String) {
            let known: [NetworkFailure] = [
                .hostNotFound, .connectionFailed, .connectionTimedOut, .connectionLost, .responseTimedOut,
                .malformedResponse, .proxyFailed, .certificateRefused, .clientCertificateRefused, .tlsFailed,
            ]
            guard let failure = known.first(where: { $0.description == name }) else { return nil }
            self = failure
        }

        /// Creates the public value for a failure that the HTTP transport reported. Returns `nil` if the failure
        /// occurred on this machine or its cause is unknown.
        package init?(_ kind: TransportFailure.Kind) {
            switch kind {
            // Equal for both: a client that may use public addresses only must not learn which names exist.
            case .hostNotFound, .hostNotPublic: self = .hostNotFound
            case .connectFailed: self = .connectionFailed
            case .connectTimedOut: self = .connectionTimedOut
            case .closedBeforeHead, .bodyCut, .streamRefused, .http2Failed: self = .connectionLost
            case .headTimedOut: self = .responseTimedOut
            case .headTooLarge, .malformed: self = .malformedResponse
            case .proxyFailed, .proxyUnauthorized: self = .proxyFailed
            case .certificateRefused: self = .certificateRefused
            case .clientCertificateRefused: self = .clientCertificateRefused
            case .tlsIncompatible, .tlsFailed: self = .tlsFailed
            case .proxyUnusable, .addressRefused, .tlsFileUnusable, .unsupported, .threadRefused, .local, .other:
                return nil
            }
        }
    }
}
