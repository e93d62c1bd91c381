import Foundation

/// nginx on loopback: plain, and over TLS with each of the test's certificates.
final class Nginx: Sendable {
    let folder: TemporaryFolder
    let certificates: Certificates
    let plainPort: UInt16
    private let ports: [String: UInt16]
    private let program: ServerProgram

    private static let certificateNames = ["good", "other-host", "expired", "self-signed"]

    init() async throws {
        folder = try TemporaryFolder()
        certificates = try Certificates(in: folder)
        plainPort = Loopback.freePort()
        var ports: [String: UInt16] = ["http2": Loopback.freePort(), "old-tls": Loopback.freePort()]
        for name in Self.certificateNames { ports[name] = Loopback.freePort() }
        self.ports = ports
        try folder.write("small", "0123456789")
        try Data(repeating: 0x61, count: 8 << 20).write(to: URL(fileURLWithPath: folder.path + "/large"))
        let configuration = try folder.write("nginx.conf", Self.configuration(folder.path, plainPort, ports))
        program = try await ServerProgram(
            Programs.nginx, ["-c", configuration, "-p", folder.path, "-e", folder.path + "/error.log"], port: plainPort,
            log: folder.path + "/output.log")
    }

    private static func configuration(_ path: String, _ plainPort: UInt16, _ ports: [String: UInt16]) -> String {
        func tls(_ listen: String, _ certificate: String, _ more: String = "") -> String {
            """
            server { listen 127.0.0.1:\(ports[listen, default: 0]) ssl \(listen == "http2" ? "http2" : "");
              ssl_certificate \(path)/\(certificate).pem; ssl_certificate_key \(path)/\(certificate).key; \(more) }

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
              log_format towline '$connection $server_protocol $uri $ssl_session_reused';
              access_log \(path)/access.log towline; root \(path); keepalive_requests 1000000; sendfile on;
              ssl_session_cache shared:towline:1m;
              server { listen 127.0.0.1:\(plainPort); }
              \(servers)
              \(tls("http2", "good"))
              \(tls("old-tls", "good", "ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;"))
            }
            """
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(plainPort)/\(path)" }
    func url(_ path: String, certificate: String) -> String {
        "https://127.0.0.1:\(ports[certificate, default: 0])/\(path)"
    }

    /// The finished requests: connection, protocol, path, and `r` for a resumed TLS session.
    var log: [(connection: String, version: String, path: String, isResumed: Bool)] {
        folder.read("access.log").split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            return words.count < 4 ? nil : (words[0], words[1], words[2], words[3] == "r")
        }
    }
}
