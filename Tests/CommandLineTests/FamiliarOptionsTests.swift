import FaultServer
import Foundation
import Testing
import TowlineCore

@testable import tow

/// Options of curl, wget and aria2, and commands that a browser copied for curl.
struct FamiliarOptionsTests {
    private static let url = "http://a.test/f.bin"

    private func translated(_ words: [String]) throws -> [String] { try FamiliarOptions(translating: words[...]).words }

    private static let accepted: [([String], [String])] = [
        (["-L", "-O", "-J", "--compressed", "--location", "--remote-name", url], [url]),
        (["-fsSLO", url], ["-q", url]),
        (["-sSLo", "x", url], ["-q", "-o", "x", url]),
        (["-c", url], [url]),
        (["-c", "a.test/f.bin"], ["a.test/f.bin"]),
        (["-O", "a.test/f.bin"], ["a.test/f.bin"]),
        (["--continue=true", "-C", "-", url], [url]),
        (["-qO-", url], ["-q", "-o", "-", url]),
        (["-O", "-", url], ["-o", "-", url]),
        (["-X", "GET", "--request=get", "--method", "GET", url], [url]),
        (["-A", "B/1 (x)", url], ["--header", "User-Agent: B/1 (x)", url]),
        (["--user-agent=B/1", url], ["--header", "User-Agent: B/1", url]),
        (["-e", url + ";auto", url], ["--header", "Referer: " + url, url]),
        (["--referer=" + url, url], ["--header", "Referer: " + url, url]),
        (["-b", "a=1", "--cookie", "b=2", url], [url, "--header", "Cookie: a=1; b=2"]),
        (["-b", "jar.txt", "--load-cookies=old.txt", url], ["--cookies", "jar.txt", "--cookies", "old.txt", url]),
        (["-P", "d", "--directory-prefix=e", url], ["-d", "d", "--directory", "e", url]),
        (["--no-check-certificate", "-u", "n:p", url], ["--insecure", "--user", "n:p", url]),
        (["-x4", "-j", "2", "-d", "-q", url], ["-x", "4", "-j", "2", "-d", "-q", url]),
        (["--ignore-content-length", "--ignore-length", url], ["--ignore-length", "--ignore-length", url]),
        (["--url", url, "--http1.1", "-nc"], [url, "--http1", "--if-exists", "skip"]),
        (["-N", url], ["--if-exists", "update", url]),
        (["--conditional-get=true", url], ["--if-exists", "update", url]),
        (["--checksum", "-L", "--mirror", "-O", url], ["--checksum", "-L", "--mirror", "-O", url]),
        (
            ["-x=4", "--connections=4", "-b", "a=1", "--", "-L"],
            [
                "-x=4", "--connections=4", "--header", "Cookie: a=1", "--", "-L",
            ]
        ),
        (["-y", "--nonsense", url], ["-y", "--nonsense", url]),
    ]

    @Test(arguments: accepted)
    func anOptionWithTheSameMeaningIsAccepted(_ words: [String], _ expected: [String]) throws {
        #expect(try translated(words) == expected)
    }

    /// The headers that browsers copy along and that would change which bytes the server sends.
    @Test(arguments: [
        "Range: bytes=0-", "If-None-Match: \"a\"", "if-modified-since: x", "IF-RANGE: x", "Accept-Encoding: gzip, br",
        "Connection: keep-alive", "TE: trailers", "Host: A.test", "Host: a.test:80",
    ])
    func aHeaderOfTheBrowsersOwnRequestIsLeftOut(_ field: String) throws {
        #expect(try translated(["-H", field, Self.url]) == [Self.url])
        #expect(try translated(["--header=" + field, Self.url]) == [Self.url])
    }

    @Test func otherHeadersStay() throws {
        for field in ["Priority: u=0, i", "Host: b.test", "Content-Length: 3", "Cookie: a=1"] {
            #expect(try translated(["-H", field, Self.url]) == ["--header", field, Self.url])
        }
        #expect(try translated(["-H", "X-Empty;", Self.url]) == ["--header", "X-Empty:", Self.url])
    }

    @Test func aPartThatIsNotSentIsMentioned() throws {
        #expect(try FamiliarOptions(translating: ["-H", "Range: bytes=0-", Self.url]).notices.isEmpty)
        #expect(try FamiliarOptions(translating: ["-H", "Range: bytes=5-9", Self.url]).notices.count == 1)
    }

    private static let answered: [([String], String)] = [
        (["-X", "POST", url], "GET requests only"), (["--method=PUT", url], "GET requests only"),
        (["-X", "HEAD", url], "tow probe"), (["-I", url], "tow probe"), (["--spider", url], "tow probe"),
        (["--data-raw", "a=1", url], "without a body"), (["--post-data=a=1", url], "without a body"),
        (["-F", "a=1", url], "without a body"), (["-O", "x.iso", url], "use -o FILE"),
        (["-Ox.iso", url], "use -o FILE"),
        (["-c", "jar", url], "--save-cookies"), (["-s", "4", url], "use -x N"), (["-b", url], "tow add"),
        (["-e", "robots=off", url], "in wget"), (["-i", url], "tow probe"), (["-C", "100", url], "always resumes"),
        (["-z", "f", url], "--if-exists update"), (["--etag-compare", "t", url], "--if-exists update"),
        (["-x", "http://p:1", url], "--proxy"), (["-A"], "needs a value"),
        (["-k", url], "use --insecure"), (["-k", "1M", url], "use --insecure"), (["-k1M", url], "use --insecure"),
        (["-k=1M", url], "use --insecure"), (["-kL", url], "use --insecure"), (["-sSLk", url], "use --insecure"),
    ]

    @Test(arguments: answered)
    func anOptionWithAnotherMeaningNamesOurs(_ words: [String], _ expected: String) {
        let error = #expect(throws: TowlineError.self) { try FamiliarOptions(translating: words[...]) }
        #expect(error?.code == .unusableOption)
        #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
    }

    /// Edge copies a continued video with its range and condition; Insomnia writes long options.
    @Test(arguments: [
        ["URL", "-H", "If-Range: \"other\"", "-H", "Range: bytes=1000-", "--compressed", "--insecure", "-b", "sid=1"],
        ["--request", "GET", "--url", "URL", "--cookie", "sid=1"],
        ["--location", "--globoff", "URL", "--header", "Cookie: sid=1", "--header", "If-None-Match: *"],
    ])
    func aCopiedCommandDownloadsTheFile(_ words: [String]) async throws {
        let length: Int64 = 300_000
        let server = try await FaultServer.start(["/report.bin": Resource(length: length, seed: 3)])
        let place = try TestDirectory()
        let url = server.url("/report.bin")
        let result = try await CommandRun.run(["get"] + words.map { $0 == "URL" ? url : $0 }, directory: place.url)
        #expect(result.status == 0, "\(result.stderr)")
        #expect(try FaultContent(seed: 3).firstMismatch(inFile: place.path("report.bin"), length: length) == nil)
        let requests = server.log.requests
        #expect(!requests.isEmpty)
        #expect(requests.allSatisfy { $0.info.field("Cookie") == "sid=1" && $0.info.field("If-None-Match") == nil })
        await server.stop()
    }
}
