import NIOCore

extension ListenAddress {
    /// Whether all addresses of the machine are meant (`0.0.0.0`, `::`): what to listen at, and nowhere to go to.
    var isEverywhere: Bool {
        let address = try? SocketAddress(ipAddress: host, port: 0).ipAddress
        return address == "0.0.0.0" || address == "::"
    }

    /// Where browsers find it, as in a URL without the port: itself, or the addresses that the machine has now.
    var hosts: [String] {
        guard isEverywhere else { return [hostText] }
        let devices = (try? System.enumerateDevices()) ?? []
        var hosts = ["127.0.0.1"]
        for address in devices.compactMap(\.address) {
            // Of a link alone: a URL cannot say of which (RFC 6874 is followed by no browser).
            guard let text = address.hostText, !text.hasPrefix("[fe80:"), !hosts.contains(text) else { continue }
            if address.protocol == .inet || host.contains(":") { hosts.append(text) }
        }
        return hosts
    }
}
