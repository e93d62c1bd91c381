/// The options of a ``FaultServer``.
package struct ServerOptions: Sendable {
    /// A certificate chain and a key in PEM files; with them the server uses TLS.
    package struct TLS: Sendable {
        /// The file of the chain, the server's own certificate first.
        package var certificateChain: String
        /// The file of the private key.
        package var privateKey: String
        /// `true` to offer no version later than TLS 1.1, which clients must refuse (RFC 8996).
        package var onlyOldVersions: Bool

        /// Creates TLS options with a certificate.
        package init(certificateChain: String, privateKey: String, onlyOldVersions: Bool = false) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
            self.onlyOldVersions = onlyOldVersions
        }
    }

    /// A connection that was just accepted.
    package struct Arrival: Sendable {
        /// The number of the connection; the server's first connection is 0.
        package let number: Int
        /// The number of open connections, including this one.
        package let open: Int
    }

    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port; 0 lets the system choose.
    package var port = 0
    /// The TLS options; `nil` for cleartext.
    package var tls: TLS?
    /// `true` to use HTTP/2 on connections that begin with its preface (RFC 9113 §3.3, and by ALPN over TLS), and
    /// HTTP/1.1 on others.
    package var http2 = false
    /// The SETTINGS_INITIAL_WINDOW_SIZE sent to HTTP/2 clients (RFC 9113 §6.5.2); `nil` for the default of 65,535.
    package var http2InitialWindow: UInt32?
    /// A function that returns the steps for a new connection before its first request is read; `nil` for no steps.
    package var onAccept: @Sendable (Arrival) -> [Reply.Step]? = { _ in nil }
    /// A file that receives a copy of the log, event by event; `nil` for no file.
    package var logFile: LogFile?
    /// The maximum bytes per second of all replies together; `nil` for no limit.
    package var sharedRate: Int64?

    /// Creates the default options.
    package init() {}
}
