import Hummingbird

/// Which `Host` fields are believed (RFC 9110 §7.2).
///
/// A page of another name that its owner lets point to 127.0.0.1 (DNS rebinding) sends that name: it is refused.
struct HostList: Sendable {
    private let names: Set<String>

    init(_ configuration: ServiceConfiguration) {
        var names: Set<String> = ["127.0.0.1", "localhost", "[::1]"]
        for address in configuration.addresses where address.host != "0.0.0.0" && address.host != "::" {
            names.insert(address.hostText.lowercased())
        }
        for name in configuration.hostNames { names.insert(name.lowercased()) }
        self.names = names
    }

    /// Whether a `Host` field names this service, with or without a port.
    func contains(_ field: String) -> Bool {
        var host = field.lowercased()[...]
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            guard UInt16(host[host.index(after: colon)...]) != nil else { return false }
            host = host[..<colon]
        }
        return names.contains(String(host))
    }
}
