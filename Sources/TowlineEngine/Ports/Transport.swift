package import TowlineCore

/// The interface to the network: sends HTTP requests and delivers the responses.
///
/// An attempt is one HTTP request. A transport follows no redirects, retries no requests and decodes no content, so
/// that the layer above implements every rule of `docs/http-rules.md`.
///
/// Guarantees of an implementation:
/// - No call blocks. Callbacks of one attempt come in order, from one thread at a time, never two at once.
/// - `AttemptReceiver.ended` is called exactly once per started attempt, as the last callback.
/// - The fields in `AttemptRequest.fields` are sent unchanged. The transport adds `Host`, proxy fields, the cookies of
///   `ConnectionOptions.cookies` that match the URL (RFC 6265 §5.4), and the credentials of `ConnectionOptions` that
///   the request may carry. Credentials use the scheme that the server offers: Basic, or Digest (RFC 7616).
/// - Connections are reused only among attempts whose TLS, proxy and credential settings are equal.
/// - A response head has at most 5000 fields and 300 KiB, including 1xx heads; a larger head ends the attempt with
///   `TransportFailure.Kind.headTooLarge`.
package protocol Transport: AnyObject, Sendable {
    /// Sends the HTTP request of an attempt. `receiver` gets the response and its end, or the failure of the request.
    func start(_ request: AttemptRequest, receiver: any AttemptReceiver)
    /// Ends an attempt soon: its receiver gets `AttemptEnd.cancelled`, unless the attempt has already ended. Ignores
    /// unknown IDs.
    func cancel(_ id: AttemptID)
    /// Resumes an attempt whose receiver returned `.pause` or `.pauseFor`. If it is not paused but its body is being
    /// delivered, calls `AttemptReceiver.flush` instead; ignores unknown IDs.
    func proceed(_ id: AttemptID)
    /// Cancels every attempt and returns after the last callback of the last one.
    func shutdown() async
}

/// The HTTP request of one attempt, with the connection options that the transport needs to send it.
package struct AttemptRequest: Sendable {
    /// The ID of the attempt (this HTTP request), with which `Transport.cancel` and `proceed` find it.
    package let id: AttemptID
    /// The URL to request.
    package let url: HTTPURL
    /// The header fields to send besides `Host`, in order.
    package let fields: HTTPFields
    /// `true` if the request may carry the user's credentials: the name and password of `ConnectionOptions.user` and
    /// the client certificate.
    package let sendsCredentials: Bool
    /// `true` if the request may carry the password of the netrc entry for its host.
    package let sendsNetrc: Bool
    /// `true` if the request may carry the cookies of `ConnectionOptions.cookieFile` that match its URL.
    package let sendsStoredCookies: Bool
    /// The TLS, proxy, credential and timeout options of the connection for this request.
    package let connection: ConnectionOptions
    /// The use of the connection: for one request alone, or for several requests as HTTP/2 streams. Only requests with
    /// equal values share a connection, where a pause of one may pause all.
    package let sharing: ConnectionSharing
    /// `true` if the response may be a small file (less than 1 MiB), whose body is read to the end before it is
    /// processed. A transport with several threads distributes such requests over them.
    package let mayBeSmall: Bool
    /// `true` if written bytes cannot be corrected later, as for output to a pipe. The transport then uses HTTP/1.1 if
    /// its HTTP/2 cannot detect that a response was cut short.
    package let needsProvenEnd: Bool

    /// Creates the HTTP request that `plan` describes, with the options that a plan does not contain.
    package init(
        _ plan: AttemptPlan, connection: ConnectionOptions, mayBeSmall: Bool = false, needsProvenEnd: Bool = false
    ) {
        self.init(
            id: plan.id, url: plan.url, fields: plan.fields, sendsCredentials: plan.sendsCredentials,
            sendsNetrc: plan.sendsNetrc, sendsStoredCookies: plan.sendsStoredCookies, connection: connection,
            sharing: plan.sharing, mayBeSmall: mayBeSmall, needsProvenEnd: needsProvenEnd)
    }

    /// Creates the HTTP request of an attempt from its individual properties.
    package init(
        id: AttemptID, url: HTTPURL, fields: HTTPFields, sendsCredentials: Bool, sendsNetrc: Bool = false,
        sendsStoredCookies: Bool = false, connection: ConnectionOptions, sharing: ConnectionSharing = .none,
        mayBeSmall: Bool = false, needsProvenEnd: Bool = false
    ) {
        self.id = id
        self.url = url
        self.fields = fields
        self.sendsCredentials = sendsCredentials
        self.sendsNetrc = sendsNetrc
        self.sendsStoredCookies = sendsStoredCookies
        self.connection = connection
        self.sharing = sharing
        self.mayBeSmall = mayBeSmall
        self.needsProvenEnd = needsProvenEnd
    }
}

/// The options of a connection and the user's credentials. Equal for all requests of a download.
package struct ConnectionOptions: Hashable, Sendable {
    /// The choice of the HTTP version for the connections of a download.
    package enum HTTPProtocol: Hashable, Sendable {
        /// HTTP/2 if the server offers it in TLS, otherwise HTTP/1.1.
        case automatic
        /// HTTP/1.1, even if the server offers HTTP/2.
        case http1
        /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
        case http2PriorKnowledge
    }

    /// The choice of the netrc file, which contains names and passwords by host. It is used besides `user`.
    package enum Netrc: Hashable, Sendable {
        /// Do not use a netrc file.
        case none
        /// `~/.netrc`, if the file exists.
        case userFile
        /// The netrc file at the given path.
        case file(String)
    }

    /// An address family: IPv4 or IPv6.
    package enum AddressFamily: Hashable, Sendable {
        /// IPv4 only (`-4`).
        case ipv4
        /// IPv6 only (`-6`).
        case ipv6
    }

    /// The addresses to connect to for one host and port, without a DNS lookup (curl's `--resolve`).
    package struct FixedAddresses: Hashable, Sendable {
        /// The host name that the addresses replace, in the form of `HTTPURL.host`.
        package let host: String
        /// The port that the addresses apply to.
        package let port: Int
        /// The numeric IP addresses, without brackets, in the order in which to try to connect to them.
        package let addresses: [String]

        /// Creates the addresses to connect to for a host and port instead of those from DNS.
        package init(host: String, port: Int, addresses: [String]) {
            (self.host, self.port, self.addresses) = (host, port, addresses)
        }
    }

    /// A client certificate (RFC 8446 §4.4.2) and its private key.
    package struct ClientCertificate: Hashable, Sendable {
        /// The file formats of a certificate and its key.
        package enum Form: String, Hashable, Sendable {
            /// PEM, the textual encoding of RFC 7468.
            case pem = "PEM"
            /// PKCS#12, which also contains the key.
            case pkcs12 = "P12"
        }

        /// The path of the file with the certificate.
        package var file: String
        /// The format of the file at `file`.
        package var form = Form.pem
        /// The path of the file with the private key; `nil` if `file` also contains the key.
        package var keyFile: String?
        /// The password of the private key; `nil` for no password. Never written to an error message, a journal or the
        /// list of downloads.
        package var keyPassword: String?

        /// Creates a certificate in PEM form, whose file also contains the key.
        package init(file: String) { self.file = file }
    }

    /// The URL of a proxy (`ProxyAddress`); empty for no proxy, whatever the environment says; `nil` for the proxy in
    /// the environment variables, which the transport reads from time to time.
    package var proxy: String?
    /// The name of the environment variable that `proxy` was read from, for error messages; `nil` if the user set the
    /// proxy. Set by the transport.
    package var proxyVariable: String?
    /// The path of a PEM file with the certificate authorities to trust instead of the system's; `nil` for the
    /// system's.
    package var certificateAuthorityFile: String?
    /// `true` to accept any certificate of a server. Dangerous; set only on the user's request.
    package var allowsInsecure = false
    /// The choice of the netrc file, which contains names and passwords by host. It is used besides `user`.
    package var netrc = Netrc.none
    /// The only host that may get passwords from the netrc file; `nil` if no host may. The transport sets it for each
    /// request.
    package var netrcHost: String?
    /// The path of a cookie file in the Netscape format with cookies to send; `nil` for no file. `cookies` reads a file
    /// only once, so another file needs a new `CookieJar`.
    package var cookieFile: String?
    /// The addresses to use for some hosts and ports instead of DNS (`--resolve`).
    package var fixedAddresses: [FixedAddresses] = []
    /// The only address family, IPv4 or IPv6, to connect to; `nil` for both.
    package var addressFamily: AddressFamily?
    /// The client certificate, sent only with requests that may carry credentials (`AttemptRequest.sendsCredentials`);
    /// `nil` for none.
    package var clientCertificate: ClientCertificate?
    /// The store of the cookies that servers set and of those in `cookieFile`. Copies of these options share the store.
    package var cookies = CookieJar()
    /// The credentials `name:password` for Basic and Digest authentication; `nil` if the user gave no credentials.
    package var user: String?
    /// `true` to send credentials only after a 401 response, with the scheme (Basic or Digest) that the server
    /// requests. Set by the transport.
    package var waitsForChallenge = false
    /// `true` to connect only to public Internet addresses, even if a name or a redirect leads to another one, and
    /// without a proxy.
    package var publicAddressesOnly = false
    /// The time limit for connecting: from the start of a request to a connection that is ready for it, including name
    /// resolution and TLS.
    package var connectTimeout = Duration.seconds(30)
    /// The time limit from sending a request to the end of its response head.
    package var headTimeout = Duration.seconds(300)
    /// The HTTP version to use.
    package var httpProtocol = HTTPProtocol.automatic
    /// `true` to ignore Content-Length, so that a body without a transfer coding ends with its connection. The
    /// transport then uses HTTP/1.1, because libcurl's HTTP/2 refuses a body of another length (RFC 9113 §8.1.1).
    package var ignoresLength = false

    /// Creates the default options of a connection: automatic HTTP version, no credentials, and the system's
    /// certificates.
    package init() {}
}

/// A receiver of the response to one attempt. The transport calls it from one of its network threads, so each call must
/// return soon.
package protocol AttemptReceiver: AnyObject, Sendable {
    /// Receives the final response head (not a 1xx head), and returns how the transport must handle the body.
    func receivedHead(_ head: ResponseHead) -> HeadDisposition
    /// Receives the next bytes of the body, in order, in a buffer that is valid only during the call. Returns whether
    /// the receiver took all bytes, or how the transport must pause or stop.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition
    /// The rate limit in bytes per second at which the receiver takes the body; `nil` without a limit. The limit may
    /// change at any time. A transport keeps few bytes unread in the kernel, because they are lost with the connection.
    var rateLimit: Int64? { get }
    /// `true` if the kernel may move the rest of the body through a pipe (`splice`), without a copy in this process.
    /// The transport reads it between two calls of `receivedBody(_:)`, and may still deliver the rest with that
    /// function.
    var takesPipes: Bool { get }
    /// The maximum number of body bytes that the transport may move through a pipe with its next call. Read after
    /// `takesPipes` was `true`.
    var wanted: Int64 { get }
    /// Receives the next `count` bytes of the body in a pipe with the descriptor `pipe`, which contains only these
    /// bytes; returns `.consumed` if the pipe is empty afterwards. Once called, the rest of the body comes through
    /// pipes too.
    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition
    /// Writes the bytes that the receiver collected in `receivedBody`, because more may not arrive for a while. Called
    /// before the transport waits for data; not always before `ended`.
    ///
    /// - Returns: `false` to close the response; `ended(.stopped)` follows.
    func flush() -> Bool
    /// Reports that the body has not ended within the time that the receiver set with `.proceedBriefly`.
    func bodyDeadlinePassed()
    /// Reports the end of the attempt and the reason. No further call to this receiver follows.
    func ended(_ end: AttemptEnd)
}

/// The default implementations for receivers that take no bytes through pipes and collect none in memory.
extension AttemptReceiver {
    /// `nil`: the default for a receiver that takes the body as fast as it arrives.
    package var rateLimit: Int64? { nil }
    /// `false`: the default for a receiver that needs every byte in the memory of this process, so that the kernel may
    /// not move them through a pipe (`splice`).
    package var takesPipes: Bool { false }
    /// Zero: the default for a receiver that takes no bytes through a pipe (`splice`).
    package var wanted: Int64 { 0 }
    /// Ends the attempt: the default for a receiver that takes no bytes through a pipe.
    package func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition { .stop }

    /// Returns `true`, so that the response continues: the default for a receiver that processes all bytes in
    /// `receivedBody`.
    package func flush() -> Bool { true }

    /// Does nothing when the time for the body is over: the default for a receiver that sets no such time with
    /// `.proceedBriefly`.
    package func bodyDeadlinePassed() {}
}

/// The receiver's instruction to the transport after a response head (`AttemptReceiver.receivedHead`).
package enum HeadDisposition: Hashable, Sendable {
    /// Deliver the body as its bytes arrive.
    case proceed
    /// Deliver the body as its bytes arrive. If it has not ended after `within`, call `bodyDeadlinePassed`, unless the
    /// receiver has paused it.
    case proceedBriefly(within: Duration)
    /// Deliver no bytes of the body until `Transport.proceed` is called.
    case pause
    /// Close the response without reading its body; `AttemptReceiver.ended` with `.stopped` follows.
    case stop
}

/// The receiver's instruction to the transport after bytes of the body (`AttemptReceiver.receivedBody`).
package enum BodyDisposition: Sendable {
    /// The receiver took all bytes of the call; deliver the next ones.
    case consumed
    /// The receiver took none of the bytes: deliver the same bytes again after `Transport.proceed` is called.
    case pause
    /// The receiver took none of the bytes: read no more for the given time, and then deliver the same bytes again.
    case pauseFor(Duration)
    /// The receiver needs no more bytes: close the response. `AttemptReceiver.ended` with `.stopped` follows.
    case stop
}
