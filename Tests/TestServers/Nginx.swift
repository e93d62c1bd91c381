import FaultServer
import Foundation

/// nginx on the loopback address, without TLS and over TLS with each of the test certificates.
///
/// Every server serves the same files in several ways:
///
/// | path | content |
/// |---|---|
/// | `/small`, `/large` | ten bytes; `largeLength` bytes of `content` |
/// | `/slow/…` | the files at 1 MiB/s for each connection, so that several connections are faster |
/// | `/steady/…` | the files at 100 KiB/s |
/// | `/private/…` | as `/slow/`, for requests with `credentials` |
/// | `/ticket/…` | as `/slow/`, for requests with the cookie `ticket=valid` |
/// | `/away/…` | a redirect to the same path on the server `away`, which has no TLS and is another origin |
/// | `/chunked/…` | the files without a length |
/// | `/near/…` | a redirect to the path without `/near` on the same server |
/// | `/good/…`, `/narrow/…` | a redirect to the same path on the server with this certificate, or on `http2-narrow` |
package final class Nginx: Sendable {
    package static let largeLength: Int64 = 8 << 20
    package static let content = FaultContent(seed: 7)
    package static let credentials = "alice:secret"

    package let folder: TemporaryFolder
    package let certificates: Certificates
    package let plainPort: UInt16
    private let ports: [String: UInt16]
    private let program: ServerProgram

    private static let certificateNames = ["good", "other-host", "expired", "no-key-id", "self-signed"]

    package init() async throws {
        folder = try TemporaryFolder()
        certificates = try Certificates(in: folder)
        plainPort = Loopback.freePort()
        var ports: [String: UInt16] = [:]
        for name in ["http2", "http2-brief", "http2-narrow", "old-tls", "away"] + Self.certificateNames {
            ports[name] = Loopback.freePort()
        }
        self.ports = ports
        try folder.write("small", "0123456789")
        try Data(Self.content.bytes(in: 0..<Self.largeLength)).write(to: URL(fileURLWithPath: folder.path + "/large"))
        try folder.write("passwords", Self.credentials.replacing(":", with: ":{PLAIN}") + "\n")
        let configuration = try folder.write("nginx.conf", Self.configuration(folder.path, plainPort, ports))
        program = try await ServerProgram(
            Programs.nginx, ["-c", configuration, "-p", folder.path, "-e", folder.path + "/error.log"], port: plainPort,
            log: folder.path + "/output.log")
    }

    private static func configuration(_ path: String, _ plainPort: UInt16, _ ports: [String: UInt16]) -> String {
        func port(_ name: String) -> UInt16 { ports[name, default: 0] }
        let locations = locations(path, port)
        func tls(_ listen: String, _ certificate: String, _ more: String = "") -> String {
            """
            server { listen 127.0.0.1:\(port(listen)) ssl \(listen.hasPrefix("http2") ? "http2" : "");
              ssl_certificate \(path)/\(certificate).pem; ssl_certificate_key \(path)/\(certificate).key; \(more)
              \(locations) }

            """
        }
        let servers = certificateNames.map { tls($0, $0) }.joined()
        let temporaries = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(path)/\($0);" }.joined(separator: " ")
        return """
            daemon off; master_process off; worker_processes 1; pid \(path)/pid; error_log \(path)/error.log;
            events { worker_connections 4096; }
            http {
              \(temporaries)
              log_format towline escape=json \(logFormat);
              access_log \(path)/access.log towline; root \(path); keepalive_requests 1000000; sendfile on;
              ssl_session_cache shared:towline:1m;
              server { listen 127.0.0.1:\(plainPort); \(locations) }
              server { listen 127.0.0.1:\(port("away")); \(locations) }
              \(servers)
              \(tls("http2", "good"))
              \(tls("http2-brief", "good", "keepalive_requests 20;"))
              \(tls("http2-narrow", "good", "http2_max_concurrent_streams 3;"))
              \(tls("old-tls", "good", "ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;"))
            }
            """
    }

    private static func locations(_ path: String, _ port: (String) -> UInt16) -> String {
        """
        location /slow/ { alias \(path)/; limit_rate 1m; }
        location /steady/ { alias \(path)/; limit_rate 100k; }
        location /private/ { alias \(path)/; limit_rate 1m; auth_basic "t"; auth_basic_user_file \(path)/passwords; }
        location /ticket/ { if ($cookie_ticket != "valid") { return 403; } rewrite ^/ticket(/.*)$ /slow$1 last; }
        location /away/ { rewrite ^/away(/.*)$ http://127.0.0.1:\(port("away"))$1 redirect; }
        location /chunked/ { ssi on; ssi_types *; alias \(path)/; }
        absolute_redirect off;
        location /near/ { rewrite ^/near(/.*)$ $1 redirect; }
        location /good/ { rewrite ^/good(/.*)$ https://127.0.0.1:\(port("good"))$1 redirect; }
        location /narrow/ { rewrite ^/narrow(/.*)$ https://127.0.0.1:\(port("http2-narrow"))$1 redirect; }
        """
    }

    private static var logFormat: String {
        let fields = [
            "connection": "connection", "version": "server_protocol", "path": "request_uri", "port": "server_port",
            "session": "ssl_session_reused", "status": "status", "bytes": "body_bytes_sent", "range": "http_range",
            "authorization": "http_authorization", "cookie": "http_cookie", "token": "http_x_token",
            "proxyAuthorization": "http_proxy_authorization",
        ]
        return "'{" + fields.map { "\"\($0)\":\"$\($1)\"" }.joined(separator: ",") + "}'"
    }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(plainPort)/\(path)" }

    /// Returns a URL of a server with TLS.
    /// - Parameter certificate: the name of a certificate; or `http2`, `http2-brief` (20 requests for each connection)
    ///   or `http2-narrow` (three requests at a time), which have the valid certificate.
    package func url(_ path: String, certificate: String) -> String {
        "https://127.0.0.1:\(ports[certificate, default: 0])/\(path)"
    }

    /// The port of the other origin.
    package var awayPort: String { String(ports["away", default: 0]) }

    /// A finished request from the log of nginx. A field that was not sent is empty.
    package struct LogEntry: Decodable, Sendable {
        package let connection, version, path, port, session, status, bytes: String
        package let range, authorization, cookie, token, proxyAuthorization: String

        /// Returns whether the TLS session was resumed.
        package var isResumed: Bool { session == "r" }
        /// The number of body bytes that nginx sent.
        package var bodyBytes: Int64 { Int64(bytes) ?? 0 }
        /// The values in the request that could be secrets.
        package var secrets: [String] { [authorization, cookie, token, proxyAuthorization].filter { !$0.isEmpty } }
    }

    /// The finished requests in the log.
    package var log: [LogEntry] {
        folder.read("access.log").split(separator: "\n").compactMap { line in
            try? JSONDecoder().decode(LogEntry.self, from: Data(line.utf8))
        }
    }
}
