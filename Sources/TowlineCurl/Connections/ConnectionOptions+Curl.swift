import CCurl
import Glibc
internal import TowlineCore
internal import TowlineEngine

/// The functions that apply the options of a download to libcurl, and remove secrets that a request must not carry.
extension ConnectionOptions {
    /// Returns the options without the secrets that the request must not carry, and without the cookie file: an attempt
    /// has its own cookies.
    ///
    /// - Parameter challenges: the servers that asked for Digest authentication, which get a password only after a 401.
    func limited(to request: AttemptRequest, besides challenges: ChallengeHosts) -> ConnectionOptions {
        var options = self
        options.cookieFile = nil
        if !request.sendsCredentials { options.clientCertificate = nil }
        // After a redirect, the target URL may have a user: a secret of the server that sent it.
        if !request.sendsCredentials || options.user == nil { options.user = request.url.credentials }
        if options.user != nil {
            options.netrc = .none
        } else if netrc != .none {
            // libcurl may keep the password in the handle: a handle is used for one host only.
            options.netrcHost = request.url.host
            if !request.sendsCredentials, !request.sendsNetrc || !NetrcFile(netrc).names(request.url.host) {
                options.netrc = .none
                options.netrcHost = nil
            }
        }
        options.waitsForChallenge = options.hasCredentials && challenges.contains(request.url.origin)
        return options
    }

    /// Returns whether requests with these options may carry a password, from `user` or from a netrc file.
    var hasCredentials: Bool { user != nil || netrc != .none }

    /// Returns whether concurrent requests with these options may share a connection as HTTP/2 streams. HTTP/1.1 has no
    /// streams. With HTTP/2 without negotiation, libcurl 7.88 starts HTTP/2 again on a reused connection (curl pull
    /// request 10643, fixed in 8.0).
    var mayShare: Bool { httpProtocol == .automatic }

    /// Sets on an easy handle of libcurl all settings that are the same for every attempt with these options.
    func apply(to handle: EasyHandle) {
        applyRules(to: handle)
        applyTLS(to: handle)
        handle.watchAddresses()
        switch addressFamily {
        case .ipv4?: handle.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .ipv6?: handle.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        case nil: break
        }
        // An empty text keeps libcurl from reading the environment, which `withProxy` has read. With public addresses
        // only, no proxy is used, because the addresses behind a proxy are unknown.
        handle.set(CURLOPT_PROXY, publicAddressesOnly ? "" : proxy ?? "")
        handle.set(CURLOPT_NOPROXY, "")
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

    /// Sets the rules that hold for all requests of this transport, such as: only http and https, and no redirects.
    private func applyRules(to handle: EasyHandle) {
        handle.set(CURLOPT_HTTPGET, 1)
        handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        handle.set(CURLOPT_FOLLOWLOCATION, 0)
        // Transfer codings are removed. Content codings are not: libcurl removes them only after
        // CURLOPT_ACCEPT_ENCODING.
        handle.set(CURLOPT_HTTP_CONTENT_DECODING, 1)
        handle.set(CURLOPT_HTTP_TRANSFER_DECODING, 1)
        handle.set(CURLOPT_HTTP09_ALLOWED, 0)
        handle.set(CURLOPT_IGNORE_CONTENT_LENGTH, ignoresLength ? 1 : 0)
        // The URL was parsed and checked above; libcurl sends it unchanged.
        handle.set(CURLOPT_PATH_AS_IS, 1)
        handle.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // A proxy that only builds a tunnel does not receive the fields for the origin.
        handle.set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        handle.set(CURLOPT_NOSIGNAL, 1)
        // Otherwise the cancellation of an attempt whose name is being resolved would wait for the resolver, for
        // seconds, and block all other attempts of this engine thread.
        handle.set(CURLOPT_QUICK_EXIT, 1)
        // The next tries find an address that moved within seconds, not within a minute, and many files of one host in
        // a row still need one lookup.
        handle.set(CURLOPT_DNS_CACHE_TIMEOUT, 5)
        // RFC 8305 §5. libcurl's own time is 200 ms.
        handle.set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, Int(AddressRace.delay / .milliseconds(1)))
        handle.set(CURLOPT_TCP_NODELAY, 1)
        handle.set(CURLOPT_TCP_KEEPALIVE, 1)
        handle.set(CURLOPT_TCP_KEEPIDLE, 60)
        handle.set(CURLOPT_TCP_KEEPINTVL, 15)
    }

    private func applyTLS(to handle: EasyHandle) {
        handle.set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        handle.set(CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        applyClientCertificate(to: handle)
        let verifies = allowsInsecure ? 0 : 1
        handle.set(CURLOPT_SSL_VERIFYPEER, verifies)
        handle.set(CURLOPT_PROXY_SSL_VERIFYPEER, verifies)
        // 2: the name in the certificate must be the host's (`CURLOPT_SSL_VERIFYHOST(3)`).
        handle.set(CURLOPT_SSL_VERIFYHOST, verifies * 2)
        handle.set(CURLOPT_PROXY_SSL_VERIFYHOST, verifies * 2)
        applyAuthorities(to: handle)
        CertificateRequests.watch(handle)
    }

    /// Sets the certificate authorities that differ from libcurl's default, which is the system's file and directory.
    private func applyAuthorities(to handle: EasyHandle) {
        func set(file: String?) {
            handle.set(CURLOPT_CAINFO, file)
            handle.set(CURLOPT_PROXY_CAINFO, file)
        }
        func set(directory: String?) {
            handle.set(CURLOPT_CAPATH, directory)
            handle.set(CURLOPT_PROXY_CAPATH, directory)
        }
        if let certificateAuthorityFile {
            set(file: certificateAuthorityFile)
            set(directory: nil)
        } else if NamedAuthorities.file != nil || NamedAuthorities.directory != nil {
            if let file = NamedAuthorities.file { set(file: file.path) }
            if let directory = NamedAuthorities.directory { set(directory: directory.path) }
        } else if !allowsInsecure, SystemAuthorities.directorySuffices {
            set(file: nil)
        }
    }

    private func applyClientCertificate(to handle: EasyHandle) {
        guard let clientCertificate else { return }
        handle.set(CURLOPT_SSLCERT, clientCertificate.file)
        handle.set(CURLOPT_SSLCERTTYPE, clientCertificate.form.rawValue)
        if let keyFile = clientCertificate.keyFile {
            handle.set(CURLOPT_SSLKEY, keyFile)
        } else if clientCertificate.form == .pkcs12 {
            handle.set(CURLOPT_SSLKEYTYPE, clientCertificate.form.rawValue)
        }
        // An empty password, not `nil`: with `nil`, OpenSSL would ask for the password on the terminal.
        handle.set(CURLOPT_KEYPASSWD, clientCertificate.keyPassword ?? "")
    }

    private func applyCredentials(to handle: EasyHandle) {
        // The first request sends Basic without waiting for a 401, as curl does: some servers hide a file from unknown
        // users and never ask for a password.
        handle.set(
            CURLOPT_HTTPAUTH,
            waitsForChallenge ? ccurl_basic_or_digest_authentication() : ccurl_basic_authentication())
        if let user { handle.set(CURLOPT_USERPWD, user) }
        // The empty name turns on libcurl's cookies. The attempt provides them.
        handle.set(CURLOPT_COOKIEFILE, "")
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
    /// Checks the options of a new pool. Throws for options that libcurl would silently ignore or misread:
    /// `tlsFileUnusable` if a certificate or key file cannot be read, `local` if the netrc file cannot be read. Also
    /// throws `local` for a user name or password with a control character, which would end the text early in C or
    /// break a line on the wire.
    static func check(_ options: ConnectionOptions) throws(TransportFailure) {
        if let file = options.certificateAuthorityFile {
            try checkReadable("certificate file", file, .tlsFileUnusable)
        }
        if let certificate = options.clientCertificate {
            try checkReadable("client certificate", certificate.file, .tlsFileUnusable)
            if let file = certificate.keyFile { try checkReadable("key file", file, .tlsFileUnusable) }
        }
        if case .file(let file) = options.netrc { try checkReadable("netrc file", file) }
        guard options.user?.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) ?? true else {
            let reason =
                "the user name or password contains a control character such as a line break, which must be removed"
            throw TransportFailure(.local, reason)
        }
    }

    /// Checks that the file at the path `file` can be read, and throws a failure of the given kind if not. `what`
    /// describes the file in the error message, for example "cookie file".
    static func checkReadable(
        _ what: String, _ file: String, _ kind: TransportFailure.Kind = .local
    ) throws(TransportFailure) {
        guard !file.utf8.contains(0), ByteText.withCString(file, { access($0, R_OK) }) == 0 else {
            let reason = "cannot read the \(what) \(file): the file does not exist or may not be read"
            throw TransportFailure(kind, reason)
        }
    }
}
