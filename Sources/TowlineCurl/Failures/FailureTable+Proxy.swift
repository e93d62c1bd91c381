import CCurl
internal import TowlineCore
internal import TowlineEngine

/// The functions that find the failure of a request through a proxy: of the proxy, or of its connection to the server.
extension FailureTable {
    /// The error message for users if the SOCKS handshake with the proxy failed.
    static let socksFailed =
        "the SOCKS proxy did not open a connection to the server (the SOCKS handshake failed)"

    /// Returns the failure of the proxy, or of its connection to the server, before the request is sent; `nil` if
    /// libcurl's result `code` alone describes the failure.
    static func proxyRefusal(of attempt: Attempt, _ code: CURLcode) -> TransportFailure? {
        let handle = attempt.handle
        // The status of CONNECT: with 5xx the proxy cannot connect to the server, with any other status it refuses.
        switch handle.number(CURLINFO_HTTP_CONNECTCODE) {
        case 0: break
        case ..<300: return nil
        case 407: return TransportFailure(.proxyUnauthorized, HeadCollector.proxyCredentials)
        case ..<500: return TransportFailure(.proxyFailed, "the proxy refused to open a connection to this server")
        default: return TransportFailure(.connectFailed, "the proxy cannot connect to the server, which may be down")
        }
        guard let proxy = attempt.pool.proxy else { return nil }
        let name = attempt.pool.proxyName
        switch code {
        // Only the proxy's name is resolved here. A name that is resolved for SOCKS has its own code, CURLE_PROXY.
        case CURLE_COULDNT_RESOLVE_HOST where handle.lacksResolverThread,
            CURLE_COULDNT_RESOLVE_PROXY where handle.lacksResolverThread:
            return nil
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            return TransportFailure(
                .proxyFailed,
                "cannot resolve the host name of \(name): the name is wrong, or the network or DNS is down")
        case CURLE_COULDNT_CONNECT where hasDescriptor():
            return TransportFailure(
                .proxyFailed, "cannot connect to \(name), which may be down: connection refused or host unreachable")
        case CURLE_OPERATION_TIMEDOUT where !handle.hasConnected:
            return TransportFailure(
                .proxyFailed, "cannot connect to \(name), which may be down: the connection timed out")
        case CURLE_OPERATION_TIMEDOUT:
            return TransportFailure(.connectTimedOut, "\(name) did not connect to the server within the time limit")
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY:
            return TransportFailure(.proxyFailed, "\(name) closed the connection before it connected to the server")
        case CURLE_SSL_CONNECT_ERROR where proxy.usesTLS:
            return TransportFailure(
                .proxyFailed,
                "the TLS handshake with \(name) failed. If the proxy does not use TLS, its URL begins with http://")
        case CURLE_PEER_FAILED_VERIFICATION where proxy.usesTLS:
            return TransportFailure(.certificateRefused, "the certificate of \(name) cannot be verified")
        case CURLE_PROXY: return socksRefusal(of: attempt)
        default: return nil
        }
    }

    private static func socksRefusal(of attempt: Attempt) -> TransportFailure {
        switch CURLproxycode(UInt32(attempt.handle.number(CURLINFO_PROXY_ERROR))) {
        case CURLPX_RESOLVE_HOST: return TransportFailure(.hostNotFound, hostNotFound)
        case CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE, CURLPX_REPLY_CONNECTION_REFUSED,
            CURLPX_REPLY_TTL_EXPIRED:
            return TransportFailure(.connectFailed, "the SOCKS proxy cannot connect to the server, which may be down")
        case CURLPX_USER_REJECTED, CURLPX_NO_AUTH:
            let reason =
                "the SOCKS proxy requires a valid user name and password."
                + " \(Remedy.proxyLogin.sentence): socks5h://USER:PASSWORD@HOST:PORT"
            return TransportFailure(.proxyUnauthorized, reason)
        default: return TransportFailure(.proxyFailed, socksFailed)
        }
    }
}

extension ConnectionPool {
    /// The name of the proxy for error messages and, if its address is from the environment, of the variable.
    var proxyName: String {
        let source = options.proxyVariable.map { " (\($0))" } ?? ""
        return "the proxy \(proxy?.place ?? "")\(source)"
    }
}

extension EasyHandle {
    /// Returns whether the handle's request opened a connection, to the proxy if one is used.
    fileprivate var hasConnected: Bool {
        var microseconds: curl_off_t = 0
        return ccurl_get_offset(pointer, CURLINFO_CONNECT_TIME_T, &microseconds) == CURLE_OK && microseconds > 0
    }
}
