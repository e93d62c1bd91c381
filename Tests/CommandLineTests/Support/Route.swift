import TestServers

/// A way from the command to nginx, through programs that others wrote.
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

    /// The certificate at its end; without, it is plain http.
    private var certificate: String? {
        switch self {
        case .tls, .tinyproxyTunnel, .socksTLS: "good"
        case .http2, .squidTunnel: "http2"
        case .tinyproxy, .squid, .socks: nil
        }
    }

    /// The programs, running.
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

/// Programs that run as long as this is there.
struct OpenRoute {
    let nginx: Nginx
    let proxy: ProxyProgram?
    /// The large file, slowly.
    let url: String
    /// The options that lead there.
    let arguments: [String]
}
