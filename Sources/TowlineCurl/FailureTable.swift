import CCurl
import Glibc
internal import TowlineCore
internal import TowlineEngine

/// What libcurl's results mean for an attempt: one row per code, one column per phase, a reason for each.
enum FailureTable {
    /// A row: the kind of failure while connecting, before the head was whole, and in the body.
    struct Row {
        let connecting: TransportFailure.Kind
        let requested: TransportFailure.Kind
        let body: TransportFailure.Kind
        let reason: String

        init(
            _ connecting: TransportFailure.Kind, _ requested: TransportFailure.Kind, _ body: TransportFailure.Kind,
            _ reason: String
        ) {
            self.connecting = connecting
            self.requested = requested
            self.body = body
            self.reason = reason
        }

        /// One kind whatever the phase.
        init(_ kind: TransportFailure.Kind, _ reason: String) { self.init(kind, kind, kind, reason) }
    }

    /// The table. A code that is not in it cannot come from an HTTP request and is `other`.
    static let rows: [CURLcode.RawValue: Row] = [
        CURLE_UNSUPPORTED_PROTOCOL.rawValue: Row(
            .local, .malformed, .malformed, "HTTP/0.9, or a scheme we do not speak"),
        CURLE_FAILED_INIT.rawValue: Row(.local, "libcurl could not set itself up"),
        CURLE_URL_MALFORMAT.rawValue: Row(.local, "libcurl reads the URL differently from us"),
        CURLE_NOT_BUILT_IN.rawValue: Row(.local, "this libcurl was built without what is asked for"),
        CURLE_COULDNT_RESOLVE_PROXY.rawValue: Row(.proxyFailed, "the proxy's name does not resolve"),
        CURLE_COULDNT_RESOLVE_HOST.rawValue: Row(.hostNotFound, "the host's name does not resolve"),
        CURLE_COULDNT_CONNECT.rawValue: Row(.connectFailed, "refused, unreachable, no route"),
        CURLE_WEIRD_SERVER_REPLY.rawValue: Row(.malformed, "a response that is not HTTP, or an invalid length"),
        CURLE_HTTP2.rawValue: Row(.tlsFailed, .closedBeforeHead, .bodyCut, "the HTTP/2 connection broke as a whole"),
        CURLE_HTTP2_STREAM.rawValue: Row(.connectFailed, .closedBeforeHead, .bodyCut, "the stream was reset"),
        CURLE_PARTIAL_FILE.rawValue: Row(.closedBeforeHead, .closedBeforeHead, .bodyCut, "closed before the end"),
        CURLE_WRITE_ERROR.rawValue: Row(.local, "our callback refused bytes without saying why"),
        CURLE_OUT_OF_MEMORY.rawValue: Row(.local, "no memory"),
        CURLE_OPERATION_TIMEDOUT.rawValue: Row(
            .connectTimedOut, .closedBeforeHead, .bodyCut, "the only limit set is the one for connecting"),
        CURLE_SSL_CONNECT_ERROR.rawValue: Row(.tlsFailed, "the handshake broke off"),
        CURLE_BAD_FUNCTION_ARGUMENT.rawValue: Row(
            .local, .malformed, .malformed, "a header line that libcurl cannot file, such as a folded first one"),
        CURLE_ABORTED_BY_CALLBACK.rawValue: Row(.local, "a callback of ours was missing its attempt"),
        CURLE_INTERFACE_FAILED.rawValue: Row(.local, "the outgoing address is not ours"),
        CURLE_GOT_NOTHING.rawValue: Row(.closedBeforeHead, "closed without a byte"),
        CURLE_SSL_ENGINE_NOTFOUND.rawValue: Row(.local, "OpenSSL's configuration"),
        CURLE_SSL_ENGINE_SETFAILED.rawValue: Row(.local, "OpenSSL's configuration"),
        CURLE_SSL_ENGINE_INITFAILED.rawValue: Row(.local, "OpenSSL's configuration"),
        CURLE_SEND_ERROR.rawValue: Row(.connectFailed, .closedBeforeHead, .bodyCut, "reset while sending"),
        CURLE_RECV_ERROR.rawValue: Row(
            .connectFailed, .closedBeforeHead, .bodyCut, "reset, or TLS closed without close_notify"),
        CURLE_SSL_CERTPROBLEM.rawValue: Row(.local, "our own certificate, which we have none of"),
        CURLE_SSL_CIPHER.rawValue: Row(.tlsFailed, "no cipher in common"),
        CURLE_PEER_FAILED_VERIFICATION.rawValue: Row(.certificateRefused, "not trusted, expired, or another host's"),
        CURLE_BAD_CONTENT_ENCODING.rawValue: Row(.malformed, "a coding nobody asked for"),
        CURLE_USE_SSL_FAILED.rawValue: Row(.tlsFailed, "TLS is required"),
        CURLE_SSL_CACERT_BADFILE.rawValue: Row(.local, "the file of certificate authorities cannot be used"),
        CURLE_SSL_SHUTDOWN_FAILED.rawValue: Row(.tlsFailed, .closedBeforeHead, .bodyCut, "TLS did not end in order"),
        CURLE_AGAIN.rawValue: Row(.other, "libcurl keeps this one to itself"),
        CURLE_SSL_CRL_BADFILE.rawValue: Row(.local, "a file of the TLS settings cannot be used"),
        CURLE_SSL_ISSUER_ERROR.rawValue: Row(.certificateRefused, "issued by someone else"),
        CURLE_NO_CONNECTION_AVAILABLE.rawValue: Row(.local, "a limit of ours on connections"),
        CURLE_SSL_PINNEDPUBKEYNOTMATCH.rawValue: Row(.certificateRefused, "another key than the pinned one"),
        CURLE_SSL_INVALIDCERTSTATUS.rawValue: Row(.certificateRefused, "the certificate is revoked"),
        CURLE_PROXY.rawValue: Row(.proxyFailed, "the SOCKS handshake failed"),
        CURLE_SSL_CLIENTCERT.rawValue: Row(.tlsFailed, "the server wants a certificate of ours"),
        CURLE_UNRECOVERABLE_POLL.rawValue: Row(.local, "poll(2) failed"),
    ]

    /// How an attempt ended that libcurl is done with.
    static func end(of attempt: Attempt, _ code: CURLcode) -> AttemptEnd {
        if let decided = attempt.decidedEnd { return decided }
        if code == CURLE_OK {
            // libcurl 7.88 takes a close in the midst of the head for the end of an empty response.
            guard attempt.phase == .body else {
                return .failed(TransportFailure(.closedBeforeHead, "closed in the midst of the response head"))
            }
            if attempt.framing == .closed, attempt.handle.wasCutOff {
                return .failed(TransportFailure(.bodyCut, "TLS ended without close_notify"))
            }
            return .complete(attempt.framing)
        }
        let kind = kind(of: attempt, code)
        guard kind != .addressRefused else {
            let words = "the address is of this machine or of a private network, and only public ones may be asked"
            return .failed(TransportFailure(kind, words))
        }
        return .failed(TransportFailure(kind, attempt.handle.errorMessage(code)))
    }

    private static func kind(of attempt: Attempt, _ code: CURLcode) -> TransportFailure.Kind {
        if attempt.phase == .connecting, let kind = proxyRefusal(of: attempt, code) { return kind }
        if let kind = special(attempt, code) { return kind }
        guard let row = rows[code.rawValue] else { return .other }
        switch attempt.phase {
        case .connecting: return row.connecting
        case .requested: return row.requested
        case .body: return row.body
        }
    }

    /// What the code alone does not tell.
    private static func special(_ attempt: Attempt, _ code: CURLcode) -> TransportFailure.Kind? {
        let handle = attempt.handle
        switch code {
        case CURLE_COULDNT_CONNECT where attempt.hasRefusedAddress: return .addressRefused
        case CURLE_COULDNT_CONNECT:
            let exhausted = [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(Int32(handle.number(CURLINFO_OS_ERRNO)))
            return exhausted || !hasDescriptor() ? .local : nil
        case CURLE_OUT_OF_MEMORY:
            // libcurl 7.88 says so of a header line of over 100 KiB as well, which ends in no callback.
            return attempt.phase == .requested && handle.hasResponse ? .headTooLarge : nil
        case CURLE_RECV_ERROR where handle.errorMessage(code).contains("chunked-encoding"):
            // The one trace of invalid chunk framing (RFC 9112 §7.1), which has no code of its own before 8.x.
            return .malformed
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            // libcurl asks again five times when the server refuses a stream (RFC 9113 §8.7), then gives up.
            let isRefusal = attempt.phase == .requested && attempt.requestCount > refusedRequestCount
            return isRefusal ? .streamRefused : nil
        default: return nil
        }
    }

    /// `CONN_MAX_RETRIES` of libcurl.
    private static let refusedRequestCount = 5

    /// What a proxy's refusal means: the proxy's own trouble, or the way behind it.
    private static func proxyRefusal(of attempt: Attempt, _ code: CURLcode) -> TransportFailure.Kind? {
        let status = attempt.handle.number(CURLINFO_HTTP_CONNECTCODE)
        // CONNECT: 5xx tells that the proxy could not get through, anything else that it would not.
        if status >= 300 { return status >= 500 ? .connectFailed : .proxyFailed }
        // With a proxy it is the proxy alone whose name we resolve and whom we connect to; a name that is resolved here
        // for SOCKS has a code of its own below.
        let isProxied = attempt.pool.options.proxy != nil
        if isProxied, code == CURLE_COULDNT_RESOLVE_HOST { return .proxyFailed }
        if isProxied, code == CURLE_COULDNT_CONNECT, hasDescriptor() { return .proxyFailed }
        guard code == CURLE_PROXY else { return nil }
        switch CURLproxycode(UInt32(attempt.handle.number(CURLINFO_PROXY_ERROR))) {
        case CURLPX_RESOLVE_HOST: return .hostNotFound
        case CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE, CURLPX_REPLY_CONNECTION_REFUSED,
            CURLPX_REPLY_TTL_EXPIRED:
            return .connectFailed
        default: return .proxyFailed
        }
    }

    /// Whether the process may open one more descriptor: libcurl 7.88 keeps no `errno` of a failed socket(2).
    private static func hasDescriptor() -> Bool {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno != EMFILE && errno != ENFILE }
        close(descriptor)
        return true
    }
}

extension EasyHandle {
    /// Whether a byte of a response came.
    var hasResponse: Bool {
        var microseconds: curl_off_t = 0
        return ccurl_get_offset(pointer, CURLINFO_STARTTRANSFER_TIME_T, &microseconds) == CURLE_OK && microseconds > 0
    }
}
