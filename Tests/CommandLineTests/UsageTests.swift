import Foundation
import Testing

/// Tests the command's help, and its answers to invalid command lines.
struct UsageTests {
    @Test(arguments: [["--version"], ["get", "--version"]])
    func versionIsOneLine(_ arguments: [String]) async throws {
        let result = try await CommandRun.run(arguments)
        #expect(result.status == 0)
        #expect(result.text.wholeMatch(of: /tow \d+\.\d+\.\d+\nlibcurl\/[0-9.]+ .*OpenSSL\/.*\n/) != nil)
        #expect(result.stderr == "")
    }

    @Test(arguments: [[], ["--help"], ["-h"], ["help"]])
    func helpNamesTheSubcommands(_ arguments: [String]) async throws {
        let result = try await CommandRun.run(arguments)
        #expect(result.status == 0)
        for name in ["get", "status", "probe"] { #expect(result.text.contains("\n  \(name) ")) }
        #expect(result.stderr == "")
    }

    /// Every option, in its group: a new option is added here and to docs/command-line.md.
    @Test func helpOfGetHasEveryOptionInItsGroup() async throws {
        let groups: KeyValuePairs<String, [String]> = [
            "OUTPUT:": [
                "-o, --output", "-d, --directory", "--if-exists", "--no-sync", "--no-preallocate", "--save-cookies",
            ],
            "SEVERAL DOWNLOADS:": ["-i, --input-file", "-j, --concurrency", "--limit-rate-total"],
            "SPEED:": ["-x, --connections", "--limit-rate ", "--sequential"],
            "VERIFICATION:": [
                "--checksum", "--max-size", "--ignore-server-checksums", "--accept-html", "--if-changed",
                "--unsafe-resume",
            ],
            "REQUEST:": [
                "-H, --header", "--user ", "--user-file", "--bearer-file", "--netrc ", "--netrc-file", "--cookies",
            ],
            "CONNECTION:": [
                "--proxy", "--cacert", "--insecure", "--http1", "--connect-timeout", "--max-redirects",
                "--allow-downgrade",
            ],
            "RETRIES:": ["--max-tries", "--retry-wait", "--retry-on", "--stall-timeout"],
            "MESSAGES:": ["-q, --quiet", "-v, --verbose", "--json", "--progress"],
        ]
        let result = try await CommandRun.run(["get", "--help"])
        #expect(result.status == 0)
        var rest = result.text[...]
        for (title, options) in groups {
            let start = try #require(rest.range(of: "\n\(title)\n"), "no group \(title)")
            rest = rest[start.upperBound...]
            let group = rest.prefix(upTo: rest.range(of: "\n\n")?.lowerBound ?? rest.endIndex)
            for option in options { #expect(group.contains("  " + option), "\(option) is not in \(title)") }
        }
        let tooLong = result.text.split(separator: "\n").filter { $0.count > 80 }
        #expect(tooLong == [])
    }

    @Test func theReferenceHasEveryOption() async throws {
        let help = try await CommandRun.run(["get", "--help"]).text
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/command-line.md"), encoding: .utf8)
        for match in help.matches(of: /\n  (?:-\w, )?(--[a-z0-9-]+)/) {
            #expect(page.contains("`\(match.1)"), "docs/command-line.md does not tell of \(match.1)")
        }
    }

    @Test(arguments: [
        (["get"], "Give a URL"),
        (["get", "--no-such-option", "http://a.test/"], "--no-such-option"),
        (["nonsense"], "nonsense"),
        (["get", "ftp://a.test/"], "http:// or https://"),
        (["get", "http://a.test/\r\nX: y"], "line break"),
        (["get", "http://a.test:99999/"], "port"),
        (["get", "-x", "0", "http://a.test/"], "--connections"),
        (["get", "-x", "129", "http://a.test/"], "--connections"),
        (["get", "-j", "0", "http://a.test/"], "--concurrency"),
        (["get", "--limit-rate", "fast", "http://a.test/"], "--limit-rate"),
        (["get", "--limit-rate", "0", "http://a.test/"], "--limit-rate"),
        (["get", "--limit-rate-total", "-1", "http://a.test/"], "--limit-rate-total"),
        (["get", "--checksum", "sha256:abc", "http://a.test/"], "--checksum"),
        (["get", "-H", "No colon", "http://a.test/"], "--header"),
        (["get", "-H", "A: b\r\nC: d", "http://a.test/"], "--header"),
        (["get", "-H", "Content-Length: 1", "http://a.test/"], "--header"),
        (["get", "--user", "nameonly", "http://a.test/"], "--user"),
        (["get", "--cacert", "/dev/null/none", "http://a.test/"], "--cacert"),
        (["get", "--cacert", "/bin/true", "http://a.test/"], "contains no PEM certificate"),
        (["get", "--proxy", "gopher://p", "http://a.test/"], "--proxy"),
        (["get", "--proxy", "http://u:p@:1", "http://a.test/"], "--proxy: the proxy URL has no host name"),
        (["get", "--proxy", "http://u:p@q@h:1", "http://a.test/"], "%40"),
        (["get", "--if-exists", "ask", "http://a.test/"], "skip, fail, overwrite, rename, update"),
        (["get", "--if-changed", "ask", "http://a.test/"], "restart, fail"),
        (["get", "--connect-timeout", "0", "http://a.test/"], "--connect-timeout"),
        (["get", "--connect-timeout", "inf", "http://a.test/"], "--connect-timeout"),
        (["get", "-o", "a", "http://a.test/", "http://b.test/"], "exactly one URL"),
        (["get", "-o", "a", "-i", "-", "http://a.test/"], "exactly one URL"),
        (["get", "-o", "a/", "http://a.test/"], "does not name a file"),
        (["get", "-o", "-", "--json", "http://a.test/"], "standard output"),
        (["get", "-i", "/dev/null/none"], "/dev/null/none"),
        (["get", "-i", "/usr"], "tow: cannot read URLs from /usr: Is a directory"),
        (["get", "-i", "/proc/self/mem"], "tow: cannot read URLs from /proc/self/mem: Input/output error"),
        (
            ["get", "--checksum", "crc32c:00000000", "--checksum", "crc32c:00000001", "http://a.test/"],
            "two different checksums"
        ),
        (["probe", "non sense"], "http:// or https://"), (["probe", "me@host"], "http:// or https://"),
        (["status"], "file"), (["list", "--only", ","], "--only: "), (["list", "--order", "colour"], "--order: "),
        (["add", "--max-wait", "5", "http://a.test/"], "--max-wait needs --max-tries"),
    ])
    func aCommandLineThatMakesNoSenseExitsWith2(_ arguments: [String], _ expected: String) async throws {
        let result = try await CommandRun.run(arguments)
        #expect(result.status == 2)
        #expect(result.stderr.contains(expected), "\(result.stderr)")
        #expect(result.text == "")
    }

    @Test func noMessageShowsASecret() async throws {
        for arguments in [
            ["get", "http://name:canary@a.test:99999/"], ["get", "--user", "canary", "http://a.test/"],
            ["get", "-H", "Authorization: canary\u{1}", "http://a.test/"],
            ["get", "-b", "a=canary\u{1}", "http://a.test/"],
            ["get", "-U", "name:canary", "http://a.test/"], ["get", "-x", "http://name:canary@p:1", "http://a.test/"],
            ["get", "--proxy", "gopher://name:canary@p", "http://a.test/"],
            ["get", "--proxy", "http://name:canary@p:port", "http://a.test/"],
            ["get", "--proxy", "http://name:can@canary@p:1", "http://a.test/"],
            ["get", "--proxy", "http://name:can#canary@p:1", "http://a.test/"],
        ] {
            let result = try await CommandRun.run(arguments)
            #expect(result.status == 2)
            #expect(!result.stderr.contains("canary"), "\(result.stderr)")
        }
    }

    @Test func aSecretFromAFileIsReadOnce() async throws {
        // A pipe delivers its text once: a second reader would wait or find no text.
        let result = try await CommandRun.run(["get", "--user-file", "/dev/stdin", "ftp://a.test/"], input: "a:b\n")
        #expect(result.status == 2)
        #expect(!result.stderr.contains("user-file"))
    }
}
