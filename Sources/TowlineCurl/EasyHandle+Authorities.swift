import CCurl

/// Settings for the certificate authorities that verify the certificates of servers and proxies.
extension EasyHandle {
    /// Trusts the certificate authorities in a PEM file and in a directory with one file per authority. With `nil`,
    /// libcurl reads no file or no directory.
    func setAuthorities(file: String?, directory: String?) {
        setAuthorities(file: file)
        setAuthorities(directory: directory)
    }

    private func setAuthorities(file: String?) {
        set(CURLOPT_CAINFO, file)
        set(CURLOPT_PROXY_CAINFO, file)
    }

    private func setAuthorities(directory: String?) {
        set(CURLOPT_CAPATH, directory)
        set(CURLOPT_PROXY_CAPATH, directory)
    }

    /// Sets the callback that prepares each OpenSSL context of this handle: OpenSSL then reports servers that ask for a
    /// client certificate (`CertificateRequests`).
    ///
    /// - Parameter sharesAuthorities: `true` to trust the system's certificate authorities, in stores that connections
    ///   share if possible; `false` to keep the authorities that were set on the handle.
    func prepareTLS(sharesAuthorities: Bool) {
        _ = ccurl_set_tls_callback(pointer, Self.observe)
        if sharesAuthorities { shareSystemAuthorities() }
    }

    private func shareSystemAuthorities() {
        guard let places = SystemAuthorities.places, ccurl_set_tls_callback(pointer, Self.supply) == CURLE_OK else {
            // libcurl reads the authorities, from the files that the environment names or from its built-in paths.
            if let file = NamedAuthorities.file { setAuthorities(file: file.path) }
            if let directory = NamedAuthorities.directory { setAuthorities(directory: directory.path) }
            return
        }
        // libcurl must not read the file: `SystemAuthorities` replaces its store.
        setAuthorities(file: nil, directory: places.directory)
    }

    private static let observe:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> CURLcode = {
            handle, context, _ in
            if let handle, let context { CertificateRequests.watch(OpaquePointer(context), of: handle) }
            return CURLE_OK
        }

    private static let supply:
        @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> CURLcode = {
            handle, context, _ in
            guard let context else { return CURLE_SSL_CERTPROBLEM }
            if let handle { CertificateRequests.watch(OpaquePointer(context), of: handle) }
            return SystemAuthorities.supply(OpaquePointer(context)) ? CURLE_OK : CURLE_OUT_OF_MEMORY
        }
}
