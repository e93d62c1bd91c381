import Testing
import TowlineCore

@testable import TowlineEngine

/// The jar stores cookies; libcurl decides what matches. Lines are as libcurl writes them.
struct CookieJarTests {
    private static func line(
        _ domain: String, _ name: String, _ value: String, path: String = "/", secure: Bool = false
    ) -> String {
        let subdomains = domain.contains("_.") || domain.hasPrefix(".")
        let flags = [subdomains, secure].map { $0 ? "TRUE" : "FALSE" }
        return [domain, flags[0], path, flags[1], "0", name, value].joined(separator: "\t")
    }

    private func lines(
        _ jar: CookieJar, _ host: String?, isEncrypted: Bool = false, stored: Bool = false, file: [String] = []
    ) -> [String] {
        jar.lines(for: host, isEncrypted: isEncrypted, stored: stored) { file }
    }

    @Test func cookiesAreLentToHostsThatCanMatch() {
        let jar = CookieJar()
        let set = [
            Self.line("a.test", "one", "1"), Self.line(".a.test", "all", "2"),
            Self.line("#HttpOnly_.A.test", "http", "3"),
            Self.line("::1", "six", "4"), Self.line("nota.test", "other", "5"),
        ]
        jar.update(lent: [], returned: set)
        #expect(lines(jar, "a.test") == Array(set[..<3]))
        // libcurl does not send the first one.
        #expect(lines(jar, "x.a.test") == Array(set[..<3]))
        #expect(lines(jar, "[::1]") == [set[3]])
        #expect(lines(jar, "xa.test").isEmpty && lines(jar, "test").isEmpty)
        #expect(jar.lines == set && lines(jar, nil) == set)
    }

    @Test func theTextOfAFileIsReadLikeTheFile() throws {
        let cookies = [Self.line("a.test", "one", "1"), Self.line("#HttpOnly_.a.test", "two", "2", secure: true)]
        let jar = try CookieJar(netscape: "# Netscape HTTP Cookie File\r\n\n\(cookies[0])\r\n \n\(cookies[1])")
        #expect(lines(jar, "a.test").isEmpty)
        #expect(lines(jar, "a.test", stored: true) == [cookies[0]])
        #expect(lines(jar, "a.test", isEncrypted: true, stored: true, file: ["x"]) == cookies)
    }

    /// libcurl takes some lines without tabs as commands, such as `RELOAD`.
    @Test(arguments: ["RELOAD", "FLUSH", "a=b", "a.test\tTRUE\t/", "a.test\tFALSE\t/\tFALSE\t0\tn\tv\u{1B}"])
    func aLineThatIsNoCookieIsRefused(_ line: String) {
        let error = #expect(throws: TowlineError.self) { try CookieJar(netscape: "\n" + line) }
        #expect(error?.message.hasPrefix("cookies: line 2 ") == true)
    }

    @Test func cookiesOfTheFileAreReadOnceAndOnlyWhereAllowed() {
        let jar = CookieJar()
        let file = [Self.line("a.test", "stored", "1")]
        #expect(lines(jar, "a.test", file: file).isEmpty && jar.lines.isEmpty)
        #expect(lines(jar, "a.test", stored: true, file: file) == file)
        #expect(lines(jar, "a.test", stored: true, file: [Self.line("a.test", "late", "1")]) == file)
        #expect(lines(jar, "a.test").isEmpty)
        // A server that sets the cookie becomes its owner.
        jar.update(lent: file, returned: [Self.line("a.test", "stored", "2")])
        #expect(lines(jar, "a.test") == [Self.line("a.test", "stored", "2")])
    }

    /// A Secure cookie of the file needs TLS, also for localhost, and no response over http replaces it. libcurl judges
    /// a Secure cookie that a server sets.
    @Test(arguments: ["127.0.0.1", "localhost", "a.test"]) func secureCookies(_ host: String) {
        let jar = CookieJar()
        let file = [Self.line(host, "safe", "1", secure: true)]
        #expect(lines(jar, host, stored: true, file: file).isEmpty)
        #expect(lines(jar, host, isEncrypted: true, stored: true) == file)
        let set = Self.line(host, "own", "2", secure: true)
        jar.update(lent: [], returned: [Self.line(host, "safe", "3"), set])
        #expect(lines(jar, host, stored: true) == [set])
        jar.update(lent: file, returned: [Self.line(host, "safe", "4", secure: true)])
        #expect(lines(jar, host, isEncrypted: true).contains(Self.line(host, "safe", "4", secure: true)))
    }

    @Test func aResponseReplacesAndDeletes() {
        let jar = CookieJar()
        let old = [
            Self.line("a.test", "x", "1"), Self.line("a.test", "y", "1"), Self.line("a.test", "x", "1", path: "/p"),
        ]
        jar.update(lent: [], returned: old)
        jar.update(lent: old, returned: [Self.line("a.test", "x", "2"), old[2], Self.line("a.test", "z", "1")])
        #expect(jar.lines == [Self.line("a.test", "x", "2"), old[2], Self.line("a.test", "z", "1")])
    }

    /// Two requests run at once: the later response deletes a cookie that the earlier one has just set.
    @Test func aCookieThatAnotherResponseSetStays() {
        let jar = CookieJar()
        let old = Self.line("a.test", "x", "1")
        jar.update(lent: [], returned: [old])
        jar.update(lent: [old], returned: [Self.line("a.test", "x", "2")])
        jar.update(lent: [old], returned: [])
        #expect(jar.lines == [Self.line("a.test", "x", "2")])
        // An unchanged cookie does not restore the old value.
        jar.update(lent: [old], returned: [old, Self.line("a.test", "y", "1")])
        #expect(jar.lines == [Self.line("a.test", "x", "2"), Self.line("a.test", "y", "1")])
    }

    @Test func linesThatAreNoCookiesAreLeftOut() {
        let jar = CookieJar()
        jar.update(lent: [], returned: ["", "# comment", "a\tb", "a.test FALSE / FALSE 0 x 1"])
        #expect(jar.lines.isEmpty)
    }

    /// Connections do not depend on cookies.
    @Test func jarsDoNotTellOptionsApart() {
        #expect(ConnectionOptions() == ConnectionOptions())
        #expect(Set([CookieJar(), CookieJar()]).count == 1)
    }
}
