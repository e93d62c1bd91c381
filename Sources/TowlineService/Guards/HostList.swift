import Hummingbird
import NIOCore

/// Which `Host` fields are believed (RFC 9110 §7.2).
///
/// A page of another name that its owner lets point to 127.0.0.1 (DNS rebinding) sends that name: it is refused.
struct HostList: Sendable {
    private let names: Set<String>
    /// Names that were given: of the service itself, or of what stands before it.
    private let given: Set<String>
    private let isEverywhere: Bool

    init(_ configuration: ServiceConfiguration) {
        given = Set(configuration.hostNames.map { $0.lowercased() })
        names = given.union(["127.0.0.1", "localhost", "[::1]"])
            .union(configuration.addresses.filter { !$0.isEverywhere }.map { $0.hostText.lowercased() })
        isEverywhere = configuration.addresses.contains { $0.isEverywhere }
    }

    /// Whether a `Host` field names this service, with or without a port.
    ///
    /// Where the service listens at all addresses of the machine, the one that the connection came to is believed, too:
    /// a browser that sends an address went to it, and not to a name that somebody else lets point there.
    func contains(_ field: String, at local: SocketAddress?) -> Bool {
        guard let host = Self.host(of: field) else { return false }
        return names.contains(host) || isEverywhere && host == local?.hostText
    }

    /// Whether that `Host` field names what was given as a name. Over TLS a page comes from there alone: from a proxy
    /// that stands before the service.
    func isGiven(_ field: String) -> Bool { Self.host(of: field).map { given.contains($0) } ?? false }

    private static func host(of field: String) -> String? {
        var host = field.lowercased()[...]
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            guard UInt16(host[host.index(after: colon)...]) != nil else { return nil }
            host = host[..<colon]
        }
        return String(host)
    }
}

extension SocketAddress {
    /// As in a URL and a `Host` field, without the port. One of IPv4 that a socket of IPv6 got is one of IPv4.
    var hostText: String? {
        guard let address = ipAddress?.lowercased() else { return nil }
        if address.hasPrefix("::ffff:"), address.contains(".") { return String(address.dropFirst(7)) }
        return address.contains(":") ? "[\(address)]" : address
    }
}
