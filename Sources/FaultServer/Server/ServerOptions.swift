/// How a ``FaultServer`` listens.
package struct ServerOptions: Sendable {
    /// Certificate chain and key in PEM files; with them the server speaks TLS.
    package struct TLS: Sendable {
        /// The file of the chain, the server's own certificate first.
        package var certificateChain: String
        /// The file of the private key.
        package var privateKey: String
        /// Serves no version later than TLS 1.1, which clients must refuse (RFC 8996).
        package var onlyOldVersions: Bool

        /// TLS with that certificate.
        package init(certificateChain: String, privateKey: String, onlyOldVersions: Bool = false) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
            self.onlyOldVersions = onlyOldVersions
        }
    }

    /// A connection that was just accepted.
    package struct Arrival: Sendable {
        /// Its number; the server's first is 0.
        package let number: Int
        /// How many connections are open, this one included.
        package let open: Int
    }

    /// The address to listen at.
    package var host = "127.0.0.1"
    /// The port; 0 lets the system choose.
    package var port = 0
    /// TLS; `nil` is cleartext.
    package var tls: TLS?
    /// Whether connections that begin with HTTP/2's preface are served as HTTP/2 (RFC 9113 §3.3, and by ALPN
    /// over TLS). Others are served as HTTP/1.1.
    package var http2 = false
    /// SETTINGS_INITIAL_WINDOW_SIZE that HTTP/2 clients are told (RFC 9113 §6.5.2); `nil` leaves the usual 65,535.
    package var http2InitialWindow: UInt32?
    /// Steps for a connection before its first request is read; `nil` reads it.
    package var onAccept: @Sendable (Arrival) -> [Reply.Step]? = { _ in nil }
    /// Where the log is also written, as it happens.
    package var logFile: LogFile?
    /// Bytes per second of all replies together; `nil` for no limit.
    package var sharedRate: Int64?

    /// The usual options.
    package init() {}
}
