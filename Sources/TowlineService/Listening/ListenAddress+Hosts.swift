import NIOCore

extension ListenAddress {
    /// True if the address stands for all addresses of the machine (`0.0.0.0`, `::`). A client cannot connect to it.
    var isEverywhere: Bool {
        let address = try? SocketAddress(ipAddress: host, port: 0).ipAddress
        return address == "0.0.0.0" || address == "::"
    }

    /// Hosts for URLs of the service, without the port: the address, or all current addresses of the machine.
    var hosts: [String] {
        guard isEverywhere else { return [hostText] }
        let devices = (try? System.enumerateDevices()) ?? []
        var hosts = ["127.0.0.1"]
        for address in devices.compactMap(\.address) {
            // Skip link-local addresses: browsers do not support zone identifiers in URLs (RFC 6874).
            guard let text = address.hostText, !text.hasPrefix("[fe80:"), !hosts.contains(text) else { continue }
            if address.protocol == .inet || host.contains(":") { hosts.append(text) }
        }
        return hosts
    }
}
