import Foundation
import TestServers
import Testing

/// Runs the built command against servers and proxies of other projects.
@Suite(
    .serialized, .timeLimit(.minutes(5)),
    .enabled(
        if: Programs.areThere(
            Programs.nginx, Programs.openssl, Programs.tinyproxy, Programs.squid, Programs.danted)))
struct RealServerTests {
    private func expectLarge(_ place: TestDirectory, _ result: CommandRun.Result) throws {
        #expect(result.status == 0, "\(result.stderr)")
        #expect(place.names == ["large"])
        #expect(try Nginx.content.firstMismatch(inFile: place.path("large"), length: Nginx.largeLength) == nil)
    }

    // MARK: Ways to the server

    @Test(arguments: Route.allCases) func fourSegmentsArriveByEveryRoute(_ route: Route) async throws {
        let open = try await route.open()
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get", "-x", "4"] + open.arguments + [open.url], directory: place.url)
        try expectLarge(place, result)
        var log = open.nginx.log
        // nginx logs a cut connection when it next checks that connection.
        for _ in 0..<100 where Set(log.map(\.range)).count < 4 {
            try await Task.sleep(for: .milliseconds(50))
            log = open.nginx.log
        }
        #expect(Set(log.map(\.range)).count >= 4, "\(log)")
        #expect(log.allSatisfy { $0.status == "206" && $0.secrets.isEmpty }, "\(log)")
        let isHTTP2 = [.http2, .squidTunnel].contains(route)
        #expect(log.allSatisfy { ($0.version == "HTTP/2.0") == isHTTP2 }, "\(log)")
        if let proxy = open.proxy { #expect(!proxy.log.isEmpty) }
    }

    /// Held bytes are not fetched again, by whatever route they came and however the first run ended.
    @Test(arguments: Route.allCases.map { ($0, SIGKILL) } + [(.http2, SIGINT), (.tinyproxyTunnel, SIGINT)])
    func anInterruptedDownloadGoesOnByEveryRoute(_ route: Route, _ signal: Int32) async throws {
        let open = try await route.open()
        let place = try TestDirectory()
        let arguments = ["get", "--json", "-x", "4"] + open.arguments + [open.url]
        let run = try CommandRun(arguments, directory: place.url)
        let held = try await run.heldBytes(reaching: 3 << 20)
        run.signal(signal)
        let first = try await run.finish()
        #expect(first.status == (signal == SIGINT ? 130 : 137), "\(first.stderr)")
        #expect(place.names == ["large.tow", "large.tow-journal"])

        let second = try await CommandRun.run(arguments, directory: place.url)
        try expectLarge(place, second)
        let finished = try #require(try second.objects.first { $0["event"] as? String == "finished" })
        let received = try #require(finished["receivedBytes"] as? Int)
        // At most 256 KiB for each connection were not marked yet, and at each seam up to 64 KiB are compared.
        let again = Int64(received) - (Nginx.largeLength - held)
        #expect(again <= 4 * (256 + 64) << 10, "\(again) bytes were fetched again")
    }

    @Test(arguments: ["good", "http2", "self-signed", "expired", "other-host"])
    func aServerThatIsNotTrustedGivesNothing(_ certificate: String) async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        let url = nginx.url("large", certificate: certificate)
        let isGood = ["good", "http2"].contains(certificate)
        // The good certificate is refused because the system does not know its authority; the others even with the
        // authority.
        let trust = isGood ? [] : ["--cacert", nginx.certificates.authority]
        let result = try await CommandRun.run(["get"] + trust + [url], directory: place.url)
        #expect(result.status == 1)
        #expect(result.stderr.contains("certificate"), "\(result.stderr)")
        // The message does not suggest a file that the user has already named.
        #expect(result.stderr.contains("add --cacert FILE") == isGood, "\(result.stderr)")
        let doubts = result.stderr.contains("\(nginx.certificates.authority) (--cacert) lacks the authority")
        #expect(doubts == (certificate == "self-signed"), "\(result.stderr)")
        #expect(place.names == [])
        #expect(nginx.log.isEmpty)
    }

    // MARK: Credentials

    /// The ways to give the password or the cookie that the server asks for.
    enum Proof: String, CaseIterable, Sendable {
        case user, userFile, userInfo, netrc, netrcFile, cookies

        /// Returns the options, the path to request, and the home directory.
        func use(_ nginx: Nginx) throws -> (options: [String], url: String, home: String) {
            let (name, password) = ("alice", "secret")
            func file(_ name: String, _ text: String) throws -> String { try nginx.folder.write(name, text) }
            let netrc = try file(".netrc", "machine 127.0.0.1 login \(name) password \(password)\n")
            let url = nginx.url("private/large")
            switch self {
            case .user: return (["--user", Nginx.credentials], url, "/nonexistent")
            case .userFile: return (["--user-file", try file("user", Nginx.credentials + "\n")], url, "/nonexistent")
            case .userInfo: return ([], url.replacing("//", with: "//\(Nginx.credentials)@"), "/nonexistent")
            case .netrc: return (["--netrc"], url, nginx.folder.path)
            case .netrcFile: return (["--netrc-file", netrc], url, "/nonexistent")
            case .cookies:
                let jar = try file("jar", "127.0.0.1\tFALSE\t/\tFALSE\t0\tticket\tvalid\n")
                return (["--cookies", jar], nginx.url("ticket/large"), "/nonexistent")
            }
        }
    }

    @Test(arguments: Proof.allCases) func whatTheServerAsksForIsSentWithEverySegment(_ proof: Proof) async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        let (options, url, home) = try proof.use(nginx)
        let result = try await CommandRun.run(
            ["get", "-x", "4"] + options + [url], directory: place.url, environment: ["HOME": home])
        try expectLarge(place, result)
        #expect(Set(nginx.log.map(\.range)).count >= 4, "\(nginx.log)")
        #expect(nginx.log.allSatisfy { $0.status == "206" }, "\(nginx.log)")
    }

    @Test(arguments: [
        ("private/large", ["--user", "alice:wrong"]), ("private/large", []), ("ticket/large", []),
    ])
    func withoutItTheServerRefuses(_ path: String, _ options: [String]) async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        let result = try await CommandRun.run(["get"] + options + [nginx.url(path)], directory: place.url)
        #expect(result.status == 8, "\(result.stderr)")
        #expect(place.names == [])
        // The second request has no Range, because the Range may be the reason for a refusal.
        #expect(nginx.log.map { $0.range.count > 1 } == [true, false], "\(nginx.log)")
    }

    @Test(arguments: ["user", "netrc"]) func secretsStayWithTheirOrigin(_ kind: String) async throws {
        let nginx = try await Nginx()
        let place = try TestDirectory()
        let jar = try nginx.folder.write("jar", "127.0.0.1\tFALSE\t/\tFALSE\t0\tticket\tvalid\n")
        let netrc = try nginx.folder.write("netrc", "machine 127.0.0.1 login alice password secret\n")
        let password = kind == "user" ? ["--user", Nginx.credentials] : ["--netrc-file", netrc]
        let result = try await CommandRun.run(
            ["get", "-x", "4", "--cookies", jar, "-H", "X-Token: canary"] + password + [nginx.url("away/slow/large")],
            directory: place.url)
        try expectLarge(place, result)
        let (away, home) = (
            nginx.log.filter { $0.port == nginx.awayPort }, nginx.log.filter { $0.port != nginx.awayPort }
        )
        #expect(!home.isEmpty && home.allSatisfy { $0.status == "302" && $0.secrets.count == 3 }, "\(home)")
        #expect(Set(away.map(\.range)).count >= 4, "\(away)")
        // Cookies and netrc entries name a host, and this one is the same host (RFC 6265 §8.5).
        #expect(away.allSatisfy { $0.token.isEmpty && $0.proxyAuthorization.isEmpty }, "\(away)")
        #expect(kind == "netrc" || away.allSatisfy { $0.authorization.isEmpty }, "\(away)")
    }
}

/// The run ended before it held enough bytes.
private struct EndedEarly: Error {
    let stdout: String
    let stderr: String
}

extension CommandRun {
    /// Waits until a run with `--json` reports at least `limit` held bytes, and returns the reported number.
    func heldBytes(reaching limit: Int64) async throws -> Int64 {
        // The output is a file, which sends no notification when it grows, so the file is polled.
        while true {
            let isRunning = process.isRunning
            let held = stdoutSoFar.matches(of: /"heldBytes":(\d+)/).compactMap { Int64($0.1) }.max() ?? 0
            if held >= limit { return held }
            guard isRunning else { throw EndedEarly(stdout: stdoutSoFar, stderr: stderrSoFar) }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
