import Hummingbird
import NIOCore

/// The accepted values of the `Host` header field (RFC 9110 §7.2).
///
/// Other names are refused, which protects against DNS rebinding: a page whose name resolves to 127.0.0.1 sends its own
/// name.
struct HostList: Sendable {
    private let names: Set<String>
    /// Configured names of the service or of a proxy in front of it.
    private let given: Set<String>
    /// Configured origins of the page behind a proxy.
    private let origins: Set<String>
    private let isEverywhere: Bool

    init(_ configuration: ServiceConfiguration) {
        let served = configuration.hostNames.compactMap { ServedName($0) }
        given = Set(served.map(\.name))
        origins = Set(served.flatMap(\.origins))
        let own = configuration.addresses.filter { !$0.isEverywhere }.map { $0.hostText.lowercased()[...] }
        names = given.union(["127.0.0.1", "localhost", "[::1]"]).union(own.map(ServedName.plain))
        isEverywhere = configuration.addresses.contains { $0.isEverywhere }
    }

    /// Returns true if a `Host` header field, with or without a port, names this service.
    ///
    /// If the service listens on all addresses, the local address of the connection is accepted too. A browser that
    /// sends an IP address did not resolve a foreign name.
    func contains(_ field: String, at local: SocketAddress?) -> Bool {
        guard let host = Self.host(of: field) else { return false }
        return names.contains(host) || isEverywhere && host == local?.hostText
    }

    /// Returns true if an `Origin` header field is the origin of the page.
    ///
    /// The origin is the same as in the `Host` header field, or is configured: a proxy may replace the field or remove
    /// the port from it. Another port of the same machine is another site, so a port is never ignored. Only a page
    /// under a configured name can have an `https` origin, through a TLS proxy in front of the service.
    func isOwn(_ origin: String, host: String) -> Bool {
        if origin == "http://" + host || origins.contains(origin) { return true }
        return origin == "https://" + host && (Self.host(of: host).map { given.contains($0) } ?? false)
    }

    /// Returns whether a `Host` header field has the form `HOST` or `HOST:PORT`, or is empty (RFC 9110 §7.2).
    static func isValid(_ field: String) -> Bool { field.isEmpty || host(of: field) != nil }

    /// Returns the host of a `Host` header field in lower case; `nil` if the field is invalid.
    private static func host(of field: String) -> String? {
        var host = field.lowercased()[...]
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            let port = host[host.index(after: colon)...]
            guard port.isEmpty || ListenAddress.port(port) != nil else { return nil }
            host = host[..<colon]
        }
        return ServedName.isHost(host) ? ServedName.plain(host) : nil
    }
}

extension SocketAddress {
    /// The address as in URLs and `Host` header fields, without the port. An IPv4-mapped IPv6 address becomes IPv4.
    var hostText: String? {
        guard let address = ipAddress?.lowercased() else { return nil }
        if address.hasPrefix("::ffff:"), address.contains(".") { return String(address.dropFirst(7)) }
        return address.contains(":") ? "[\(address)]" : address
    }
}
