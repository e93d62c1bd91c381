import FaultServer
import Foundation
import Testing

@testable import tow

/// A list of URLs is not trusted: it names files below `-d`, checksums, mirrors and rates, and nothing else.
struct ListTrustTests {
    private func server(host: String = "127.0.0.1") async throws -> FaultServer {
        var options = ServerOptions()
        options.host = host
        return try await FaultServer.start(["/*": Resource(length: 1000)], options: options)
    }

    /// Each option that could read a local file, weaken TLS, overwrite or send something is refused, and its URL is not
    /// requested.
    @Test(arguments: [
        "bearer-file=secret", "user-file=secret", "cookies=secret", "netrc-file=secret", "netrc", "cacert=secret",
        "insecure", "proxy=http://127.0.0.1:9", "header=X: y", "user=a:b", "if-exists=overwrite", "if-changed=fail",
        "unsafe-resume", "ignore-server-checksums", "accept-html",
        "no-sync", "allow-downgrade", "max-redirects=50", "max-tries=0",
        "http1",
    ])
    func anUnsafeOptionIsRefused(_ option: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        try Data("ann:CANARY\n".utf8).write(to: place.file("secret"))
        let list = "\(server.url("/a"))\n  \(option)\n\(server.url("/b"))\n"
        let result = try await CommandRun.run(["get", "-q", "-i", "-"], input: list, directory: place.url)
        let name = option.prefix { $0 != "=" }
        #expect(result.stderr.contains("line 2: \(name): "), "\(result.stderr)")
        #expect(result.stderr.contains("--list-options all"), "\(result.stderr)")
        #expect(server.log.requests.map(\.path) == ["/b"], "the other download is not affected")
        #expect(place.names == ["b", "secret"])
        await server.stop()
    }

    @Test func everySettingIsSafeOrRefused() {
        let safe = Setting.allCases.filter(\.isSafeInList)
        #expect(safe == [.output, .directory, .checksum, .mirror, .limitRate])
    }

    @Test func withListOptionsAllTheUserTrustsTheList() async throws {
        let server = try await server()
        let place = try TestDirectory()
        let list = "\(server.url("/a"))\n  header=X-Token: abc\n  output=.hidden\n"
        let arguments = ["get", "-q", "--list-options", "all", "-i", "-"]
        let result = try await CommandRun.run(arguments, input: list, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == [".hidden"])
        #expect(server.log.requests.first?.info.field("x-token") == "abc")
        await server.stop()
    }

    /// Paths of a list that leave the directory of `-d`, or hide in it.
    @Test(arguments: [
        "output=/ABSOLUTE/x", "output=../x", "output=sub/../../x", "output=.ssh/x", "output=link/x", "output=..",
        "output=.\u{301}s/x", "output=/\u{301}x/y", "output=link/\u{301}x",
        "directory=/ABSOLUTE", "directory=..", "directory=link", "directory=.ssh", "directory=sub/../..",
    ])
    func aPathStaysBelowTheDirectory(_ option: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        let manager = FileManager.default
        for name in ["d", "d/sub", "d/.ssh", "outside"] {
            try manager.createDirectory(at: place.file(name), withIntermediateDirectories: true)
        }
        try manager.createSymbolicLink(atPath: place.path("d/link"), withDestinationPath: place.path("outside"))
        let option = option.replacingOccurrences(of: "/ABSOLUTE", with: place.path("outside"))
        let list = "\(server.url("/a"))\n  \(option)\n"
        let result = try await CommandRun.run(["get", "-q", "-d", "d", "-i", "-"], input: list, directory: place.url)
        #expect(result.status == 2, "\(result.stderr)")
        #expect(server.log.requests.isEmpty)
        #expect(place.names == ["d", "outside"])
        for name in ["d/sub", "d/.ssh", "outside"] {
            #expect(try manager.contentsOfDirectory(atPath: place.path(name)) == [], "\(name)")
        }
        await server.stop()
    }

    /// A hidden name gets the name that a server's suggestion would get; a directory below `-d` works.
    @Test func aNameIsMadeSafe() async throws {
        let server = try await server()
        let place = try TestDirectory()
        try FileManager.default.createDirectory(at: place.file("d/sub"), withIntermediateDirectories: true)
        let list =
            "\(server.url("/a"))\n  output=.bashrc\n\(server.url("/b"))\n  directory=sub\n\(server.url("/c"))\n  output=sub/.x\n"
        let result = try await CommandRun.run(["get", "-q", "-d", "d", "-i", "-"], input: list, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path("d")).sorted() == ["bashrc", "sub"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path("d/sub")).sorted() == ["b", "x"])
        await server.stop()
    }

    // MARK: Secrets of the command line

    private static let secrets = [
        ["-H", "Authorization: Bearer CANARY"], ["-H", "X-Api-Key: CANARY"], ["--user", "ann:CANARY"],
        ["--user-file", "secret"], ["--bearer-file", "secret"], ["--cookies", "cookies"], ["--netrc-file", "netrc"],
        ["--netrc-file", "hosts"],
    ]

    private func prepare(_ place: TestDirectory) throws {
        try Data("ann:CANARY\n".utf8).write(to: place.file("secret"))
        try Data("default login ann password CANARY\n".utf8).write(to: place.file("netrc"))
        let hosts = ["127.0.0.1", "127.0.0.2"].map { "machine \($0) login ann password CANARY\n" }.joined()
        try Data(hosts.utf8).write(to: place.file("hosts"))
        let cookies = ["127.0.0.1", "127.0.0.2"].map { "\($0)\tFALSE\t/\tFALSE\t0\tname\tCANARY\n" }.joined()
        try Data(("# Netscape HTTP Cookie File\n" + cookies).utf8).write(to: place.file("cookies"))
        try FileManager.default.createDirectory(at: place.file("d"), withIntermediateDirectories: true)
    }

    /// Returns whether a request carried the secret, also as base64 of `ann:CANARY`.
    private func gotSecret(_ server: FaultServer) -> Bool {
        let marks = ["CANARY", Data("ann:CANARY".utf8).base64EncodedString()]
        return server.log.requests.contains { request in
            request.info.fields.contains { field in marks.contains { field.1.contains($0) } }
        }
    }

    /// A list of two servers is refused before the first request, in a file and in a pipe.
    @Test(arguments: secrets) func secretsAreNotSentToTwoServers(_ secret: [String]) async throws {
        let (first, second) = (try await server(), try await server(host: "127.0.0.2"))
        let place = try TestDirectory()
        try prepare(place)
        let list = "\(first.url("/a"))\n\(second.url("/b"))\n"
        try Data(list.utf8).write(to: place.file("list"))
        let result = try await CommandRun.run(["get", "-q", "-d", "d", "-i", "list"] + secret, directory: place.url)
        #expect(result.status == 2, "\(result.stderr)")
        #expect(result.stderr.contains("--credentials-for"), "\(result.stderr)")
        #expect(first.log.requests.isEmpty && second.log.requests.isEmpty)

        // A pipe cannot be read twice: the entries of the second server fail.
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(list.utf8))
        try pipe.fileHandleForWriting.close()
        let run = try CommandRun(
            ["get", "-q", "-d", "d", "-i", "-"] + secret, input: pipe.fileHandleForReading, directory: place.url)
        let piped = try await run.finish()
        #expect(piped.status == 2, "\(piped.stderr)")
        #expect(gotSecret(first), "the first server of a pipe receives the secret")
        #expect(second.log.requests.isEmpty)
        for server in [first, second] { await server.stop() }
    }

    /// The only server of a list, a server of the command line, or the named server receives the secret, and no other.
    @Test(arguments: secrets) func secretsGoToOneServer(_ secret: [String]) async throws {
        let (first, second) = (try await server(), try await server(host: "127.0.0.2"))
        let place = try TestDirectory()
        try prepare(place)
        try Data("\(first.url("/a"))\n\(first.url("/b"))\n".utf8).write(to: place.file("one"))
        try Data("\(first.url("/c"))\n\(second.url("/d"))\n".utf8).write(to: place.file("two"))
        let common = ["get", "-q", "-d", "d"] + secret
        let one = try await CommandRun.run(common + ["-i", "one"], directory: place.url)
        #expect(one.status == 0, "\(one.stderr)")
        #expect(gotSecret(first))

        for arguments in [["--credentials-for", first.url("/")], [first.url("/e")]] {
            let named = try await CommandRun.run(common + ["-i", "two"] + arguments, directory: place.url)
            #expect(named.status == 0, "\(named.stderr)")
        }
        #expect(!second.log.requests.isEmpty && !gotSecret(second))
        for server in [first, second] { await server.stop() }
    }

    /// A server that no URL names is a mistake: no server would receive the secret.
    @Test(arguments: ["http://127.0.0.3/", "http://127.0.0.1:1/", "https://127.0.0.1/"])
    func aNamedServerIsUsed(_ name: String) async throws {
        let server = try await server()
        let place = try TestDirectory()
        try Data("\(server.url("/a"))\n".utf8).write(to: place.file("list"))
        let arguments = ["get", "-q", "-H", "X-Api-Key: k", "--credentials-for", name, "-i", "list"]
        let result = try await CommandRun.run(arguments, directory: place.url)
        #expect(result.status == 2 && result.stderr.contains("--credentials-for"), "\(result.stderr)")
        #expect(server.log.requests.isEmpty)
        await server.stop()
    }

    /// A field that is the same for all users is not a secret.
    @Test func aUserAgentGoesToEveryServer() async throws {
        let (first, second) = (try await server(), try await server(host: "127.0.0.2"))
        let place = try TestDirectory()
        let list = "\(first.url("/a"))\n\(second.url("/b"))\n"
        let arguments = ["get", "-q", "-H", "User-Agent: test", "-i", "-"]
        let result = try await CommandRun.run(arguments, input: list, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        for server in [first, second] {
            #expect(server.log.requests.first?.info.field("user-agent") == "test")
            await server.stop()
        }
    }

    /// `tow add` applies the same rule before it sends a request to the service.
    @Test(.timeLimit(.minutes(2))) func theServiceGetsSecretsForOneServer() async throws {
        let (first, second) = (try await server(), try await server(host: "127.0.0.2"))
        let place = try TestDirectory()
        let service = try ServiceProcess(place)
        try Data("\(first.url("/a"))\n\(second.url("/b"))\n".utf8).write(to: place.file("list"))
        _ = try await service.tow(["list"])
        let secret = ["--user", "ann:CANARY", "-H", "X-Api-Key: CANARY"]
        let refused = try await service.tow(["add", "-i", place.path("list")] + secret)
        #expect(refused.status == 2, "\(refused.stderr)")
        #expect(refused.stderr.contains("--credentials-for"), "\(refused.stderr)")
        #expect(try await service.tow(["list"]).text == "")
        let added = try await service.tow(
            ["add", "-i", place.path("list"), "--credentials-for", first.url("/")] + secret)
        #expect(added.status == 0, "\(added.stderr)")
        await first.log.wait { !$0.requests.isEmpty }
        await second.log.wait { !$0.requests.isEmpty }
        #expect(gotSecret(first) && !gotSecret(second))
        service.kill()
        for server in [first, second] { await server.stop() }
    }
}
