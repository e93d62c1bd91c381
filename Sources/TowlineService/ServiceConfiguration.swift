package import Foundation
package import Towline

/// How a service works: where it keeps its list, where downloads go, and where it listens.
package struct ServiceConfiguration: Sendable {
    /// The list, the token and the log.
    package var stateDirectory: URL
    /// Downloads go here or below, and nowhere else. The first is where those go that name no directory.
    package var downloadsDirectories: [URL]
    /// The Unix socket, for `tow`.
    package var socket: URL
    /// Where the page and the API are served over TCP.
    package var addresses: [ListenAddress]
    /// Names that a `Host` field may have besides those of the addresses.
    package var hostNames: [String] = []
    /// Who may have files fetched from private addresses.
    package var privateAddresses = PrivateAddresses.local
    /// Connections at once over TCP, and as many over the socket.
    package var maximumConnections = 1024
    /// How long a client may take to send the head of a request.
    package var headTimeout: Duration = .seconds(10)
    /// And its body.
    package var bodyTimeout: Duration = .seconds(30)
    /// How long a connection may be without a request.
    package var idleTimeout: Duration = .seconds(120)
    /// How often events are sent, in seconds.
    package var eventInterval: Double = 0.25
    /// How long a request for content waits for a download that has not begun.
    package var contentPatience: Duration = .seconds(30)
    /// The first wait for a network that is gone, in seconds.
    package var networkRetryInterval: Double = 5
    /// Hears of what goes wrong with the list while nobody asked for anything.
    package var onTrouble: (@Sendable (TowlineError) -> Void)?

    /// The limits are as the properties say.
    package init(
        stateDirectory: URL, downloadsDirectories: [URL], socket: URL, addresses: [ListenAddress] = []
    ) {
        self.stateDirectory = stateDirectory
        self.downloadsDirectories = downloadsDirectories
        self.socket = socket
        self.addresses = addresses
    }
}

/// Who may have files fetched from this machine and from private networks, where services are that trust whoever comes
/// from there.
package enum PrivateAddresses: String, Hashable, Sendable, CaseIterable {
    /// Clients on this machine.
    case local
    /// Every client that has the token.
    case everybody
    /// No client.
    case nobody

    /// Whether a client may.
    func allow(isLocal: Bool) -> Bool {
        switch self {
        case .local: isLocal
        case .everybody: true
        case .nobody: false
        }
    }
}

/// An address of TCP to listen at.
package struct ListenAddress: Hashable, Sendable {
    /// A name or an address.
    package var host: String
    /// The port; 0: any that is free.
    package var port: Int
    /// Whether the service goes on without it where somebody else has it.
    package var isOptional: Bool

    /// The port of the page, unless told otherwise.
    package static let defaultPort = 6880

    /// This machine alone. Where the port is taken, the page is not there and `tow` works all the same.
    package static let standard = ListenAddress(host: "127.0.0.1", port: defaultPort, isOptional: true)

    /// Makes one.
    package init(host: String, port: Int, isOptional: Bool = false) {
        self.host = host
        self.port = port
        self.isOptional = isOptional
    }

    /// Reads `host:port`, `[address]:port`, `:port`, or either without the port.
    package init?(_ text: String) {
        var host = text[...]
        var port = Self.defaultPort
        let afterBracket = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[afterBracket...].lastIndex(of: ":") {
            guard let number = UInt16(text[text.index(after: colon)...]) else { return nil }
            port = Int(number)
            host = text[..<colon]
        }
        if host.hasPrefix("[") {
            guard host.hasSuffix("]") else { return nil }
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        self.init(host: host.isEmpty ? "127.0.0.1" : String(host), port: port)
    }

    /// As in a URL and a `Host` field, without the port.
    var hostText: String { host.contains(":") ? "[\(host)]" : host }
}
