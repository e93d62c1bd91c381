package import TowlineCore

/// The way to the wire.
///
/// An attempt is one HTTP request: redirects are not followed here, nothing is retried here, nothing is decoded
/// here. That keeps every rule of `docs/http-rules.md` in one place, above.
///
/// Guarantees an implementation gives:
/// - No call blocks. Callbacks of one attempt come in order, from one thread at a time, never two at once.
/// - `AttemptReceiver.ended` is called exactly once per started attempt, last of all.
/// - The fields in `AttemptRequest.fields` go out as they are. The transport adds `Host`, proxy fields, the cookies of
///   `ConnectionOptions.cookies` that are for the URL (RFC 6265 §5.4), and the credentials that `ConnectionOptions`
///   names as far as the request may carry them. Credentials answer what the server offers: Basic, or Digest (RFC
///   7616).
/// - Connections are reused only among attempts whose TLS, proxy and credential settings are equal.
/// - A response head has at most 5000 fields and 300 KiB, 1xx heads counted in; more ends the attempt with
///   `TransportFailure.Kind.headTooLarge`.
package protocol Transport: AnyObject, Sendable {
    /// Sends the request of an attempt.
    func start(_ request: AttemptRequest, receiver: any AttemptReceiver)
    /// Ends an attempt soon, with `AttemptEnd.cancelled` unless it ended before. Unknown ids are no error.
    func cancel(_ id: AttemptID)
    /// Goes on after `.pause`; an attempt that is not paused may rest once more. Unknown ids are no error.
    func proceed(_ id: AttemptID)
    /// Cancels everything and returns when no callback will come any more.
    func shutdown() async
}

/// One request.
package struct AttemptRequest: Sendable {
    /// The attempt's name.
    package let id: AttemptID
    /// Where to ask.
    package let url: HTTPURL
    /// What to send besides `Host`, in order.
    package let fields: HTTPFields
    /// The request may carry the user's credentials.
    package let sendsCredentials: Bool
    /// The request may carry the password of a netrc entry that names its host.
    package let sendsNetrc: Bool
    /// The request may carry the cookies of the user's file that are for its URL.
    package let sendsStoredCookies: Bool
    /// How to connect.
    package let connection: ConnectionOptions
    /// Whether it has a connection to itself, or may be a stream of one of HTTP/2 with others that say the same. Pausing
    /// one of these may pause them all.
    package let sharing: ConnectionSharing
    /// Whether its answer may be that of a small file, which is taken to its end before anything else is done with it. Where
    /// there are several threads, such attempts are spread over them.
    package let mayBeBrief: Bool
    /// A response that was cut cannot be corrected later: HTTP/1.1 is preferred where HTTP/2 does not prove the end.
    package let needsProvenEnd: Bool
    /// Size in bytes of the kernel's receive buffer of a new connection; `nil` for the system's choice. A server sends
    /// at most that many bytes before they are read.
    package var receiveBuffer: Int?

    /// Makes the request of a plan.
    package init(
        _ plan: AttemptPlan, connection: ConnectionOptions, mayBeBrief: Bool = false, needsProvenEnd: Bool = false
    ) {
        self.init(
            id: plan.id, url: plan.url, fields: plan.fields, sendsCredentials: plan.sendsCredentials,
            sendsNetrc: plan.sendsNetrc, sendsStoredCookies: plan.sendsStoredCookies, connection: connection,
            sharing: plan.sharing, mayBeBrief: mayBeBrief, needsProvenEnd: needsProvenEnd)
    }

    /// Makes a request.
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

/// How to connect, and who the user is. Equal for all attempts of a download.
package struct ConnectionOptions: Hashable, Sendable {
    /// Which version of HTTP to speak.
    package enum HTTPProtocol: Hashable, Sendable {
        /// HTTP/2 where TLS offers it, else HTTP/1.1.
        case automatic
        /// HTTP/1.1 alone.
        case http1
        /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
        case http2PriorKnowledge
    }

    /// Where passwords come from besides `user`.
    package enum Netrc: Hashable, Sendable {
        /// Nowhere.
        case none
        /// `~/.netrc`, if it is there.
        case userFile
        /// This file.
        case file(String)
    }

    /// IPv4 or IPv6.
    package enum AddressFamily: Hashable, Sendable {
        /// `-4`.
        case ipv4
        /// `-6`.
        case ipv6
    }

    /// The addresses of one host and port (curl's `--resolve`).
    package struct FixedAddresses: Hashable, Sendable {
        /// The host as in `HTTPURL.host`.
        package let host: String
        /// The port.
        package let port: Int
        /// Numeric addresses, without brackets, in the order in which they are tried.
        package let addresses: [String]

        /// Makes them.
        package init(host: String, port: Int, addresses: [String]) {
            (self.host, self.port, self.addresses) = (host, port, addresses)
        }
    }

    /// A client certificate (RFC 8446 §4.4.2) and its private key.
    package struct ClientCertificate: Hashable, Sendable {
        /// The forms in which libcurl reads a certificate with its key.
        package enum Form: String, Hashable, Sendable {
            /// RFC 7468.
            case pem = "PEM"
            /// PKCS#12, which holds the key as well.
            case pkcs12 = "P12"
        }

        /// The file with the certificate.
        package var file: String
        /// The form of that file.
        package var form = Form.pem
        /// The file with the key; `nil`: `file`.
        package var keyFile: String?
        /// The password of the key. Never in a message, a journal or a list.
        package var keyPassword: String?

        /// Makes one.
        package init(file: String) { self.file = file }
    }

    /// URL of a proxy (`ProxyAddress`); empty: none, whatever the environment says; `nil`: the one that the environment
    /// names for the request, which the transport reads from time to time, not for each request.
    package var proxy: String?
    /// The environment variable that names `proxy`; `nil` if the user does. The transport sets it.
    package var proxyVariable: String?
    /// A file of certificates in PEM to trust instead of the system's.
    package var certificateAuthorityFile: String?
    /// Trust any certificate. Dangerous; the user asked for it.
    package var allowsInsecure = false
    /// Where passwords come from besides `user`.
    package var netrc = Netrc.none
    /// The netrc entries are for this host alone. The transport sets it.
    package var netrcHost: String?
    /// Netscape cookie file to send matching cookies from. With another file, use another jar.
    package var cookieFile: String?
    /// `--resolve`: the addresses to connect to for some hosts, instead of those that DNS names.
    package var fixedAddresses: [FixedAddresses] = []
    /// The only kind of addresses to connect to.
    package var addressFamily: AddressFamily?
    /// The client certificate, for the first origin only.
    package var clientCertificate: ClientCertificate?
    /// The cookies that servers set, and those of `cookieFile`.
    package var cookies = CookieJar()
    /// `name:password` for Basic and Digest authentication.
    package var user: String?
    /// Credentials are sent after the server has asked for them (401), in the form that it asks for. The transport sets
    /// it.
    package var waitsForChallenge = false
    /// Connect to addresses of the public Internet alone, whatever names and redirects say, and through no proxy.
    package var publicAddressesOnly = false
    /// From the start to a connection that is ready for the request, name resolution and TLS included.
    package var connectTimeout = Duration.seconds(30)
    /// From the request to the end of the response head.
    package var headTimeout = Duration.seconds(300)
    /// Which version of HTTP to speak.
    package var httpProtocol = HTTPProtocol.automatic
    /// Content-Length is not read: a body without a transfer coding ends with its connection. The transport uses
    /// HTTP/1.1, because libcurl's HTTP/2 refuses a body of another length (RFC 9113 §8.1.1).
    package var ignoresLength = false

    /// Defaults.
    package init() {}
}

/// What an attempt's answer is handed to. All calls come from an engine thread and must return soon.
package protocol AttemptReceiver: AnyObject, Sendable {
    /// The final head is there.
    func receivedHead(_ head: ResponseHead) -> HeadDisposition
    /// The next bytes of the body, in order; valid during the call only.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition
    /// Whether the rest of the body may come through a pipe, unseen. Asked between two pieces; they may go on to come as before.
    var takesPipes: Bool { get }
    /// How many more bytes are wanted of it now. Asked where `takesPipes` was true.
    var wanted: Int64 { get }
    /// As `receivedBody`, of the first `count` bytes in a pipe, which holds them and no more. Where they are consumed, none is
    /// left. Once something came through a pipe, all else does; `bodyRests` may come in between.
    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition
    /// All that was at hand was delivered, and nobody knows when more comes: what was kept to be dealt with together has its turn.
    /// Comes after one or more `receivedBody`, before others are waited for; not always before `ended`.
    ///
    /// - Returns: `false`: close; `ended(.stopped)` follows.
    func bodyRests() -> Bool
    /// The time of `.proceedBriefly` is over, and the body is not.
    func endIsLate()
    /// The attempt is over; no further call comes.
    func ended(_ end: AttemptEnd)
}

extension AttemptReceiver {
    /// Every byte is looked at.
    package var takesPipes: Bool { false }
    /// None.
    package var wanted: Int64 { 0 }
    /// None is wanted.
    package func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition { .stop }

    /// Nothing, where each piece is dealt with as it comes.
    package func bodyRests() -> Bool { true }

    /// Nothing, where `.proceedBriefly` is not used.
    package func endIsLate() {}
}

/// What to do after a head.
package enum HeadDisposition: Hashable, Sendable {
    /// Deliver the body.
    case proceed
    /// Deliver the body, and call `endIsLate` if it has not ended after that time, unless the receiver paused it.
    case proceedBriefly(within: Duration)
    /// Deliver nothing until `Transport.proceed`.
    case pause
    /// Close; `ended(.stopped)` follows.
    case stop
}

/// What to do after some bytes.
package enum BodyDisposition: Sendable {
    /// They are taken; go on.
    case consumed
    /// None is taken: deliver the same bytes again after `Transport.proceed`.
    case pause
    /// None is taken: deliver the same bytes again after the delay, reading nothing from this connection meanwhile.
    case pauseFor(Duration)
    /// Enough; close. `ended(.stopped)` follows.
    case stop
}
