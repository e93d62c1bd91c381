/// The URL of a proxy, checked before a request is sent: `[SCHEME://][NAME[:PASSWORD]@]HOST[:PORT]`.
///
/// Accepts only URLs that libcurl accepts, and refuses URLs that libcurl would quote in an error message: the user
/// information may contain a password. No message and no property shows the user information.
package struct ProxyAddress: Hashable, Sendable {
    /// The schemes that libcurl supports for proxies; a URL without a scheme means HTTP (`CURLOPT_PROXY(3)`).
    private static let schemes = ["http", "https", "socks5", "socks5h", "socks4", "socks4a", "socks"]

    /// The proxy as `HOST[:PORT]`, without its user information; safe to show in a message.
    package let place: String
    /// `true` if the connection to the proxy itself uses TLS.
    package let usesTLS: Bool

    /// Checks a proxy's URL.
    ///
    /// - Throws: `unusableOption`; the message describes the problem and shows no part of the URL.
    package init(parsing text: String) throws(TowlineError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Self.unusable("the proxy URL contains a space or a control character. \(Self.encoding)")
        }
        var rest = bytes[...]
        var scheme = "http"
        if let end = bytes.indices.first(where: { bytes[$0...].starts(with: "://".utf8) }) {
            scheme = ASCII.lowercased(String(decoding: bytes[..<end], as: UTF8.self))
            rest = bytes[(end + 3)...]
        }
        guard Self.schemes.contains(scheme) else {
            throw Self.unusable("the proxy URL must begin with http://, https://, socks5:// or socks5h://")
        }
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        // `http//HOST` and `http:/HOST` are mistyped schemes, not hosts with the name "http".
        guard rest.startIndex > 0 || [[], [0x2F]].contains(Array(rest[authority.endIndex...])) else {
            throw Self.unusable("the proxy URL must begin with http://, https://, socks5:// or socks5h://")
        }
        let at = authority.firstIndex(of: 0x40)
        // Several `@`, or one after the authority, can be read in two ways. libcurl refuses them too.
        guard !rest[authority.endIndex...].contains(0x40), at == authority.lastIndex(of: 0x40) else {
            throw Self.unusable(
                "the user name or password in the proxy URL contains @, /, ? or #. Write %40 for @, %2F for /,"
                    + " %3F for ? and %23 for #")
        }
        let hostAndPort = at.map { authority[($0 + 1)...] } ?? authority
        try Self.check(hostAndPort)
        place = String(decoding: hostAndPort, as: UTF8.self)
        usesTLS = scheme == "https"
    }

    private static func check(_ hostAndPort: ArraySlice<UInt8>) throws(TowlineError) {
        let hostEnd: Int
        if hostAndPort.first == 0x5B {
            guard let bracket = hostAndPort.firstIndex(of: 0x5D) else {
                throw unusable("the IPv6 address in the proxy URL must end with ]. \(form)")
            }
            hostEnd = bracket + 1
        } else {
            hostEnd = hostAndPort.firstIndex(of: 0x3A) ?? hostAndPort.endIndex
        }
        let host = hostAndPort[..<hostEnd]
        guard !host.isEmpty else { throw unusable("the proxy URL has no host name. \(form)") }
        guard HostSyntax.normalized(withoutZone(host)) != nil else {
            throw unusable("the proxy URL has no valid host name or IP address. \(form)")
        }
        let port = hostAndPort[hostEnd...]
        guard port.isEmpty || port.elementsEqual([0x3A]) || isPort(port) else {
            throw unusable("the port in the proxy URL must be a number from 1 to 65535. \(form)")
        }
    }

    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.first == 0x3A, let number = ASCII.number(text.dropFirst()) else { return false }
        return (1...65_535).contains(number)
    }

    /// Returns an IPv6 address without its zone (network interface), `%eth0` or `%25eth0`; other hosts unchanged.
    /// Unlike a server, a proxy may have a zone in its URL.
    private static func withoutZone(_ host: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard host.first == 0x5B, let percent = host.firstIndex(of: 0x25) else { return host }
        let zone = host[percent...].dropFirst().dropLast()
        let isZone = zone.allSatisfy { ASCII.isDigit($0) || ASCII.isLetter($0) || "%-_.".utf8.contains($0) }
        return isZone && !zone.isEmpty ? host[..<percent] + [0x5D] : host
    }

    private static let form = "The expected form is http://NAME:PASSWORD@HOST:PORT"
    private static let encoding = "Write %20 for a space"

    private static func unusable(_ message: String) -> TowlineError { TowlineError(.unusableOption, message) }
}
