import CCurl
internal import TowlineCore
internal import TowlineEngine

/// The function that recognizes permanent failures of TLS, which another attempt cannot avoid, by OpenSSL's texts of
/// alerts and errors (RFC 8446 §6.2).
extension FailureTable {
    /// The failure of a request whose server requires a client certificate and received none.
    static let certificateRequired = TransportFailure(
        .clientCertificateRefused,
        Remedy.clientCertificate.rawValue)

    /// The texts of TLS alerts with which a server rejects the client's certificate or requires one.
    private static let certificateAlerts = [
        "certificate required", "bad certificate", "certificate unknown", "unsupported certificate",
        "certificate revoked", "certificate expired", "unknown ca", "access denied",
    ].map { "alert \($0)" }

    /// The texts of TLS errors that mean that client and server have no version of TLS in common.
    private static let versionErrors = [
        "unsupported protocol", "alert protocol version", "no protocols available", "wrong ssl version",
    ]

    /// The texts of TLS errors that mean that client and server have no cipher in common, or that a key is too short to
    /// be secure.
    private static let cipherErrors = [
        "alert handshake failure", "no shared cipher", "dh key too small", "ee key too small",
        "unsafe legacy renegotiation disabled", "alert insufficient security",
    ]

    private static let codes = [
        CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION, CURLE_RECV_ERROR, CURLE_SEND_ERROR,
        CURLE_SSL_CACERT_BADFILE,
    ]

    /// Returns the failure if one side refused the TLS connection because of a certificate, a version or a cipher;
    /// `nil` if libcurl's result `code` alone describes the failure.
    static func tlsRefusal(of attempt: Attempt, _ code: CURLcode) -> TransportFailure? {
        guard attempt.phase != .body, attempt.origin.scheme == .https,
            codes.contains(code)
        else { return nil }
        let detail = attempt.handle.errorDetail ?? ""
        func says(_ texts: [String]) -> Bool { texts.contains { detail.contains($0) } }
        let isAsked = CertificateRequests.contains(attempt.id)
        // A server that closes before it reads the request rejects the handshake, usually the certificate.
        let isClosed =
            attempt.connection.requestCount == 1 && (code == CURLE_SEND_ERROR || says(["Send failure"]))
        if attempt.pool.options.clientCertificate != nil, says(certificateAlerts) || isClosed {
            let reason =
                "\(Remedy.rejectedCertificate). It may be expired, or from an authority that the"
                + " server does not trust"
            return TransportFailure(.clientCertificateRefused, reason)
        }
        if isAsked, says(certificateAlerts) || says(cipherErrors) || isClosed { return certificateRequired }
        guard attempt.phase == .connecting else { return nil }
        if code == CURLE_SSL_CACERT_BADFILE, attempt.pool.options.certificateAuthorityFile == nil {
            let named = NamedAuthorities.file.map { "\($0.path) (environment variable \($0.variable))" }
            let reason =
                "the file of trusted certificates \(named ?? SystemAuthorities.file ?? "") cannot be read or contains no"
                + " certificate. Install the package ca-certificates, or \(Remedy.authorities)"
            return TransportFailure(.tlsFileUnusable, reason)
        }
        if says(versionErrors) {
            let reason =
                "the server supports only versions of TLS before 1.2, which are not secure. Use another server, or an"
                + " http:// URL, and \(Remedy.checksum)"
            return TransportFailure(.tlsIncompatible, reason)
        }
        if says(cipherErrors) || code == CURLE_SSL_CIPHER {
            let reason =
                "the server and this machine have no secure encryption method of TLS in common, or"
                + " \(Remedy.clientCertificate)"
            return TransportFailure(.tlsIncompatible, reason)
        }
        return nil
    }
}
