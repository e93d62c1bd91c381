import NIOCore

/// A name under which the web page may be opened, as given with `--host`: `NAME`, `NAME:PORT`, or the URL of the page
/// behind a reverse proxy.
///
/// A name alone allows only pages whose origin is the same as in the `Host` header field. A port or a URL names the
/// origin itself, so the page works behind a proxy that changes the field.
package struct ServedName: Hashable, Sendable {
    /// The name in a `Host` header field, in lower case and without the port, as `plain` returns it.
    let name: String
    /// The origins of the page (RFC 6454 §6.2); empty if only the name was given.
    package let origins: Set<String>

    /// Parses a value of `--host`. Returns `nil` if the text is in none of the three forms.
    package init?(_ text: String) {
        var rest = text.lowercased()[...]
        var schemes = ["http", "https"]
        var isURL = false
        if let end = rest.firstRange(of: "://") {
            guard schemes.contains(String(rest[..<end.lowerBound])) else { return nil }
            schemes = [String(rest[..<end.lowerBound])]
            rest = rest[end.upperBound...].prefix { !"/?#".contains($0) }
            isURL = true
        }
        var port: UInt16?
        let afterBracket = rest.lastIndex(of: "]") ?? rest.startIndex
        if let colon = rest[afterBracket...].lastIndex(of: ":") {
            guard let number = ListenAddress.port(rest[rest.index(after: colon)...]), number > 0 else { return nil }
            port = number
            rest = rest[..<colon]
        }
        guard Self.isHost(rest) else { return nil }
        let host = Self.plain(rest)
        name = host
        origins = isURL || port != nil ? Set(schemes.map { Self.origin($0, host, port) }) : []
    }

    /// Returns an origin as browsers send it: without the default port of the scheme.
    private static func origin(_ scheme: String, _ host: String, _ port: UInt16?) -> String {
        let isDefault = port == nil || port == (scheme == "https" ? 443 : 80)
        return "\(scheme)://\(host)" + (isDefault ? "" : ":\(port ?? 0)")
    }

    /// Returns the form of a host that browsers use: an IPv6 address is compressed (RFC 5952). A dot at the end of a
    /// name, which names the root of DNS, is removed.
    static func plain(_ host: Substring) -> String {
        if host.hasPrefix("[") { return address(host).map { "[\($0)]" } ?? String(host) }
        return String(host.hasSuffix(".") ? host.dropLast() : host)
    }

    private static func address(_ host: Substring) -> String? {
        guard host.hasSuffix("]") else { return nil }
        return try? SocketAddress(ipAddress: String(host.dropFirst().dropLast()), port: 0).ipAddress
    }

    /// Returns whether a text is a host name or an address, with IPv6 addresses in brackets.
    static func isHost(_ text: Substring) -> Bool {
        if text.hasPrefix("[") { return address(text) != nil }
        let labels = plain(text).split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253
            && labels.allSatisfy { label in
                label.contains { $0 != "-" }
                    && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
            }
    }
}
