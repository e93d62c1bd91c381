package import TowlineCore

/// The interface to the network: sends requests and delivers responses.
///
/// An attempt is one HTTP request. A transport follows no redirects, retries no requests and decodes no content,
/// so that the layer above implements every rule of `docs/http-rules.md`.
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
    /// Sends the request of an attempt.
    func start(_ request: AttemptRequest, receiver: any AttemptReceiver)
    /// Ends an attempt soon, with `AttemptEnd.cancelled` unless the attempt has ended. Ignores unknown ids.
    func cancel(_ id: AttemptID)
    /// Resumes an attempt after `.pause` or `.pauseFor`. Calls `bodyRests` if the attempt is not paused but has a body.
    /// Ignores unknown ids.
    func proceed(_ id: AttemptID)
    /// Cancels every attempt and returns after the last callback.
    func shutdown() async
}

/// The request of one attempt.
package struct AttemptRequest: Sendable {
    /// The id of the attempt.
    package let id: AttemptID
    /// The URL to request.
    package let url: HTTPURL
    /// The fields to send besides `Host`, in order.
    package let fields: HTTPFields
    /// `true` if the request may carry the user's credentials.
    package let sendsCredentials: Bool
    /// `true` if the request may carry the password of the netrc entry for its host.
    package let sendsNetrc: Bool
    /// `true` if the request may carry the cookies of the user's file that match its URL.
    package let sendsStoredCookies: Bool
    /// The options of the connection.
    package let connection: ConnectionOptions
    /// The sharing of the connection: exclusive, or HTTP/2 streams with other requests of the same value. A pause of
    /// one stream may pause all streams of the connection.
    package let sharing: ConnectionSharing
    /// `true` if the response may be a small file, whose body is read to the end before it is processed. A transport
    /// with several threads spreads such attempts over the threads.
    package let mayBeBrief: Bool
    /// `true` if a cut response cannot be corrected later: HTTP/1.1 is preferred where HTTP/2 does not prove the end.
    package let needsProvenEnd: Bool
    /// The size in bytes of the kernel's receive buffer of a new connection; `nil` for the system's choice. A server
    /// sends at most this many bytes before they are read.
    package var receiveBuffer: Int?

    /// Creates the request of a plan.
    package init(
        _ plan: AttemptPlan, connection: ConnectionOptions, mayBeBrief: Bool = false, needsProvenEnd: Bool = false
    ) {
        self.init(
            id: plan.id, url: plan.url, fields: plan.fields, sendsCredentials: plan.sendsCredentials,
            sendsNetrc: plan.sendsNetrc, sendsStoredCookies: plan.sendsStoredCookies, connection: connection,
            sharing: plan.sharing, mayBeBrief: mayBeBrief, needsProvenEnd: needsProvenEnd)
    }

    /// Creates a request.
    package init(
        id: AttemptID, url: HTTPURL, fields: HTTPFields, sendsCredentials: Bool, sendsNetrc: Bool = false,
        sendsStoredCookies: Bool = false, connection: ConnectionOptions, sharing: ConnectionSharing = .none,
        mayBeBrief: Bool = false, needsProvenEnd: Bool = false
    ) {
        self.id = id
        self.url = url
        self.fields = fields
        self.sendsCredentials = sendsCredentials
        self.sendsNetrc = sendsNetrc
        self.sendsStoredCookies = sendsStoredCookies
        self.connection = connection
        self.sharing = sharing
        self.mayBeBrief = mayBeBrief
        self.needsProvenEnd = needsProvenEnd
    }
}

/// The options of a connection and the user's credentials. Equal for all attempts of a download.
package struct ConnectionOptions: Hashable, Sendable {
    /// The HTTP version to use.
    package enum HTTPProtocol: Hashable, Sendable {
        /// HTTP/2 if the server offers it in TLS, otherwise HTTP/1.1.
        case automatic
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
        case http2PriorKnowledge
    }

    /// The source of passwords besides `user`.
    package enum Netrc: Hashable, Sendable {
        /// No netrc file.
        case none
        /// `~/.netrc`, if the file exists.
        case userFile
        /// The file at the given path.
        case file(String)
    }

    /// An address family: IPv4 or IPv6.
    package enum AddressFamily: Hashable, Sendable {
        /// IPv4 only (`-4`).
        case ipv4
        /// IPv6 only (`-6`).
        case ipv6
    }

    /// The addresses of one host and port (curl's `--resolve`).
    package struct FixedAddresses: Hashable, Sendable {
        /// The host as in `HTTPURL.host`.
        package let host: String
        /// The port.
        package let port: Int
        /// The numeric addresses, without brackets, in the order of the connection attempts.
        package let addresses: [String]

        /// Creates the addresses of a host and port.
        package init(host: String, port: Int, addresses: [String]) {
            (self.host, self.port, self.addresses) = (host, port, addresses)
        }
    }

    /// A client certificate (RFC 8446 §4.4.2) and its private key.
    package struct ClientCertificate: Hashable, Sendable {
        /// The file formats of a certificate and its key.
        package enum Form: String, Hashable, Sendable {
            /// The textual encoding of RFC 7468.
            case pem = "PEM"
            /// PKCS#12, which also contains the key.
            case pkcs12 = "P12"
        }

        /// The file with the certificate.
        package var file: String
        /// The format of `file`.
        package var form = Form.pem
        /// The file with the key; `nil` if `file` contains the key.
        package var keyFile: String?
        /// The password of the key. Never written to a message, a journal or a list.
        package var keyPassword: String?

        /// Creates a certificate in PEM form, whose file also contains the key.
        package init(file: String) { self.file = file }
    }

    /// The URL of a proxy (`ProxyAddress`). Empty: no proxy, whatever the environment says. `nil`: the proxy that the
    /// environment names for the request; the transport reads the environment from time to time, not for each request.
    package var proxy: String?
    /// The environment variable that names `proxy`; `nil` if the user names the proxy. Set by the transport.
    package var proxyVariable: String?
    /// A PEM file with the certificates to trust instead of the system's; `nil` for the system's.
    package var certificateAuthorityFile: String?
    /// `true` to trust any certificate. Dangerous; set only on the user's request.
    package var allowsInsecure = false
    /// The source of passwords besides `user`.
    package var netrc = Netrc.none
    /// The only host that the netrc entries apply to. Set by the transport.
    package var netrcHost: String?
    /// A Netscape cookie file with cookies to send. A different file needs a different jar (`cookies`).
    package var cookieFile: String?
    /// The addresses to use for some hosts instead of DNS (`--resolve`).
    package var fixedAddresses: [FixedAddresses] = []
    /// The only address family to connect to; `nil` for both.
    package var addressFamily: AddressFamily?
    /// The client certificate, used for the first origin only.
    package var clientCertificate: ClientCertificate?
    /// The cookies that servers set, and the cookies of `cookieFile`.
    package var cookies = CookieJar()
    /// The credentials `name:password` for Basic and Digest authentication.
    package var user: String?
    /// `true` to send credentials only after a 401 response, with the scheme that the server requests. Set by the
    /// transport.
    package var waitsForChallenge = false
    /// `true` to connect only to public Internet addresses, whatever names and redirects say, and without a proxy.
    package var publicAddressesOnly = false
    /// The time limit from the start to a connection that is ready for the request, including name resolution and TLS.
    package var connectTimeout = Duration.seconds(30)
    /// The time limit from the request to the end of the response head.
    package var headTimeout = Duration.seconds(300)
    /// The HTTP version to use.
    package var httpProtocol = HTTPProtocol.automatic
    /// `true` to ignore Content-Length: a body without a transfer coding ends with its connection. The transport uses
    /// HTTP/1.1, because libcurl's HTTP/2 refuses a body of another length (RFC 9113 §8.1.1).
    package var ignoresLength = false

    /// Creates the default options.
    package init() {}
}

/// A receiver of the response to an attempt. The transport calls it from an engine thread; each call must return soon.
package protocol AttemptReceiver: AnyObject, Sendable {
    /// Receives the final response head. Returns what the transport does next.
    func receivedHead(_ head: ResponseHead) -> HeadDisposition
    /// Receives the next bytes of the body, in order; the buffer is valid only during the call.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition
    /// `true` if the kernel may move the rest of the body through a pipe, without a copy in this process. Read between
    /// two pieces of the body; the transport may still deliver the rest with `receivedBody(_:)`.
    var takesPipes: Bool { get }
    /// The number of further body bytes that the receiver needs now. Read after `takesPipes` was true.
    var wanted: Int64 { get }
    /// Receives the next `count` bytes of the body in a pipe that contains only these bytes. `.consumed` means that the
    /// pipe is empty. After the first such call, the rest comes through pipes; `bodyRests` may be called in between.
    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition
    /// Processes the bytes that the receiver gathered: the available bytes are delivered, and no more may come for a
    /// while. Called after one or more `receivedBody`, before the transport waits for data; not always before `ended`.
    ///
    /// - Returns: `false` to close the attempt; `ended(.stopped)` follows.
    func bodyRests() -> Bool
    /// Reports that the body has not ended within the time of `.proceedBriefly`.
    func endIsLate()
    /// Reports the end of the attempt. No further call follows.
    func ended(_ end: AttemptEnd)
}

extension AttemptReceiver {
    /// `false`: the receiver reads every byte in this process.
    package var takesPipes: Bool { false }
    /// Zero: the receiver takes no bytes through a pipe.
    package var wanted: Int64 { 0 }
    /// Ends the attempt: the receiver takes no bytes through a pipe.
    package func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition { .stop }

    /// Does nothing, for a receiver that processes each piece at once.
    package func bodyRests() -> Bool { true }

    /// Does nothing, for a receiver that never returns `.proceedBriefly`.
    package func endIsLate() {}
}

/// The receiver's instruction to the transport after a response head.
package enum HeadDisposition: Hashable, Sendable {
    /// Deliver the body.
    case proceed
    /// Deliver the body, and call `endIsLate` if the body has not ended after this time, unless the receiver paused it.
    case proceedBriefly(within: Duration)
    /// Deliver no bytes until `Transport.proceed`.
    case pause
    /// Close the attempt; `ended(.stopped)` follows.
    case stop
}

/// The receiver's instruction to the transport after bytes of the body.
package enum BodyDisposition: Sendable {
    /// The receiver took all bytes; continue.
    case consumed
    /// The receiver took no byte: deliver the same bytes again after `Transport.proceed`.
    case pause
    /// The receiver took no byte: deliver the same bytes again after the delay, and read no bytes until then.
    case pauseFor(Duration)
    /// The receiver needs no more bytes: close the attempt. `ended(.stopped)` follows.
    case stop
}
