import TestServers

/// A route from the command to nginx, through programs of other projects.
enum Route: String, CaseIterable, Sendable {
    case tls, http2
    case tinyproxy, tinyproxyTunnel
    case squid, squidTunnel
    case socks, socksTLS

    private enum Relay { case none, tinyproxy, squid, danted }

    private var relay: Relay {
        switch self {
        case .tls, .http2: .none
        case .tinyproxy, .tinyproxyTunnel: .tinyproxy
        case .squid, .squidTunnel: .squid
        case .socks, .socksTLS: .danted
        }
    }

    /// The certificate at the end of the route; `nil` for plain http.
    private var certificate: String? {
        switch self {
        case .tls, .tinyproxyTunnel, .socksTLS: "good"
        case .http2, .squidTunnel: "http2"
        case .tinyproxy, .squid, .socks: nil
        }
    }

    /// Starts the programs and returns the open route.
    func open() async throws -> OpenRoute {
        let nginx = try await Nginx()
        let proxy: ProxyProgram? =
            switch relay {
            case .none: nil
            case .tinyproxy: try await .tinyproxy(credentials: ("carol", "proxy-secret"))
            case .squid: try await .squid()
            case .danted: try await .danted()
            }
        var arguments: [String] = []
        if let proxy {
            let scheme = relay == .danted ? "socks5h" : "http"
            let user = relay == .tinyproxy ? "carol:proxy-secret@" : ""
            arguments += ["--proxy", "\(scheme)://\(user)127.0.0.1:\(proxy.port)"]
        }
        if certificate != nil { arguments += ["--cacert", nginx.certificates.authority] }
        let url = certificate.map { nginx.url("slow/large", certificate: $0) } ?? nginx.url("slow/large")
        return OpenRoute(nginx: nginx, proxy: proxy, url: url, arguments: arguments)
    }
}

/// A route whose programs run as long as the object exists.
struct OpenRoute {
    let nginx: Nginx
    let proxy: ProxyProgram?
    /// The URL of the large file, which nginx sends slowly.
    let url: String
    /// The options that select the route.
    let arguments: [String]
}
