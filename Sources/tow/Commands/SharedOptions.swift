import ArgumentParser
import TowlineCore

/// A group of options that are settings of a download.
protocol SettingOptions: ParsableArguments {
    /// The given settings with their values as text (empty for a flag), in order.
    var given: [(Setting, String)] { get }
}

extension SettingOptions {
    /// Applies the given settings.
    ///
    /// - Throws: `ValidationError` that names the option.
    func apply(to settings: inout DownloadSettings) throws { try settings.apply(given) }
}

extension DownloadSettings {
    /// Applies the given settings, in order.
    ///
    /// - Throws: `ValidationError` that names the option.
    mutating func apply(_ given: [(Setting, String)]) throws {
        for (setting, value) in given {
            do {
                try apply(setting, value)
            } catch {
                throw ValidationError("--\(setting.rawValue): \(error.message)")
            }
        }
    }
}

func givenValues(_ pairs: KeyValuePairs<Setting, String?>) -> [(Setting, String)] {
    pairs.compactMap { setting, value in value.map { (setting, $0) } }
}

func givenFlags(_ pairs: KeyValuePairs<Setting, Bool>) -> [(Setting, String)] {
    pairs.filter(\.value).map { ($0.key, "") }
}

/// The options for the content of a request, besides the URL.
struct RequestOptions: SettingOptions {
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Add a request header; may be repeated. Not sent to other hosts after a redirect.",
            valueName: "Name: value"))
    var headers: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            User name and password for HTTP Basic or Digest authentication. Other users can see them in the process \
            list until tow has started; --user-file is safer.
            """,
            valueName: "name:password"))
    var user: String?

    @Option(
        help: ArgumentHelp("Read NAME:PASSWORD from the first line of this file.", valueName: "file"),
        completion: .file())
    var userFile: String?

    @Option(
        help: ArgumentHelp("Read a bearer token from the first line of this file.", valueName: "file"),
        completion: .file())
    var bearerFile: String?

    @Flag(help: "Read user names and passwords from ~/.netrc.")
    var netrc = false

    @Option(
        help: ArgumentHelp("Read user names and passwords from this netrc file.", valueName: "file"),
        completion: .file())
    var netrcFile: String?

    @Option(
        help: ArgumentHelp("Send matching cookies from this file (Netscape format).", valueName: "file"),
        completion: .file())
    var cookies: String?

    var given: [(Setting, String)] {
        headers.map { (.header, $0) } + givenFlags([.netrc: netrc])
            + givenValues([
                .user: user, .userFile: userFile, .bearerFile: bearerFile, .netrcFile: netrcFile, .cookies: cookies,
            ])
    }
}

/// The options for the way to the server, which `tow add` has too.
struct RouteOptions: SettingOptions {
    @Option(
        help: ArgumentHelp(
            """
            Use this proxy: http://[NAME:PASSWORD@]HOST:PORT, or the same with https://, socks5:// or socks5h://. \
            (default: the environment variables http_proxy, https_proxy, all_proxy and no_proxy)
            """,
            valueName: "url"))
    var proxy: String?

    @Flag(help: "Use no proxy, whatever the environment variables say.")
    var noProxy = false

    @Flag(name: .customLong("http1"), help: "Use HTTP/1.1 only, not HTTP/2.")
    var http1 = false

    @Option(help: ArgumentHelp("Maximum number of redirects to follow. (default: 20)", valueName: "n"))
    var maxRedirects: String?

    @Flag(help: "Follow redirects from https to http. By default, such a download fails.")
    var allowDowngrade = false

    func validate() throws {
        if noProxy, proxy != nil { throw ValidationError("--proxy and --no-proxy cannot be used together.") }
    }

    var given: [(Setting, String)] {
        givenValues([.proxy: proxy, .maxRedirects: maxRedirects])
            + givenFlags([.noProxy: noProxy, .http1: http1, .allowDowngrade: allowDowngrade])
    }
}

/// The options for the connection to the server that only commands in the foreground have.
struct ConnectionOptionGroup: SettingOptions {
    @Option(
        name: .customLong("resolve"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Connect to this address for this host and port, not to those in DNS; may be repeated.",
            valueName: "host:port:address[,address]"))
    var resolve: [String] = []

    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "Connect to IPv4 addresses only.")
    var ipv4 = false

    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "Connect to IPv6 addresses only.")
    var ipv6 = false

    @Option(
        help: ArgumentHelp(
            """
            Send this client certificate (PEM or PKCS#12) if the server requires one. Not sent to other hosts after a \
            redirect.
            """, valueName: "file"),
        completion: .file())
    var cert: String?

    @Option(
        help: ArgumentHelp(
            "The private key of --cert (PEM), if that file does not contain the key.", valueName: "file"),
        completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp("Read the password of the key from the first line of this file.", valueName: "file"),
        completion: .file())
    var keyPasswordFile: String?

    @Option(
        help: ArgumentHelp(
            "Trust the certificate authorities in this PEM file, not those of the system.", valueName: "file"),
        completion: .file())
    var cacert: String?

    @Flag(help: "Accept any TLS certificate. Dangerous: attackers can change the file.")
    var insecure = false

    @Option(
        help: ArgumentHelp(
            "Time limit for opening a connection, TLS included. (default: 30)", valueName: "seconds"))
    var connectTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Time limit for the server's first response to a request. (default: 300)", valueName: "seconds"))
    var headTimeout: String?

    func validate() throws {
        if ipv4, ipv6 { throw ValidationError("-4 and -6 cannot be used together. Without them, tow uses both.") }
    }

    var given: [(Setting, String)] {
        resolve.map { (.resolve, $0) }
            + givenValues([
                .cacert: cacert, .cert: cert, .key: key, .keyPasswordFile: keyPasswordFile,
                .connectTimeout: connectTimeout, .headTimeout: headTimeout,
            ])
            + givenFlags([.ipv4: ipv4, .ipv6: ipv6, .insecure: insecure])
    }
}
