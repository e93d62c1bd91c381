import FaultServer
import Foundation
import Testing

@testable import tow

/// `--cookies` and `--save-cookies`.
struct CookieFileTests {
    @Test(
        arguments: [
            ("SQLite format 3\0\u{10}", "SQLite"), (" \n[{\"domain\": \"CANARY\"}]", "JSON"),
            ("{\"cookies\": []}", "JSON"),
            ("<!DOCTYPE html>", "HTML"), ("#LWP-Cookies-2.0\nSet-Cookie3: a=CANARY", "Perl"),
            ("cook\0\0\0\u{1}", "Safari"),
            ("a.test TRUE / FALSE 0 name CANARY\n", "spaces instead of tabs"), ("session=CANARY; b=1", "Cookie header"),
            ("\u{1F}\0\0", "binary"), ("hello\n", "another kind"), ("PK\u{3}\u{4}x", "compressed"),
            ("# Netscape HTTP Cookie File\n{}\n", "JSON"),
        ])
    func otherKindsAreNamed(_ text: String, _ kind: String) throws {
        let found = try #require(CookieFile.otherKind(Array(text.utf8)))
        #expect(found.contains(kind) && !found.contains("CANARY"), "\(found)")
    }

    @Test(arguments: [
        "", "\n", "# Netscape HTTP Cookie File\n", ".a.test\tTRUE\t/\tFALSE\t0\tname\tvalue\r\n",
        "#HttpOnly_a.test\tFALSE\t/\tFALSE\t0\tname\tvalue", "a.test\tFALSE\t/\tFALSE\t0\tname\t\n",
        "Set-Cookie: a=b; Domain=a.test\n", "\u{FEFF}# comment\na.test\tFALSE\t/\tFALSE\t0\tname\tvalue\n",
    ])
    func cookieFilesAreAccepted(_ text: String) {
        #expect(CookieFile.otherKind(Array(text.utf8)) == nil)
    }

    @Test func anotherKindOfFileIsAUsageError() async throws {
        let place = try TestDirectory()
        try Data("SQLite format 3\0 CANARY".utf8).write(to: place.file("cookies.sqlite"))
        let result = try await CommandRun.run(
            ["get", "--cookies", "cookies.sqlite", "http://127.0.0.1:9/f"], directory: place.url)
        #expect(result.status == 2 && result.stderr.contains("SQLite") && !result.stderr.contains("CANARY"))
        for path in ["missing/jar", ".", "/dev/null"] {
            let refused = try await CommandRun.run(
                ["get", "--save-cookies", path, "http://127.0.0.1:9/f"], directory: place.url)
            #expect(refused.status == 2 && refused.stderr.contains("--save-cookies"), "\(refused.stderr)")
        }
    }

    /// The jar of one run lets the next one in. The file replaces an old one and a link, with mode 0600, also after a
    /// failure.
    @Test(arguments: [true, false]) func savedCookiesAreUsedAgain(_ isLink: Bool) async throws {
        let wall = Behaviour.always(.cookieWall("seen=CANARY; Path=/"))
        let server = try await FaultServer.start([
            "/f": Resource(length: 1000, behaviour: wall),
            "/no": Resource(length: 1000, behaviour: .always(.status(404, fields: [("Set-Cookie", "last=CANARY2")]))),
        ])
        let place = try TestDirectory()
        try Data("old".utf8).write(to: place.file("old"))
        if isLink { #expect(symlink("old", place.path("jar")) == 0) }
        let first = try await CommandRun.run(
            ["get", "--save-cookies", "jar", "--max-tries", "1", server.url("/f"), server.url("/no")],
            directory: place.url)
        #expect(first.status != 0 && !first.stderr.contains("CANARY"), "\(first.stderr)")
        let text = try String(contentsOf: place.file("jar"), encoding: .utf8)
        #expect(text.hasPrefix("# Netscape HTTP Cookie File\n") && text.contains("\tseen\tCANARY\n"))
        let attributes = try FileManager.default.attributesOfItem(atPath: place.path("jar"))
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(try Data(contentsOf: place.file("old")) == Data("old".utf8))
        let second = try await CommandRun.run(
            ["get", "--cookies", "jar", "--max-redirects", "0", "-o", "g", server.url("/f")], directory: place.url)
        #expect(second.status == 0, "\(second.stderr)")
        #expect(place.names == ["f", "g", "jar", "old"])
        await server.stop()
    }

    /// No cookie, password or token is in an output, a name, a journal or the list of processes, whatever the server
    /// does.
    @Test(arguments: [
        Fault.cookieWall("seen=CANARY; Path=/"), .digestRequired(user: "ann"), .cookieRequired("id=1"),
        .redirect(to: "http://me:CANARY@127.0.0.1:9/f"), .redirectLoop, .stall(after: 400_000),
    ])
    func canary(_ fault: Fault) async throws {
        let server = try await FaultServer.start(["/f": Resource(length: 900_000, behaviour: .always(fault))])
        let place = try TestDirectory()
        try Data("machine 127.0.0.1 login ann password CANARY\n".utf8).write(to: place.file("netrc"))
        try Data("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tCANARY\n".utf8).write(to: place.file("cookies"))
        let options = [
            "--netrc-file", "netrc", "--cookies", "cookies", "--max-tries", "1", "--stall-timeout", "0.5",
            "--save-cookies", "jar", "-o", "out",
        ]
        for style in [["--json"], ["--progress", "plain"]] {
            let run = try CommandRun(["get"] + options + style + [server.url("/f")], directory: place.url)
            let process = try? String(contentsOfFile: "/proc/\(run.process.processIdentifier)/cmdline", encoding: .utf8)
            let result = try await run.finish()
            #expect(process?.contains("CANARY") != true)
            #expect(!result.stderr.contains("CANARY"), "\(result.stderr)")
            #expect(result.stdout.range(of: Data("CANARY".utf8)) == nil)
            for name in place.names where !["netrc", "cookies", "jar"].contains(name) {
                #expect(try Data(contentsOf: place.file(name)).range(of: Data("CANARY".utf8)) == nil, "\(name)")
            }
        }
        #expect(server.log.requests.contains { $0.info.field("Cookie")?.contains("CANARY") == true })
        await server.stop()
    }
}
