/// Names an attempt; unique within a process.
package struct AttemptID: Hashable, Sendable {
    /// The number.
    package let value: UInt64

    /// Makes an id.
    package init(_ value: UInt64) { self.value = value }
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
        /// A length, chunks or END_STREAM: the end is certain.
        case delimited
        /// An HTTP/2 stream ended, its head gave no length, and nothing proves that it ended with END_STREAM (RFC 9113
        /// §8.1). libcurl before 8.1 also reports an end after a reset without an error (NO_ERROR; a proxy sends it if
        /// its server died), and after it closed the connection because of an invalid frame. Another answer has to
        /// prove the length.
        case stream
        /// The connection closed (RFC 9112 §6.3 rule 8): the length is not verifiable.
        case closed
        /// The connection closed, and TLS did not say so by close_notify (RFC 9112 §9.8): the body may have been cut.
        /// Another answer has to prove the length.
        case unclosed

        /// Returns whether another answer has to prove the length.
        package var needsProof: Bool { self == .stream || self == .unclosed }
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
        /// The proxy's name does not resolve, the proxy is down, or it refuses.
        case proxyFailed
        /// The proxy requires credentials or rejects those of its URL (407).
        case proxyUnauthorized
        /// The proxy's URL is not valid: nothing was sent.
        case proxyUnusable
        /// The certificate is not trusted, expired, or for another host.
        case certificateRefused
        /// The address in the URL is not public, and no other may be connected to.
        case addressRefused
        /// The host name has no public address, or does not exist. Both are the same failure: a client that may
        /// use public addresses only must not learn which names this network has.
        case hostNotPublic
        /// The server requires a client certificate and got none, or rejected the one that it got.
        case clientCertificateRefused
        /// A file that the user named for TLS cannot be used, so that no request can be sent.
        case tlsFileUnusable
        /// The server and this machine have no version or cipher of TLS in common.
        case tlsIncompatible
        /// TLS failed otherwise before the response.
        case tlsFailed
        /// Closed or reset before the head was whole.
        case closedBeforeHead
        /// `headTimeout` ran out.
        case headTimedOut
        /// Over 5000 fields, over 300 KiB, or more than 20 interim responses.
        case headTooLarge
        /// Not HTTP, or broken framing.
        case malformed
        /// The body ended before its framing said so: reset, closed early, stream error.
        case bodyCut
        /// HTTP/2 REFUSED_STREAM or a stream above GOAWAY's: nothing was processed.
        case streamRefused
        /// HTTP/2 failed, and HTTP/1.1 may work: the transport uses it for this host from now on. Reported once per
        /// host.
        case http2Failed
        /// The system gives no thread for the connection: the limit on processes is reached.
        case threadRefused
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
