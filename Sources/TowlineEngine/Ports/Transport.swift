package import TowlineCore

/// The way to the wire.
///
/// An attempt is one HTTP request: redirects are not followed here, nothing is retried here, nothing is decoded
/// here. That keeps every rule of `docs/http-rules.md` in one place, above.
///
/// Guarantees an implementation gives:
/// - No call blocks. Callbacks of one attempt come in order, from one thread at a time, never two at once.
/// - `AttemptReceiver.ended` is called exactly once per started attempt, last of all.
/// - The fields in `AttemptRequest.fields` go out as they are. The transport adds `Host`, proxy fields, and, only if
///   `sendsCredentials` is set, the credentials that `ConnectionOptions` names.
/// - Connections are reused only among attempts whose TLS, proxy and credential settings are equal.
/// - A response head has at most 100 fields and 64 KiB, 1xx heads counted in; more ends the attempt with
///   `TransportFailure.Kind.headTooLarge`.
package protocol Transport: AnyObject, Sendable {
    /// Sends the request of an attempt.
    func start(_ request: AttemptRequest, receiver: any AttemptReceiver)
    /// Ends an attempt soon, with `AttemptEnd.cancelled` unless it ended before. Unknown ids are no error.
    func cancel(_ id: AttemptID)
    /// Goes on after `.pause`. Unknown ids and attempts that are not paused are no error.
    func proceed(_ id: AttemptID)
    /// Cancels everything and returns when no callback will come any more.
    func shutdown() async
}

/// Names an attempt; unique within a process.
package struct AttemptID: Hashable, Sendable {
    /// The number.
    package let value: UInt64

    /// Makes an id.
    package init(_ value: UInt64) { self.value = value }
}

/// One request.
package struct AttemptRequest: Sendable {
    /// The attempt's name.
    package let id: AttemptID
    /// Where to ask.
    package let url: HTTPURL
    /// What to send besides `Host`, in order.
    package let fields: HTTPFields
    /// Whether the user's credentials and cookies may go to this origin.
    package let sendsCredentials: Bool
    /// How to connect.
    package let connection: ConnectionOptions

    /// Makes a request.
    package init(
        id: AttemptID, url: HTTPURL, fields: HTTPFields, sendsCredentials: Bool, connection: ConnectionOptions
    ) {
        self.id = id
        self.url = url
        self.fields = fields
        self.sendsCredentials = sendsCredentials
        self.connection = connection
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

    /// `http://`, `https://`, `socks5://` or `socks5h://` proxy; `nil`: what the environment says.
    package var proxy: String?
    /// A file of certificates in PEM to trust instead of the system's.
    package var certificateAuthorityFile: String?
    /// Trust any certificate. Dangerous; the user asked for it.
    package var allowsInsecure = false
    /// Where passwords come from besides `user`.
    package var netrc = Netrc.none
    /// Netscape cookie file to send matching cookies from.
    package var cookieFile: String?
    /// `name:password` for basic authentication.
    package var user: String?
    /// From the start to a connection that is ready for the request, name resolution and TLS included.
    package var connectTimeout = Duration.seconds(30)
    /// From the request to the end of the response head.
    package var headTimeout = Duration.seconds(30)
    /// Which version of HTTP to speak.
    package var httpProtocol = HTTPProtocol.automatic

    /// Defaults.
    package init() {}
}

/// What an attempt's answer is handed to. All calls come from an engine thread and must return soon.
package protocol AttemptReceiver: AnyObject, Sendable {
    /// The final head is there.
    func receivedHead(_ head: ResponseHead) -> HeadDisposition
    /// The next bytes of the body, in order; valid during the call only.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition
    /// The attempt is over; no further call comes.
    func ended(_ end: AttemptEnd)
}

/// What to do after a head.
package enum HeadDisposition: Sendable {
    /// Deliver the body.
    case proceed
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

/// How an attempt ended.
package enum AttemptEnd: Sendable {
    /// The response came whole by its own framing: `Content-Length`, last chunk, END_STREAM, or, where the version of
    /// HTTP has nothing better, an orderly close.
    case complete(Framing)
    /// The receiver said `.stop`.
    case stopped
    /// Cancelled by `Transport.cancel` or `shutdown`.
    case cancelled
    /// Something broke; what the body delivered before is good as far as it goes.
    case failed(TransportFailure)

    /// What told the end of the body.
    package enum Framing: Hashable, Sendable {
        /// Length, chunks or stream: the end is certain.
        case delimited
        /// The connection closed (RFC 9112 §6.3 rule 8): the length is not verifiable.
        case closed
    }
}

/// Why an attempt failed, as far as the wire can tell.
package struct TransportFailure: Error, Hashable, Sendable {
    /// The kinds of failure. Classification into transient and permanent is `RetryPolicy`'s.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// The name does not resolve.
        case hostNotFound
        /// No route, refused, or unreachable.
        case connectFailed
        /// `connectTimeout` ran out.
        case connectTimedOut
        /// The proxy's name does not resolve, it refuses, or it wants other credentials.
        case proxyFailed
        /// The certificate is not trusted, expired, or for another host.
        case certificateRefused
        /// TLS failed otherwise before the response.
        case tlsFailed
        /// Closed or reset before the head was whole.
        case closedBeforeHead
        /// `headTimeout` ran out.
        case headTimedOut
        /// Over 100 fields, over 64 KiB, or more than 20 interim responses.
        case headTooLarge
        /// Not HTTP, or broken framing.
        case malformed
        /// The body ended before its framing said so: reset, closed early, stream error.
        case bodyCut
        /// HTTP/2 REFUSED_STREAM or a stream above GOAWAY's: nothing was processed.
        case streamRefused
        /// Out of memory, descriptors, or another local cause.
        case local
        /// Anything else.
        case other
    }

    /// The kind.
    package let kind: Kind
    /// What the library says, for people; holds no secret, may hold text from the server.
    package let message: String

    /// Makes a failure.
    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
