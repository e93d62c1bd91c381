import Glibc

/// The certificate authorities that the environment names in place of the system's, as it may to OpenSSL
/// (`SSL_CTX_set_default_verify_paths(3)`) and to curl, whose variable comes first. One that is empty names nothing.
package enum NamedAuthorities {
    /// The file that takes the place of the system's, and the variable that names it.
    package static let file: (variable: String, path: String)? = named("CURL_CA_BUNDLE") ?? named("SSL_CERT_FILE")
    /// The same of its directory.
    package static let directory: (variable: String, path: String)? = named("SSL_CERT_DIR")

    private static func named(_ variable: String) -> (variable: String, path: String)? {
        guard let value = getenv(variable), value.pointee != 0 else { return nil }
        return (variable, String(cString: value))
    }
}
