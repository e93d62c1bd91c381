import Testing

@testable import TowlineEngine

/// The jar stores cookies; libcurl decides what matches. Lines are as libcurl writes them.
struct CookieJarTests {
    private static func line(_ domain: String, _ name: String, _ value: String, path: String = "/") -> String {
        "\(domain)\t\(domain.contains("_.") || domain.hasPrefix(".") ? "TRUE" : "FALSE")\t\(path)\tFALSE\t0\t\(name)\t\(value)"
    }

    private func lines(_ jar: CookieJar, _ host: String, stored: Bool = false) -> [String] {
        jar.lines(for: host, stored: stored) {
            [Self.line("a.test", "stored", "1"), Self.line(".b.test", "both", "file")]
        }
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
        #expect(jar.lines == set)
    }

    @Test func cookiesOfTheFileAreReadOnceAndOnlyWhereAllowed() {
        let jar = CookieJar()
        var count = 0
        func lent(_ stored: Bool) -> [String] {
            jar.lines(for: "a.test", stored: stored) {
                count += 1
                return [Self.line("a.test", "stored", "1")]
            }
        }
        #expect(lent(false).isEmpty && count == 0)
        #expect(lent(true).count == 1 && lent(true).count == 1 && count == 1)
        #expect(lent(false).isEmpty)
        // A server that sets the cookie makes it its own.
        jar.update(lent: lent(true), returned: [Self.line("a.test", "stored", "2")])
        #expect(lent(false) == [Self.line("a.test", "stored", "2")])
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
        // An unchanged cookie does not bring back the old value.
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
