import Glibc

/// The certificate authorities that environment variables name instead of the system's: the variables of OpenSSL
/// (`SSL_CTX_set_default_verify_paths(3)`) and of curl, which has priority. An empty variable counts as unset.
package enum NamedAuthorities {
    /// The certificate authority file to use instead of the system's, and the variable that names it; `nil` if no
    /// variable names a file.
    package static let file: (variable: String, path: String)? = named("CURL_CA_BUNDLE") ?? named("SSL_CERT_FILE")
    /// The certificate authority directory to use instead of the system's, and the variable that names it; `nil` if no
    /// variable names a directory.
    package static let directory: (variable: String, path: String)? = named("SSL_CERT_DIR")

    private static func named(_ variable: String) -> (variable: String, path: String)? {
        guard let value = getenv(variable), value.pointee != 0 else { return nil }
        return (variable, String(cString: value))
    }
}
