import CCurl
import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The meaning of libcurl's result codes for an attempt: one row per code, with a text for users and one kind of
/// failure per phase. A phase is connecting, waiting for the response head, or receiving the body.
enum FailureTable {
    /// A row of the table for one result code of libcurl: the kind of failure while connecting, before the head was
    /// complete, and in the body.
    struct Row {
        let connecting: TransportFailure.Kind
        let requested: TransportFailure.Kind
        let body: TransportFailure.Kind
        /// The text for users that explains the failure of this row. libcurl's own message follows it in parentheses.
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

        /// Creates a row for a result code of libcurl that means the same kind of failure in all phases.
        init(_ kind: TransportFailure.Kind, _ reason: String) { self.init(kind, kind, kind, reason) }
    }

    /// The rows of the table, by libcurl's result code. A code without a row cannot come from an HTTP request and
    /// becomes `other`.
    static let rows: [CURLcode.RawValue: Row] = [
        CURLE_UNSUPPORTED_PROTOCOL.rawValue: Row(
            .local, .malformed, .malformed,
            "the server does not speak HTTP: its response has no HTTP headers"),
        CURLE_FAILED_INIT.rawValue: Row(.local, cannotStart),
        CURLE_URL_MALFORMAT.rawValue: Row(.local, "libcurl rejected the URL as invalid, so no request was sent"),
        CURLE_NOT_BUILT_IN.rawValue: Row(
            .local, "the libcurl on this machine was built without a feature that this request needs"),
        CURLE_COULDNT_RESOLVE_PROXY.rawValue: Row(.proxyFailed, proxyNotFound),
        CURLE_COULDNT_RESOLVE_HOST.rawValue: Row(.hostNotFound, hostNotFound),
        CURLE_COULDNT_CONNECT.rawValue: Row(
            .connectFailed, "cannot connect to the server, which may be down: connection refused or host unreachable"),
        CURLE_WEIRD_SERVER_REPLY.rawValue: Row(
            .malformed, "the server sent an invalid response: its headers are not valid HTTP"),
        CURLE_HTTP2.rawValue: Row(
            .tlsFailed, .closedBeforeHead, .bodyCut,
            "the HTTP/2 connection to the server failed because of an error in the HTTP/2 protocol"),
        CURLE_HTTP2_STREAM.rawValue: Row(
            .connectFailed, .closedBeforeHead, .bodyCut,
            "the server aborted the request before the response was complete (HTTP/2 stream reset)"),
        CURLE_PARTIAL_FILE.rawValue: Row(
            .closedBeforeHead, .closedBeforeHead, .bodyCut,
            "the connection to the server closed before the whole response was received"),
        CURLE_WRITE_ERROR.rawValue: Row(
            .local, "internal error in Towline (please report this bug): the received bytes were rejected"),
        CURLE_OUT_OF_MEMORY.rawValue: Row(.local, outOfMemory),
        // A download has a limit only for connecting; a webhook has one for the whole request.
        CURLE_OPERATION_TIMEDOUT.rawValue: Row(
            .connectTimedOut, .closedBeforeHead, .bodyCut,
            "the request timed out: the server did not respond within the time limit"),
        CURLE_SSL_CONNECT_ERROR.rawValue: Row(
            .tlsFailed, "cannot open an encrypted connection to the server: the TLS handshake failed"),
        // For example a head that begins with a folded line.
        CURLE_BAD_FUNCTION_ARGUMENT.rawValue: Row(
            .local, .malformed, .malformed,
            "the server sent an invalid response: libcurl cannot parse one of its header lines"),
        CURLE_ABORTED_BY_CALLBACK.rawValue: Row(.local, "the request was cancelled on this machine, not by the server"),
        CURLE_INTERFACE_FAILED.rawValue: Row(
            .local, "the network interface or local address of this machine cannot be used for the connection"),
        CURLE_GOT_NOTHING.rawValue: Row(
            .closedBeforeHead, "the server closed the connection without sending a response"),
        CURLE_SSL_ENGINE_NOTFOUND.rawValue: Row(
            .local, "OpenSSL cannot find the crypto engine (a plug-in) that its configuration on this machine names"),
        CURLE_SSL_ENGINE_SETFAILED.rawValue: Row(
            .local, "OpenSSL cannot use the crypto engine (a plug-in) that its configuration on this machine names"),
        CURLE_SSL_ENGINE_INITFAILED.rawValue: Row(
            .local, "OpenSSL cannot start the crypto engine (a plug-in) that its configuration on this machine names"),
        CURLE_SEND_ERROR.rawValue: Row(
            .connectFailed, .closedBeforeHead, .bodyCut,
            "the connection to the server broke while the request was sent"),
        CURLE_RECV_ERROR.rawValue: Row(
            .connectFailed, .closedBeforeHead, .bodyCut,
            "the server reset or closed the connection before the whole response was received"),
        CURLE_SSL_CERTPROBLEM.rawValue: Row(
            .tlsFileUnusable,
            "the client certificate or its key cannot be used, so the request was not sent."
                + " \(Remedy.certificateFiles.sentence)"),
        CURLE_SSL_CIPHER.rawValue: Row(
            .tlsFailed,
            "the TLS handshake failed: this machine and the server have no encryption method (cipher) in common"),
        CURLE_PEER_FAILED_VERIFICATION.rawValue: Row(
            .certificateRefused, "the certificate of the server cannot be verified, so the request was not sent"),
        CURLE_BAD_CONTENT_ENCODING.rawValue: Row(
            .malformed, "the server compressed the response with a Content-Encoding that libcurl cannot decode"),
        CURLE_USE_SSL_FAILED.rawValue: Row(
            .tlsFailed, "the server does not support encryption (TLS), which this URL requires"),
        CURLE_SSL_CACERT_BADFILE.rawValue: Row(
            .tlsFileUnusable,
            "the file of trusted certificates cannot be read or contains no certificate, so no server can be verified."
                + " \(Remedy.authorities.sentence)"),
        CURLE_SSL_SHUTDOWN_FAILED.rawValue: Row(
            .tlsFailed, .closedBeforeHead, .bodyCut,
            "the encrypted (TLS) connection was not closed correctly, so the response may be incomplete"),
        CURLE_AGAIN.rawValue: Row(
            .other, "the operating system was not ready to send or receive data on this connection"),
        CURLE_SSL_CRL_BADFILE.rawValue: Row(
            .local, "the certificate revocation list (CRL file) on this machine cannot be read"),
        CURLE_SSL_ISSUER_ERROR.rawValue: Row(
            .certificateRefused,
            "the certificate of the server was issued by an unexpected authority, so the request was not sent"),
        CURLE_NO_CONNECTION_AVAILABLE.rawValue: Row(
            .local, "no connection was opened: the connection limit of libcurl on this machine is reached"),
        CURLE_SSL_PINNEDPUBKEYNOTMATCH.rawValue: Row(
            .certificateRefused,
            "the public key of the server is not the expected (pinned) key, so the request was not sent"),
        CURLE_SSL_INVALIDCERTSTATUS.rawValue: Row(
            .certificateRefused,
            "the certificate of the server is revoked or its status is unknown, so the request was not sent"),
        CURLE_PROXY.rawValue: Row(.proxyFailed, socksFailed),
        CURLE_SSL_CLIENTCERT.rawValue: Row(.clientCertificateRefused, certificateRequired.message),
        CURLE_UNRECOVERABLE_POLL.rawValue: Row(
            .local, "this machine cannot wait for network data: the system call poll(2) failed"),
    ]

    /// The error message for users if a request failed because memory ran out.
    static let outOfMemory = "this machine has no free memory left for the request"
    /// The error message for users if a request failed because libcurl could not be initialized.
    static let cannotStart =
        "the network library libcurl cannot start on this machine, possibly because memory is low"
    /// The error message for users if the host name of the server does not resolve.
    static let hostNotFound =
        "cannot resolve the host name of the server: the name is wrong, or the network or DNS is down"
    private static let notPublic =
        "this download may only use public addresses, and the host name of the server does not lead to one: "
        + "the name is wrong, its addresses are private or local, or DNS is down"
    private static let proxyNotFound =
        "cannot resolve the host name of the proxy: the name is wrong, or the network or DNS is down"

    /// Returns the failure of a host name that does not resolve. If the options allow only public addresses, the text
    /// also covers private addresses and so does not reveal the cause.
    static func hostUnknown(_ options: ConnectionOptions) -> TransportFailure {
        options.publicAddressesOnly
            ? TransportFailure(.hostNotPublic, notPublic)
            : TransportFailure(.hostNotFound, hostNotFound + onlyFamily(of: options))
    }

    private static func onlyFamily(of options: ConnectionOptions) -> String {
        switch options.addressFamily {
        case .ipv4?: ". Only IPv4 addresses are used (-4)"
        case .ipv6?: ". Only IPv6 addresses are used (-6)"
        case nil: ""
        }
    }

    /// Returns the end of an attempt that libcurl has finished with the result `code`: the end that the attempt decided
    /// before, otherwise a complete response or a failure.
    static func end(of attempt: Attempt, _ code: CURLcode) -> AttemptEnd {
        if let decided = attempt.decidedEnd { return decided }
        if code == CURLE_OK {
            // libcurl 7.88 treats a close in the middle of the head as the end of an empty response.
            guard let body = attempt.body else { return .failed(headCut) }
            if body.framing == .closed, attempt.handle.wasCutOff { return .complete(.unclosed) }
            return .complete(body.framing)
        }
        return .failed(failure(of: attempt, code))
    }

    /// The failure of a connection that closed before the response head was complete. libcurl 7.88 reports it as a
    /// success.
    static var headCut: TransportFailure {
        TransportFailure(.closedBeforeHead, "the server closed the connection in the middle of the response headers")
    }

    /// Returns the failure for libcurl's result `code` of a request that was sent. `detail` is libcurl's own message,
    /// which is added to the text; `nil` without a message.
    static func failure(_ code: CURLcode, detail: String?) -> TransportFailure {
        guard let row = rows[code.rawValue] else { return unknown(code, detail) }
        return explained(TransportFailure(row.requested, row.reason), detail)
    }

    private static func failure(of attempt: Attempt, _ code: CURLcode) -> TransportFailure {
        let detail = attempt.handle.errorDetail
        if attempt.phase == .connecting, let failure = proxyRefusal(of: attempt, code) {
            return explained(failure, detail)
        }
        if let failure = tlsRefusal(of: attempt, code) ?? special(attempt, code) {
            // The message of libcurl contains addresses, which some clients must not see.
            return [.addressRefused, .hostNotPublic].contains(failure.kind) ? failure : explained(failure, detail)
        }
        guard let row = rows[code.rawValue] else { return unknown(code, detail) }
        let kind =
            switch attempt.phase {
            case .connecting: row.connecting
            case .requested: row.requested
            case .body: row.body
            }
        let isBehindProxy = attempt.pool.proxy != nil && attempt.phase == .requested
        var way = isBehindProxy ? ". The request went through \(attempt.pool.proxyName)" : ""
        if attempt.phase == .connecting { way += onlyFamily(of: attempt.pool.options) }
        return explained(TransportFailure(kind, row.reason + way), detail)
    }

    /// Adds libcurl's own message to the text of a failure, in parentheses. The message has the details: addresses,
    /// times, the error of OpenSSL.
    private static func explained(_ failure: TransportFailure, _ detail: String?) -> TransportFailure {
        TransportFailure(failure.kind, failure.message, detail: detail)
    }

    private static func unknown(_ code: CURLcode, _ detail: String?) -> TransportFailure {
        let text = detail ?? CurlLibrary.text(code)
        return TransportFailure(.other, "the request to the server failed: libcurl error \(code.rawValue) (\(text))")
    }

    /// Returns the failure of an attempt if it depends on more than libcurl's result code; `nil` if the code alone
    /// describes it.
    private static func special(_ attempt: Attempt, _ code: CURLcode) -> TransportFailure? {
        let handle = attempt.handle
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST where handle.lacksResolverThread,
            CURLE_COULDNT_RESOLVE_PROXY where handle.lacksResolverThread:
            let reason =
                "cannot start a thread to resolve the host name, because a limit on processes and threads is reached"
                + " (ulimit -u, or pids.max of a container). Resolving it without a thread"
            return TransportFailure(.local, reason)
        case CURLE_COULDNT_RESOLVE_HOST where attempt.pool.options.publicAddressesOnly:
            return TransportFailure(.hostNotPublic, notPublic)
        case CURLE_COULDNT_CONNECT where attempt.addresses.hasRefused:
            guard handle.hostIsAddress else { return TransportFailure(.hostNotPublic, notPublic) }
            let reason =
                "this download may only use public addresses, but the address of the server is private or local"
            return TransportFailure(.addressRefused, reason)
        case CURLE_COULDNT_CONNECT:
            let exhausted = [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(Int32(handle.number(CURLINFO_OS_ERRNO)))
            guard exhausted || !hasDescriptor() else { return nil }
            let reason = "no connection was opened: this machine is out of file descriptors, socket buffers or memory"
            return TransportFailure(.local, reason)
        case CURLE_OUT_OF_MEMORY:
            // libcurl 7.88 also reports this for a header line of over 100 KiB, and calls no callback.
            guard attempt.phase == .requested, handle.hasResponse else { return nil }
            let reason = "the server sent a response header line of more than 100 KiB; Towline accepts at most 100 KiB"
            return TransportFailure(.headTooLarge, reason)
        case CURLE_RECV_ERROR where handle.errorDetail?.contains("chunked-encoding") == true:
            // The only sign of invalid chunk framing (RFC 9112 §7.1), which has no result code of its own before 8.x.
            let reason = "the server sent invalid chunked data, so the end of the response is unclear"
            return TransportFailure(.malformed, reason)
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            // When the server refuses a stream (RFC 9113 §8.7), libcurl sends the request five more times, then fails.
            guard attempt.phase == .requested, attempt.connection.requestCount > refusedRequestCount else { return nil }
            let reason = "the server refused to process the request on this HTTP/2 connection (REFUSED_STREAM)"
            return TransportFailure(.streamRefused, reason)
        default: return nil
        }
    }

    /// The number of times that libcurl sends a request again whose stream the server refused (libcurl's
    /// `CONN_MAX_RETRIES`).
    private static let refusedRequestCount = 5

    /// Returns whether the process can open another file descriptor. Used after a failed connection: libcurl 7.88 does
    /// not keep the `errno` of a failed socket(2).
    static func hasDescriptor() -> Bool {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno != EMFILE && errno != ENFILE }
        close(descriptor)
        return true
    }
}

extension EasyHandle {
    /// Returns whether the host of the URL is an IP address, in any form that getaddrinfo(3) accepts: `[::1]`, `127.1`.
    fileprivate var hostIsAddress: Bool {
        var text: UnsafePointer<CChar>?
        guard ccurl_get_text(pointer, CURLINFO_EFFECTIVE_URL, &text) == CURLE_OK, let text,
            let host = try? HTTPURL(parsing: String(cString: text)).host, let last = host.split(separator: ".").last
        else { return false }
        return last.first == "[" || last.first.map { "0"..."9" ~= $0 } == true
    }

    /// Returns whether any byte of the response to the handle's request has arrived, which tells a header line that is
    /// too long from a lack of memory.
    var hasResponse: Bool {
        var microseconds: curl_off_t = 0
        return ccurl_get_offset(pointer, CURLINFO_STARTTRANSFER_TIME_T, &microseconds) == CURLE_OK && microseconds > 0
    }
}
