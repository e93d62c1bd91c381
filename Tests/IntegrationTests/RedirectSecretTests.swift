import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine

/// Tests cookies and logins along redirects: each reaches the host that it is for, on every request, and no other host.
@Suite(.timeLimit(.minutes(2)))
struct RedirectSecretTests {
    private static let length: Int64 = 2_000_000

    /// A second server, on another host.
    private func other(_ behaviour: Behaviour = .correct) async throws -> FaultServer {
        var options = ServerOptions()
        options.host = "127.0.0.2"
        return try await FaultServer.start(
            ["/other": Resource(length: Self.length, behaviour: behaviour)], options: options)
    }

    /// The values of one field in all requests of a server.
    private func values(_ server: FaultServer, _ name: String) -> Set<String?> {
        Set(server.log.requests.map { $0.info.field(name) })
    }

    // MARK: Cookies

    /// A cookie set by a redirect to the same URL is sent on every later request, also for a small file.
    @Test(arguments: [1, 4], [20_000, length]) func cookieWall(connections: Int, length: Int64) async throws {
        try await Site.with(try await Site(length: length, .always(.cookieWall("seen=yes; Path=/; HttpOnly")))) {
            site in
            try site.expectFile(try await site.download { $0.connections = connections })
            #expect(site.requests.dropFirst().allSatisfy { $0.info.field("Cookie") == "seen=yes" })
        }
    }

    /// The jar exists for one run: the next run gets the redirect again, and resumes.
    @Test func cookieWallAtAResume() async throws {
        try await Site.with(try await Site(length: Self.length)) { site in
            try await site.interrupt(after: 1_000_000)
            site.server.set(.always(.cookieWall("seen=yes")), for: Site.path)
            let before = site.served
            try site.expectFile(try await site.download())
            #expect(site.served - before < 1_500_000)
        }
    }

    /// A cookie for another path or domain and a deleted one are not sent, so the circle ends at the limit.
    @Test(arguments: ["a=1; Path=/elsewhere", "a=1; Domain=example.org", "a=1; Max-Age=0"])
    func cookieThatDoesNotMatch(_ cookie: String) async throws {
        try await Site.with(try await Site(length: Self.length, .always(.cookieWall(cookie)))) { site in
            try site.expectFailure(try await site.download { $0.maximumTries = 1 }, .redirectRefused)
            #expect(values(site.server, "Cookie") == [nil])
            #expect(site.requests.count == 21)
        }
    }

    /// A cookie of one host does not go to another host that a redirect leads to.
    @Test func cookiesStayWithTheirHost() async throws {
        let other = try await other()
        try await Site.with(try await Site(length: Self.length)) { site in
            let target = other.url("/other")
            let behaviour = Behaviour { _ in
                Reply(302, [("Location", target), ("Set-Cookie", "session=secret; Path=/")], text: "moved\n")
            }
            site.server.set(behaviour, for: Site.path)
            let outcome = try await site.download { $0.connections = 4 }
            #expect(outcome.succeeded, "\(outcome.message)")
        }
        #expect(values(other, "Cookie") == [nil])
        await other.stop()
    }

    // MARK: netrc

    /// The entry of the second host answers there, the entry of the first host does not.
    @Test(arguments: [1, 4]) func netrcAfterARedirect(connections: Int) async throws {
        let basic = "Basic " + Data("bob:two".utf8).base64EncodedString()
        let other = try await other(.always(.authorizationRequired(basic)))
        try await Site.with(try await Site(.always(.redirect(to: other.url("/other"))))) { site in
            let folder = try Scratch()
            let netrc = try folder.write(
                "netrc", "machine 127.0.0.1 login ann password one\nmachine 127.0.0.2\n  login bob\n  password two\n")
            let outcome = try await site.download {
                $0.connection.netrc = .file(netrc)
                $0.connections = connections
            }
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(values(other, "Authorization") == [basic])
            #expect(values(site.server, "Authorization") == ["Basic " + Data("ann:one".utf8).base64EncodedString()])
        }
        await other.stop()
    }

    /// `default` names no host, a comment names no host, and a longer name is another host.
    @Test(arguments: [
        "default login me password secret\n", "# machine 127.0.0.2\ndefault login me password secret\n",
        "machine 127.0.0.22 login me password secret\ndefault login me password secret\n",
    ])
    func netrcWithoutTheHost(_ text: String) async throws {
        let other = try await other()
        try await Site.with(try await Site(.always(.redirect(to: other.url("/other"))))) { site in
            let folder = try Scratch()
            let netrc = try folder.write("netrc", text)
            let outcome = try await site.download { $0.connection.netrc = .file(netrc) }
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(values(site.server, "Authorization") != [nil], "the URL of the user gets the default entry")
        }
        #expect(values(other, "Authorization") == [nil])
        await other.stop()
    }

    /// After a redirect from https to http, no entry answers, although one names the host.
    @Test(.enabled(if: Thoroughness.areThere("/usr/bin/openssl"))) func netrcAfterADowngrade() async throws {
        let folder = try Scratch()
        let options = try await folder.makeTLS()
        let text = ["127.0.0.1", "127.0.0.2"].map { "machine \($0) login me password secret\n" }.joined()
        let netrc = try folder.write("netrc", text)
        let other = try await other()
        let target = other.url("/other")
        try await Site.with(
            try await Site(Resource(length: Self.length, behaviour: .always(.redirect(to: target))), options: options)
        ) { site in
            let outcome = try await site.download {
                $0.connection.certificateAuthorityFile = folder.file("chain.pem")
                $0.connection.netrc = .file(netrc)
                $0.allowsDowngrade = true
                $0.connections = 4
            }
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(values(site.server, "Authorization") != [nil])
        }
        #expect(!other.log.requests.isEmpty && values(other, "Authorization") == [nil])
        await other.stop()
    }

    /// The user in the URL of a redirect is for the target, as with curl.
    @Test func userOfTheTarget() async throws {
        let basic = "Basic " + Data("link:key".utf8).base64EncodedString()
        let other = try await other(.always(.authorizationRequired(basic)))
        let target = other.url("/other").replacingOccurrences(of: "http://", with: "http://link:key@")
        try await Site.with(try await Site(.always(.redirect(to: target)))) { site in
            let outcome = try await site.download { $0.connections = 2 }
            #expect(outcome.succeeded, "\(outcome.message)")
            #expect(!"\(outcome.notices)".contains("key@"))
            #expect(values(site.server, "Authorization") == [nil])
        }
        await other.stop()
    }

    // MARK: Digest

    /// `--user` answers Digest, also where Basic is offered first, on each connection and for a small file.
    @Test(arguments: [nil, "Basic realm=\"files\""], [20_000, length])
    func digest(besides: String?, length: Int64) async throws {
        let fault = Fault.digestRequired(user: "me", besides: besides)
        let resource = Resource(length: length, rate: 4_000_000, behaviour: .always(fault))
        try await Site.with(try await Site(resource)) { site in
            let outcome = try await site.download {
                $0.connection.user = "me:secret"
                $0.connections = 4
            }
            try site.expectFile(outcome)
            // The first request of a connection carries no answer to a challenge yet.
            let sent = site.requests.compactMap { $0.info.field("Authorization") }
            #expect(sent.last?.hasPrefix("Digest ") == true && !sent.contains { $0.contains("secret") }, "\(sent)")
        }
    }

    /// netrc entries answer Digest too, and an unfinished download is resumed.
    @Test func digestAtAResume() async throws {
        try await Site.with(try await Site(length: Self.length)) { site in
            try await site.interrupt(after: 1_000_000)
            site.server.set(.always(.digestRequired(user: "me")), for: Site.path)
            let folder = try Scratch()
            let netrc = try folder.write("netrc", "machine 127.0.0.1 login me password secret\n")
            let before = site.served
            try site.expectFile(try await site.download { $0.connection.netrc = .file(netrc) })
            #expect(site.served - before < 1_500_000)
        }
    }

    /// A wrong user is refused after a few requests, and without credentials there is one request for each try.
    @Test(arguments: ["you:secret", nil]) func wrongUser(_ user: String?) async throws {
        try await Site.with(try await Site(length: Self.length, .always(.digestRequired(user: "me")))) { site in
            let outcome = try await site.download { $0.connection.user = user }
            try site.expectFailure(outcome, .refusedByServer)
            #expect(site.requests.count <= 8)
        }
    }
}
