import CCurl

/// What the certificates of servers and proxies are checked against.
extension EasyHandle {
    /// The authorities in that file instead of the system's; `nil`: nothing is read.
    func setAuthorities(file: String?) {
        set(CURLOPT_CAINFO, file)
        set(CURLOPT_PROXY_CAINFO, file)
        setDirectory(nil)
    }

    /// The system's authorities, read once for all connections of a pool rather than for each.
    ///
    /// Reading them takes 20 to 50 ms, and what was read some hundred KiB for as long as the connection lives. libcurl keeps them
    /// if they come from a file alone (`CURLOPT_CA_CACHE_TIMEOUT(3)`), but Debian's looks in a directory, too. OpenSSL looks there
    /// only for what the file has not, so that this need not be libcurl's to set.
    func shareSystemAuthorities() {
        guard ccurl_authority_directory() != nil, ccurl_set_tls_callback(pointer, Self.addDirectory) == CURLE_OK else {
            return
        }
        setDirectory(nil)
        // Authorities that were added or withdrawn are to be known without a restart of a service.
        set(CURLOPT_CA_CACHE_TIMEOUT, 600)
    }

    private func setDirectory(_ directory: String?) {
        set(CURLOPT_CAPATH, directory)
        set(CURLOPT_PROXY_CAPATH, directory)
    }

    private static let addDirectory:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> CURLcode = {
            _, context, _ in
            guard let context, let directory = ccurl_authority_directory() else { return CURLE_SSL_CERTPROBLEM }
            return ccurl_add_authorities(context, directory) == 1 ? CURLE_OK : CURLE_OUT_OF_MEMORY
        }
}
