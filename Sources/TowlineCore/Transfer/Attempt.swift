/// The identifier of an attempt, which is one request of a download and its response; unique within a process.
package struct AttemptID: Hashable, Sendable {
    /// The number of the attempt. No other attempt of the process has the same number.
    package let value: UInt64

    /// Creates an identifier from a number, which the caller keeps unique within the process.
    package init(_ value: UInt64) { self.value = value }
}

/// The way in which an attempt, one request and its response, ended.
package enum AttemptEnd: Sendable {
    /// The response is complete by its own framing: `Content-Length`, last chunk, END_STREAM, or, if the version of
    /// HTTP has nothing better, an orderly close.
    case complete(Framing)
    /// The receiver of the body returned `.stop`, because it needs no more bytes.
    case stopped
    /// The attempt was cancelled by `Transport.cancel`, or by `shutdown` of the whole transport.
    case cancelled
    /// The attempt failed. The body bytes that it delivered before the failure are valid.
    case failed(TransportFailure)

    /// The way in which the transport recognized the end of a complete response body. It decides whether the length of
    /// the body is certain.
    package enum Framing: Hashable, Sendable {
        /// The end is certain: `Content-Length`, the last chunk or END_STREAM marked it.
        case delimited
        /// An HTTP/2 stream ended, its head gave no length, and nothing proves that it ended with END_STREAM (RFC 9113
        /// §8.1). libcurl before 8.1 also reports an end after a reset without an error (NO_ERROR; a proxy sends it if
        /// its server died), and after it closed the connection because of an invalid frame. Another response must
        /// prove the length.
        case stream
        /// The connection closed (RFC 9112 §6.3 rule 8): the length is not verifiable.
        case closed
        /// The connection closed without the close_notify of TLS (RFC 9112 §9.8): the body may be incomplete.
        /// Another response must prove the length.
        case unclosed

        /// Returns whether another response must prove the length of the file, because this one may have been cut.
        package var needsProof: Bool { self == .stream || self == .unclosed }
    }
}

/// The reason why an attempt failed, as far as the transport (the HTTP client) knows it.
package struct TransportFailure: Error, Hashable, Sendable {
    /// The kinds of failure of an attempt. `RetryPolicy` classifies them as transient (the request is retried) or
    /// permanent.
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// The host name does not resolve.
        case hostNotFound
        /// The host has no route, refuses the connection, or is unreachable.
        case connectFailed
        /// The connection was not open when its time limit `connectTimeout` expired.
        case connectTimedOut
        /// The proxy's name does not resolve, or the proxy is down or refuses the request.
        case proxyFailed
        /// The proxy requires credentials or rejects those of its URL (407).
        case proxyUnauthorized
        /// The proxy's URL is not valid: nothing was sent.
        case proxyUnusable
        /// The server's certificate is not trusted, expired, or for another host.
        case certificateRefused
        /// The address in the URL is not public, and the download allows only public addresses.
        case addressRefused
        /// The host name has no public address, or does not exist. Both are the same failure: a client that may
        /// use public addresses only must not learn which names this network has.
        case hostNotPublic
        /// The server requires a client certificate and received no certificate, or rejected it.
        case clientCertificateRefused
        /// A file that the user named (certificate authorities, client certificate or its key) cannot be used: nothing
        /// was sent.
        case tlsFileUnusable
        /// The server and this machine have no version or cipher of TLS in common.
        case tlsIncompatible
        /// TLS failed before the response, for a reason that no other case names.
        case tlsFailed
        /// The connection was closed or reset before the response head was complete.
        case closedBeforeHead
        /// The response head was not complete when `headTimeout` expired.
        case headTimedOut
        /// The head has over 5000 fields or over 300 KiB, or follows more than 20 interim responses.
        case headTooLarge
        /// The response is not HTTP, or its framing is invalid.
        case malformed
        /// The body ended before the end that its framing declares: reset, early close, stream error.
        case bodyCut
        /// HTTP/2 REFUSED_STREAM, or a stream above the last one of GOAWAY: the server did not process the request.
        case streamRefused
        /// HTTP/2 failed, and HTTP/1.1 may work: the transport uses it for this host from now on. Reported once per
        /// host.
        case http2Failed
        /// The transport does not support an option of the request, or the app's settings forbid the request: nothing
        /// was sent.
        case unsupported
        /// The system cannot create a thread for the connection: the maximum number of processes is reached.
        case threadRefused
        /// This machine cannot send the request or receive the response: for example, memory or file descriptors are
        /// exhausted.
        case local
        /// A failure of the attempt that no other case describes.
        case other
    }

    /// The kind of failure, which decides whether the request is retried.
    package let kind: Kind
    /// The message of the HTTP client, for people, without secrets. Text from the server may be included.
    package let message: String
    /// The message without `detail`: a short reason for a row of a list.
    package let summary: String
    /// The transport's own message, with details such as addresses and times; `nil` without one.
    package let detail: String?

    /// Creates the failure of an attempt. `message` and `detail` must contain no secrets.
    ///
    /// - Parameter detail: the transport's own message, which follows `message` in parentheses.
    package init(_ kind: Kind, _ message: String, detail: String? = nil) {
        self.kind = kind
        summary = message
        self.detail = detail
        self.message = detail.map { "\(message) (\($0))" } ?? message
    }
}
