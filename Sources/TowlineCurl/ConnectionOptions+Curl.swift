import CCurl
import Glibc
internal import TowlineCore
internal import TowlineEngine

extension ConnectionOptions {
    /// The options less everything that must not go to this origin.
    func limited(sendsCredentials: Bool) -> ConnectionOptions {
        var options = self
        if !sendsCredentials {
            options.user = nil
            options.netrc = .none
            options.cookieFile = nil
        }
        return options
    }

    /// Whether libcurl 7.88 can put several streams on a connection: not where HTTP/2 is spoken unasked, since it begins
    /// anew on a connection that it uses again (curl pull request 10643, mended in 8.0).
    var mayShare: Bool { httpProtocol != .http2PriorKnowledge }

    /// Sets everything on a handle that does not differ between two attempts with these options.
    func apply(to handle: EasyHandle) {
        applyRules(to: handle)
        applyTLS(to: handle)
        applyProxy(to: handle)
        if publicAddressesOnly {
            handle.refusePrivateAddresses()
            // Behind a proxy nobody sees what is connected to; empty: not even the environment's.
            setProxy("", of: handle)
        }
        applyCredentials(to: handle)
        handle.set(CURLOPT_CONNECTTIMEOUT_MS, connectTimeout.curlMilliseconds)
        switch httpProtocol {
        case .automatic: handle.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
        case .http1: handle.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        case .http2PriorKnowledge:
            handle.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
            // See `mayShare`.
            handle.set(CURLOPT_FORBID_REUSE, 1)
        }
    }

    /// The transport's own rules, the same for everyone.
    private func applyRules(to handle: EasyHandle) {
        handle.set(CURLOPT_HTTPGET, 1)
        handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        handle.set(CURLOPT_FOLLOWLOCATION, 0)
        handle.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        handle.set(CURLOPT_HTTP_TRANSFER_DECODING, 1)
        handle.set(CURLOPT_HTTP09_ALLOWED, 0)
        // The URL was parsed and checked above: it goes out as it is.
        handle.set(CURLOPT_PATH_AS_IS, 1)
        handle.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // What is meant for the origin is not told to a proxy that only builds a tunnel.
        handle.set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        handle.set(CURLOPT_NOSIGNAL, 1)
        // Otherwise giving up an attempt whose name is being resolved would wait for the resolver, for seconds, and
        // with it everything else on this engine thread.
        handle.set(CURLOPT_QUICK_EXIT, 1)
        // An address that moved is to be found by the next tries, not in a minute; many files of one host in a row are
        // still resolved once.
        handle.set(CURLOPT_DNS_CACHE_TIMEOUT, 5)
        handle.set(CURLOPT_TCP_NODELAY, 1)
        handle.set(CURLOPT_TCP_KEEPALIVE, 1)
        handle.set(CURLOPT_TCP_KEEPIDLE, 60)
        handle.set(CURLOPT_TCP_KEEPINTVL, 15)
    }

    private func applyTLS(to handle: EasyHandle) {
        handle.set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        handle.set(CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        let verifies = allowsInsecure ? 0 : 1
        handle.set(CURLOPT_SSL_VERIFYPEER, verifies)
        handle.set(CURLOPT_PROXY_SSL_VERIFYPEER, verifies)
        // 2: the name in the certificate must be the host's (`CURLOPT_SSL_VERIFYHOST(3)`).
        handle.set(CURLOPT_SSL_VERIFYHOST, verifies * 2)
        handle.set(CURLOPT_PROXY_SSL_VERIFYHOST, verifies * 2)
        if let certificateAuthorityFile {
            // Instead of the system's authorities, not besides them.
            handle.setAuthorities(file: certificateAuthorityFile, directory: nil)
        } else if !allowsInsecure {
            handle.shareSystemAuthorities()
        }
    }

    /// `nil` leaves the choice to the environment, read by libcurl: `http_proxy`, `HTTPS_PROXY`, `ALL_PROXY`,
    /// `NO_PROXY` and so on. A proxy that was named outranks all of these, `NO_PROXY` included.
    private func applyProxy(to handle: EasyHandle) {
        guard let proxy else {
            // libcurl would look for each request.
            if !Self.environmentNamesProxy { setProxy("", of: handle) }
            return
        }
        setProxy(proxy, of: handle)
    }

    private func setProxy(_ proxy: String, of handle: EasyHandle) {
        handle.set(CURLOPT_PROXY, proxy)
        handle.set(CURLOPT_NOPROXY, "")
    }

    /// Whether one of the variables is set in which libcurl looks for a proxy (libcurl-env(3)).
    private static var environmentNamesProxy: Bool {
        let names: [String] = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        return names.contains { name in
            getenv(name).map { $0.pointee != 0 } ?? false
        }
    }

    private func applyCredentials(to handle: EasyHandle) {
        if let user {
            handle.set(CURLOPT_HTTPAUTH, ccurl_basic_authentication())
            handle.set(CURLOPT_USERPWD, user)
        }
        // The cookies are the pool's; an empty file name is what makes a handle use them.
        if cookieFile != nil { handle.set(CURLOPT_COOKIEFILE, "") }
        switch netrc {
        case .none: handle.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        case .userFile: handle.set(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
        case .file(let path):
            handle.set(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
            handle.set(CURLOPT_NETRC_FILE, path)
        }
    }
}

extension ConnectionPool {
    /// Throws `local` for options that libcurl would quietly ignore: a file that cannot be read, a proxy of another
    /// kind, and text that would end early in C or break a line on the wire.
    static func check(_ options: ConnectionOptions) throws(TransportFailure) {
        var files: [(String, String)] = []
        if let file = options.certificateAuthorityFile { files.append(("certificate file", file)) }
        if let file = options.cookieFile { files.append(("cookie file", file)) }
        if case .file(let file) = options.netrc { files.append(("netrc file", file)) }
        for (what, file) in files {
            guard !file.utf8.contains(0), ByteText.withCString(file, { access($0, R_OK) }) == 0 else {
                let reason = "cannot read the \(what) \(file): the file does not exist or may not be read"
                throw TransportFailure(.local, reason)
            }
        }
        for text in [options.proxy, options.user].compactMap(\.self) {
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                let reason =
                    "the proxy URL, user name or password contains a control character such as a line break,"
                    + " which must be removed"
                throw TransportFailure(.local, reason)
            }
        }
        guard let proxy = options.proxy, let end = proxy.firstRange(of: "://") else { return }
        let scheme = proxy[..<end.lowerBound].lowercased()
        guard ["http", "https", "socks5", "socks5h"].contains(scheme) else {
            throw TransportFailure(.local, "the proxy URL must begin with http://, https://, socks5:// or socks5h://")
        }
    }
}
