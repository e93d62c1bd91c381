import Foundation
import TestServers
import Testing

/// Servers that require a client certificate (`--cert`, `--key`, `--key-password-file`). The server is Python's.
@Suite(.serialized, .timeLimit(.minutes(2)), .enabled(if: Programs.areThere(Programs.python, Programs.openssl)))
struct ClientCertificateTests {
    private static let password = "canary-password"
    private let certificates: Certificates
    private let place: TestDirectory

    init() throws {
        certificates = try Certificates(in: TemporaryFolder())
        place = try TestDirectory()
        try Data((Self.password + "\n").utf8).write(to: place.file("password"))
        try Data("wrong\n".utf8).write(to: place.file("wrong"))
        try ServerProgram.run(
            Programs.openssl,
            ["pkcs12", "-export", "-in", file("good.pem"), "-inkey", file("good.key"), "-out", file("good.p12")]
                + ["-passout", "pass:" + Self.password])
        try ServerProgram.run(
            Programs.openssl,
            [
                "pkey", "-aes256", "-in", file("good.key"), "-out", file("locked.key"), "-passout",
                "pass:" + Self.password,
            ])
    }

    private func file(_ name: String) -> String { certificates.folder.path + "/" + name }

    /// Responds with `body`, or with a redirect to `location`. A client without a certificate of the authority does not
    /// get through the handshake if one is required.
    private func server(
        version: String = "TLSv1_3", requires: Bool = true, location: String? = nil
    ) async throws -> (program: ServerProgram, url: String, log: String) {
        let port = Loopback.freePort()
        let log = file("log-\(port)")
        let head = location.map { "HTTP/1.1 302 Found\\r\\nLocation: \($0)\\r\\nContent-Length: 0\\r\\n\\r\\n" }
        let reply = head ?? "HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nbody"
        let script = try certificates.folder.write(
            "server-\(port).py",
            """
            import socket, ssl, sys
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.maximum_version = ssl.TLSVersion.\(version)
            context.load_cert_chain("\(file("good.pem"))", "\(file("good.key"))")
            context.load_verify_locations("\(certificates.authority)")
            context.verify_mode = ssl.\(requires ? "CERT_REQUIRED" : "CERT_OPTIONAL")
            listener = socket.create_server(("127.0.0.1", \(port)))
            while True:
                peer, _ = listener.accept()
                try:
                    peer.settimeout(5)
                    tls = context.wrap_socket(peer, server_side=True)
                    head = b""
                    while not head.endswith(b"\\r\\n\\r\\n"):
                        piece = tls.recv(65536)
                        if not piece: break
                        head += piece
                    print("certificate" if tls.getpeercert() else "nobody", flush=True)
                    tls.sendall(b"\(reply)")
                    tls.unwrap()
                except OSError: pass
                peer.close()
            """)
        let program = try await ServerProgram(Programs.python, [script], port: port, log: log)
        return (program, "https://127.0.0.1:\(port)/file", log)
    }

    private func get(_ url: String, _ arguments: [String]) async throws -> CommandRun.Result {
        try await CommandRun.run(
            ["get", "--cacert", certificates.authority, "--retry-wait", "0.1"] + arguments + [url], directory: place.url
        )
    }

    private var ways: [[String]] {
        [
            ["--cert", file("good.pem"), "--key", file("good.key")],
            ["--cert", file("good.p12"), "--key-password-file", place.path("password")],
            ["--cert", file("good.pem"), "--key", file("locked.key"), "--key-password-file", place.path("password")],
        ]
    }

    @Test(arguments: ["TLSv1_2", "TLSv1_3"]) func everyFormOfACertificateIsSent(version: String) async throws {
        let server = try await server(version: version)
        defer { withExtendedLifetime(server.program) {} }
        for (index, way) in ways.enumerated() {
            let result = try await get(server.url, way + ["-o", "file\(index)"])
            #expect(result.status == 0, "\(result.stderr)")
            #expect(!(result.stderr + result.text).contains(Self.password))
        }
        #expect(place.names == ["file0", "file1", "file2", "password", "wrong"])
    }

    @Test(arguments: ["TLSv1_2", "TLSv1_3"]) func withoutOneTheFailureNamesTheOption(version: String) async throws {
        let server = try await server(version: version)
        defer { withExtendedLifetime(server.program) {} }
        let result = try await get(server.url, [])
        #expect(result.status == 8, "\(result.stderr)")
        #expect(result.stderr.contains("--cert"), "\(result.stderr)")
    }

    @Test func aServerThatOnlyAsksForOneIsServedWithout() async throws {
        let server = try await server(requires: false)
        defer { withExtendedLifetime(server.program) {} }
        let result = try await get(server.url, [])
        #expect(result.status == 0, "\(result.stderr)")
    }

    @Test func aRedirectToAnotherOriginDoesNotGetIt() async throws {
        let other = try await server(requires: false)
        let first = try await server(location: other.url)
        defer { withExtendedLifetime((other.program, first.program)) {} }
        let result = try await get(first.url, ways[0])
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try String(contentsOfFile: first.log, encoding: .utf8).contains("certificate"))
        #expect(try !String(contentsOfFile: other.log, encoding: .utf8).contains("certificate"))
    }

    @Test func aKeyThatCannotBeUsedIsPermanent() async throws {
        let server = try await server()
        defer { withExtendedLifetime(server.program) {} }
        let wrong = place.path("wrong")
        let ways = [
            ["--cert", file("good.p12"), "--key-password-file", wrong], ["--cert", file("good.p12")],
            ["--cert", file("good.pem"), "--key", file("locked.key"), "--key-password-file", wrong],
            ["--cert", file("good.pem"), "--key", file("authority.key")], ["--cert", file("good.pem")],
            ["--cert", wrong], ["--cert", file("missing.pem")], ["--cert", file("good.p12") + ":" + Self.password],
            ["--key", file("good.key")],
        ]
        for way in ways {
            let result = try await get(server.url, way)
            #expect(result.status == 2, "\(way): \(result.stderr)")
            #expect(!result.stderr.contains("retrying"), "\(way): \(result.stderr)")
        }
    }
}
