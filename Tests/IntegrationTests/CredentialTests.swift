import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine
import TransferSimulation

/// The user's secrets are sent to the requested origin, and to no other (RFC 9110 §15.4). An origin is scheme, host and
/// port.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct CredentialTests {
    static let names = ["authorization", "cookie", "x-secret", "proxy-authorization"]

    /// Sets every option that carries a secret.
    private func secrets(_ scratch: Scratch, host: String) throws -> @Sendable (inout DownloadOptions) -> Void {
        let jar = try scratch.write("jar", "\(host)\tFALSE\t/\tFALSE\t0\tid\tcookie-secret\n")
        let netrc = try scratch.write("netrc", "machine \(host) login me password netrc-secret\n")
        return { options in
            options.connection.cookieFile = jar
            options.connection.netrc = .file(netrc)
            options.userFields = HTTPFields([("X-Secret", "field-secret")])
        }
    }

    private func leaks(_ server: FaultServer) -> [String] {
        server.log.requests.flatMap { request in
            request.info.fields.filter { field in
                Self.names.contains(field.0.lowercased()) || field.1.contains("secret")
            }.map { "\($0.0): \($0.1)" }
        }
    }

    /// Another port or another host gets no secrets: with the first answer, every segment and every resume. Cookies and
    /// netrc entries name a host and no port (RFC 6265 §8.5).
    @Test(arguments: ["127.0.0.1", "127.0.0.2"], [1, 4]) func redirectToAnotherOrigin(
        _ host: String, connections: Int
    ) async throws {
        var options = ServerOptions()
        options.host = host
        let other = try await FaultServer.start(
            ["/other": Resource(length: 3_000_000, behaviour: .first(3, .shortBody(after: 500_000)))], options: options)
        try await Site.with(try await Site(.always(.redirect(to: other.url("/other"))))) { site in
            let folder = try Scratch()
            let secrets = try secrets(folder, host: "127.0.0.1")
            let outcome = try await site.download {
                secrets(&$0)
                $0.connections = connections
            }
            try site.expectFile(outcome)
            let used = site.requests.first?.info
            #expect(used?.field("X-Secret") != nil && used?.field("Cookie") != nil, "the files are \(folder.names)")
        }
        #expect(!other.log.requests.isEmpty)
        if host == "127.0.0.1" {
            for request in other.log.requests {
                #expect(request.info.field("Cookie") == "id=cookie-secret" && request.info.field("X-Secret") == nil)
            }
        } else {
            #expect(leaks(other).isEmpty, "\(leaks(other))")
        }
        await other.stop()
    }

    /// User info of a URL, and the user's own `Authorization`, are sent only to the origin they were meant for.
    @Test(arguments: [true, false]) func userInfoAndOwnAuthorization(inURL: Bool) async throws {
        let other = try await FaultServer.start(["/other": Resource(length: 100_000)])
        try await Site.with(try await Site(.always(.redirect(to: other.url("/other"))))) { site in
            let port = site.server.port
            let outcome = try await site.download { options in
                if inURL {
                    let url = "http://me:url-secret@127.0.0.1:\(port)\(Site.path)"
                    options.url = (try? HTTPURL(parsing: url)) ?? options.url
                } else {
                    options.userFields = HTTPFields([("authorization", "Bearer own-secret"), ("COOKIE", "a=secret")])
                }
            }
            #expect(outcome.succeeded, "\(outcome.message)")
            // The secrets are used at their own origin.
            #expect(site.requests.allSatisfy { $0.info.field("Authorization") != nil })
        }
        #expect(!other.log.requests.isEmpty)
        #expect(leaks(other).isEmpty, "\(leaks(other))")
        await other.stop()
    }

    /// A redirect within the origin keeps the secrets: without them the server would refuse the file.
    @Test func redirectWithinTheOrigin() async throws {
        let other = Resource(length: 300_000, behaviour: .always(.authorizationRequired("Bearer own-secret")))
        try await Site.with(try await Site(.always(.redirect(to: "/other")), more: ["/other": other])) { site in
            let outcome = try await site.download {
                $0.userFields = HTTPFields([("Authorization", "Bearer own-secret")])
            }
            #expect(outcome.succeeded, "\(outcome.message)")
        }
    }

    /// A redirect to another origin and back: the first origin gets the secrets again.
    @Test func redirectThereAndBack() async throws {
        let first = try await Site(.correct, more: ["/back": Resource(length: 200_000)])
        let other = try await FaultServer.start([
            "/hop": Resource(length: 1, behaviour: .always(.redirect(to: first.server.url("/back"))))
        ])
        try await Site.with(first) { site in
            site.server.set(.always(.redirect(to: other.url("/hop"))), for: Site.path)
            let outcome = try await site.download { $0.userFields = HTTPFields([("X-Secret", "field-secret")]) }
            #expect(outcome.succeeded, "\(outcome.message)")
        }
        #expect(leaks(other).isEmpty, "\(leaks(other))")
        await other.stop()
    }

    // MARK: TLS

    /// Row 56: only a trusted certificate for this host is accepted, and only TLS 1.2 or later.
    @Test(
        .enabled(if: Thoroughness.areThere("/usr/bin/openssl")),
        arguments: ["good", "other", "expired", "unknown", "old"])
    func row56Certificates(_ kind: String) async throws {
        let folder = try Scratch()
        let subject = kind == "other" ? "DNS:other.example" : "IP:127.0.0.1"
        // A certificate of last month has expired by now.
        let when = kind == "expired" ? "-30d" : "+0d"
        try await ChildRun.tool(
            "/usr/bin/faketime", "-f", when, "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test", "-addext",
            "subjectAltName=\(subject)", "-keyout", folder.file("key.pem"), "-out", folder.file("chain.pem"))
        var options = ServerOptions()
        options.tls = ServerOptions.TLS(
            certificateChain: folder.file("chain.pem"), privateKey: folder.file("key.pem"),
            onlyOldVersions: kind == "old")
        try await Site.with(try await Site(Resource(length: 400_000), options: options)) { site in
            let outcome = try await site.download {
                if kind != "unknown" { $0.connection.certificateAuthorityFile = folder.file("chain.pem") }
            }
            if kind == "good" { return try site.expectFile(outcome) }
            #expect(!outcome.succeeded)
            if kind != "old" { #expect(outcome.code == .untrustedServer, "\(outcome.result)") }
            try site.law(outcome)
            #expect(site.requests.isEmpty, "no request goes to a server that is not trusted")
        }
    }

    /// Row 48 over TLS, and row 15 of the rules: redirects from https to http are refused; bodies that end without
    /// close_notify at different lengths are not files.
    @Test(.enabled(if: Thoroughness.areThere("/usr/bin/openssl"))) func overTLS() async throws {
        let folder = try Scratch()
        let options = try await folder.makeTLS()
        let plain = try await FaultServer.start(["/plain": Resource(length: 100_000)])
        try await Site.with(try await Site(Resource(length: 400_000), options: options)) { site in
            func download(_ behaviour: Behaviour) async throws -> Outcome {
                site.server.set(behaviour, for: Site.path)
                return try await site.download {
                    $0.connection.certificateAuthorityFile = folder.file("chain.pem")
                    $0.userFields = HTTPFields([("X-Secret", "field-secret")])
                }
            }
            try site.expectFailure(try await download(.always(.redirect(to: plain.url("/plain")))), .redirectRefused)
            #expect(plain.log.requests.isEmpty)
            let cut = Behaviour { context in
                Fault.ignoresRange.make(context).head { $0.remove("Content-Length") }
                    .body([
                        .content(context.version.content, 0..<(200_000 + 1000 * Int64(context.request.index))),
                        .closeWithoutNotify,
                    ])
            }
            let outcome = try await download(cut)
            #expect(!outcome.succeeded, "a cut stream is not whole")
            try site.law(outcome)
            try site.expectFile(try await download(.correct))
        }
        await plain.stop()
    }
}
