import Testing
import TowlineCore

@testable import tow

/// The shortcut interprets arguments exactly as the parser does.
@Suite struct GetShortcutTests {
    private static let url = "https://example.org/a.iso"
    private static let other = "http://example.com/b"

    private static let understood: [[String]] = [
        [url], [url, other], ["-q", url], [url, "--quiet"], ["--json", url], ["-d", "/tmp", url, other],
        ["-o", "x.iso", url], ["-o", "-", url], ["-x", "4", "-j", "7", url], ["-i", "list", "-d", "."], ["-i", "-"],
        ["--connections", "8", "--limit-rate", "2M", "--sequential", url],
        ["--if-exists", "rename", "--if-changed", "fail", "--no-sync", "--no-preallocate", "--unsafe-resume", url],
        ["--ignore-server-checksums", "--accept-html", url],
        ["--checksum", "md5:d41d8cd98f00b204e9800998ecf8427e", url], ["--proxy", "socks5h://127.0.0.1:9", url],
        ["--insecure", "--http1", "--allow-downgrade", "--max-redirects", "0", url],
        ["--connect-timeout", "1.5", "--stall-timeout", "9s", "--max-tries", "0", "--retry-wait", "2", url],
        ["--retry-on", "404", url],
        ["--input-file", "list", "--concurrency", "10000"], ["--output", "a/b", "--directory", "c", url],
    ]

    private static let left: [[String]] = [
        [], ["--help"], ["-h"], [url, "--version"], ["-qx4", url], ["-x4", url], ["--connections=4", url],
        ["-d", "a", "-d", "b", url], ["-d", "-q", url], ["-d"], ["--", url], ["-o", "a", url, other], ["-x", "0", url],
        ["--user", "a:b", url], ["-H", "A: b", url], ["--netrc", url], ["--progress", "none", url],
        ["--limit-rate-total", "1M", url], ["--nonsense", url], ["ftp://example.org/a"], ["-o", "-", "--json", url],
        ["--checksum", "md5:12", url], ["-j", "0", "-i", "list"], ["", url],
    ]

    private func parsed(_ words: [String]) throws -> String {
        let command = try #require(try TowCommand.parseAsRoot(["get"] + words) as? GetCommand)
        return describe(try #require(try command.checked()))
    }

    private func describe(_ plan: GetPlan) -> String {
        var text = ""
        dump(plan, to: &text)
        return text
    }

    @Test(arguments: understood) func plainArgumentsMeanTheSame(_ words: [String]) throws {
        let plan = try #require(GetShortcut.plan(["get"] + words))
        #expect(describe(plan) == (try parsed(words)))
    }

    @Test(arguments: left) func whateverIsUnusualIsTheParsers(_ words: [String]) {
        #expect(GetShortcut.plan(["get"] + words) == nil)
    }

    @Test func otherCommandsAreTheParsers() {
        #expect(GetShortcut.plan(["add", Self.url]) == nil)
        #expect(GetShortcut.plan([]) == nil)
    }
}
