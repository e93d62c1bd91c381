package import Foundation
package import Towline

/// The configuration of a service: its directories, its addresses and its limits.
package struct ServiceConfiguration: Sendable {
    /// Directory of the list of downloads, the access token, the sessions and the log.
    package var stateDirectory: URL
    /// Directories in or below which downloads are stored. The first is the default directory.
    package var downloadsDirectories: [URL]
    /// The origin of these directories.
    package var downloadsOrigin = DownloadsOrigin.configured
    /// Path of the Unix socket, which `tow` uses.
    package var socket: URL
    /// TCP addresses of the web page and the API.
    package var addresses: [ListenAddress]
    /// Names and URLs under which the page may be opened, in addition to the addresses; see `ServedName`.
    package var hostNames: [String] = []
    /// The clients that may download from private addresses.
    package var privateAddresses = PrivateAddresses.local
    /// True if the user confirmed that the service may run as root.
    package var allowsRoot = false
    /// Maximum number of connections for each address and for the socket.
    package var maximumConnections = 1024
    /// Maximum time for a client to send the head of a request.
    package var headTimeout: Duration = .seconds(10)
    /// Maximum time for a client to send the body of a request.
    package var bodyTimeout: Duration = .seconds(30)
    /// Maximum time that a connection may stay idle between requests.
    package var idleTimeout: Duration = .seconds(120)
    /// Maximum time without progress of a response to a client that has not shown the access token or a session.
    package var strangerStallTimeout: Duration = .seconds(30)
    /// Maximum time without progress of a response to a client that has shown the access token or a session. A film
    /// that is paused for this time continues.
    package var stallTimeout: Duration = .seconds(30 * 60)
    /// Interval between batches of events, in seconds.
    package var eventInterval: Double = 0.25
    /// Maximum time that a content request waits for a download to start.
    package var contentPatience: Duration = .seconds(30)
    /// Interval between checks whether the socket still exists.
    package var socketCheckInterval: Duration = .seconds(5)
    /// First delay before a retry while the network is down, in seconds.
    package var networkRetryInterval: Double = 5
    /// Called with errors of the list of downloads that no request caused.
    package var onTrouble: (@Sendable (TowlineError) -> Void)?

    /// Creates a configuration. Limits have the defaults of the properties.
    package init(
        stateDirectory: URL, downloadsDirectories: [URL], socket: URL, addresses: [ListenAddress] = []
    ) {
        self.stateDirectory = stateDirectory
        self.downloadsDirectories = downloadsDirectories
        self.socket = socket
        self.addresses = addresses
    }
}

/// The origin of the downloads directories of a service.
package enum DownloadsOrigin: Hashable, Sendable {
    /// The command line. The directories are stored in the state directory.
    case commandLine
    /// The state directory.
    case remembered
    /// The configuration file, or the default.
    case configured
}

/// The clients that may download from this machine and from private networks, where servers may trust local clients.
package enum PrivateAddresses: String, Hashable, Sendable, CaseIterable {
    /// Clients on this machine only.
    case local
    /// Every client that has the access token.
    case everybody
    /// No client.
    case nobody

    /// Returns true if a client may download from private addresses.
    func allow(isLocal: Bool) -> Bool {
        switch self {
        case .local: isLocal
        case .everybody: true
        case .nobody: false
        }
    }
}

/// A TCP address to listen on.
package struct ListenAddress: Hashable, Sendable {
    /// Host name or IP address.
    package var host: String
    /// Port number; 0 for any free port.
    package var port: Int
    /// True if the service also runs without this address, for example if the port is in use.
    package var isOptional: Bool

    /// Default port of the web page and the API.
    package static let defaultPort = 6880

    /// The default address: this machine only. If the port is in use, there is no web page, but `tow` still works.
    package static let standard = ListenAddress(host: "127.0.0.1", port: defaultPort, isOptional: true)

    /// Creates an address.
    package init(host: String, port: Int, isOptional: Bool = false) {
        self.host = host
        self.port = port
        self.isOptional = isOptional
    }

    /// Parses `host:port`, `[address]:port`, `:port` or a port alone; the port after a host is optional. Without a
    /// host, the address is 127.0.0.1; the host `*` stands for all IPv4 addresses. Returns `nil` if the text is
    /// invalid.
    package init?(_ text: String) {
        let text = text.allSatisfy(\.isWholeNumber) ? ":" + text : text
        var host = text[...]
        var port = Self.defaultPort
        let afterBracket = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[afterBracket...].lastIndex(of: ":") {
            guard let number = Self.port(text[text.index(after: colon)...]) else { return nil }
            port = Int(number)
            host = text[..<colon]
        }
        if host.hasPrefix("[") {
            guard host.hasSuffix("]") else { return nil }
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.contains(where: { $0.isWhitespace || $0 == "/" }) else { return nil }
        self.init(host: host.isEmpty ? "127.0.0.1" : host == "*" ? "0.0.0.0" : String(host), port: port)
    }

    /// Parses the digits of a port.
    static func port(_ text: Substring) -> UInt16? { text.first == "+" ? nil : UInt16(text) }

    /// The host in the form used in URLs and `Host` header fields, without the port.
    var hostText: String { host.contains(":") ? "[\(host)]" : host }
}
