import Foundation
import Testing
import TowlineClient
import TowlineCore
import TowlineWire

@testable import tow

/// Tests lists of `tow add`, by value.
struct AddListTests {
    private static let sum = "sha256:" + String(repeating: "ab", count: 32)

    private func entry(_ url: String, _ options: [(String, String)]) -> BatchEntry {
        BatchEntry(
            url: url, number: 1,
            options: options.enumerated().map { index, option in
                BatchEntry.Line(name: option.0, value: option.1, number: index + 2)
            })
    }

    private func request(_ url: String, _ options: [(String, String)]) throws -> Wire.NewDownload {
        var model = Wire.NewDownload(url: "")
        model.directory = "top"
        var settings = DownloadSettings(options: TransferOptions())
        settings.options.rateLimit = 5
        return try AddList(model: model, settings: settings).request(for: entry(url, options), of: "list")
    }

    @Test func theOptionsOfEveryListAreAccepted() throws {
        let request = try request(
            "a.test/f",
            [
                ("output", "sub/.name"), ("directory", "films"), ("checksum", Self.sum), ("limit-rate", "2K"),
                ("mirror", "http://b.test/f"), ("mirror", "http://c.test/f"),
            ])
        #expect(request.url == "http://a.test/f")
        #expect(request.directory == "top/films/sub" && request.name == "name")
        #expect(request.options.checksum?.description == Self.sum && request.options.rateLimit == 2048)
        #expect(request.mirrors == ["http://b.test/f", "http://c.test/f"])
    }

    /// Every option of the groups that `tow add` shares with `tow get`, except files that `AddSecrets` reads.
    @Test(arguments: [
        (Setting.connections, "4"), (.mirror, "http://b.test/"), (.limitRate, "1K"), (.sequential, ""),
        (.checksum, sum), (.maxSize, "1K"), (.ignoreServerChecksums, ""), (.acceptHTML, ""), (.unsafeResume, ""),
        (.header, "A: b"), (.bearerFile, "/proc/self/comm"), (.user, "a:b"), (.proxy, "http://p"), (.noProxy, ""),
        (.http1, ""), (.maxRedirects, "0"), (.allowDowngrade, ""), (.maxTries, "20"), (.retryWait, "2"),
        (.retryOn, "404"), (.maxWait, "3600"), (.stallTimeout, "31"), (.ifExists, "skip"),
    ]) func everySharedOptionIsSent(_ setting: Setting, _ value: String) throws {
        var settings = DownloadSettings(options: TransferOptions())
        try settings.apply(setting, value)
        var request = Wire.NewDownload(url: "")
        request.take(settings)
        #expect(
            try ServiceClient.encode(request) != ServiceClient.encode(Wire.NewDownload(url: "")),
            "a default value of 'tow get' is sent too: towd has other defaults")
    }

    @Test func withoutOptionsTheCommandLineApplies() throws {
        let request = try request("http://a.test/f", [])
        #expect(request.directory == "top" && request.name == nil && request.options.rateLimit == 5)
    }

    @Test(arguments: [
        ("header", "X: y"), ("netrc", ""), ("nonsense", "1"), ("checksum", "md5:1"), ("output", "/etc/x"),
        ("output", "-"), ("directory", "../x"), ("limit-rate", "fast"), ("mirror", "ftp://a.test/f"), ("checksum", ""),
    ])
    func anInvalidOptionNamesItsLine(_ name: String, _ value: String) throws {
        let error = #expect(throws: TowlineError.self) { try request("http://a.test/f", [(name, value)]) }
        #expect(error?.message.hasPrefix("list, line 2: ") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("--list-options") == false)
    }

    @Test func anInvalidURLNamesItsLine() throws {
        let error = #expect(throws: TowlineError.self) { try request("ftp://a.test/f", []) }
        #expect(error?.message.hasPrefix("list, line 1: ") == true, "\(error?.message ?? "")")
    }

    private func list(_ text: String) throws -> (urls: [Wire.NewDownload], notices: [String]) {
        let place = try TestDirectory()
        try Data(text.utf8).write(to: place.file("list"))
        let settings = DownloadSettings(options: TransferOptions())
        let list = try AddList(model: Wire.NewDownload(url: ""), settings: settings).requests(in: place.path("list"))
        return (list.0, list.notices.map { $0.replacing(place.path("list"), with: "list") })
    }

    /// A list that `tow get -i` accepts is read without a look for links, which would cut these.
    @Test func aListOfURLsStaysAsItIs() throws {
        let urls = [
            "http://a.test/My File.zip", "http://a.test/a.zip,7", "http://a.test/a.zip**", "a.test/b", "hello",
            "http://a.test/中文", "http://a.test/web/2020/http://b.test/c", "http://a.test/x?a=&amp;b", "HTTP://A.TEST/",
        ]
        let read = try list("# a comment\n\n" + urls.map { $0 + "\n  limit-rate 2K\n" }.joined(separator: "\r\n"))
        #expect(read.urls.map(\.url) == urls.map { HTTPURL.withScheme($0) } && read.notices == [])
        #expect(read.urls.allSatisfy { $0.options.rateLimit == 2048 })
    }

    @Test(arguments: [
        ("film one,http://a.test/a.mkv,734\n", ["http://a.test/a.mkv"], []),
        (
            "url,name,size\nhttp://a.test/a.mkv,film one,734\nhttp://a.test/My File.zip\n",
            ["http://a.test/a.mkv", "http://a.test/My File.zip"], ["list, line 1: no link in 'url,name,size'"]
        ),
        ("http://a.test/a.zip,http://a.test/b.zip", ["http://a.test/a.zip", "http://a.test/b.zip"], []),
        (
            "Downloads\n- [a](http://a.test/a.zip), **http://a.test/b.zip**\n",
            ["http://a.test/a.zip", "http://a.test/b.zip"], ["list, line 1: no link in 'Downloads'"]
        ),
        ("[url]http://a.test/a.rar[/url]", ["http://a.test/a.rar"], []),
        (
            "[\n  \"http://a.test/a\",\n  {\"url\": \"http://a.test/b\"}\n]\n", ["http://a.test/a", "http://a.test/b"],
            ["list, line 1: no link in '['", "list, line 4: no link in ']'"]
        ),
        ("  http://a.test/a.zip\n", ["http://a.test/a.zip"], []),
        (
            "See http://a.test/a.zip\nmagnet:?xt=1\nor ftp://a.test/b there",
            ["http://a.test/a.zip"],
            [
                "list, line 2: no link in 'magnet:?xt=1'", "list, line 3: no link in 'or ftp://a.test/b there'",
                "list: links of these kinds are not supported: magnet, ftp",
            ]
        ),
        (
            "curl 'http://a.test/a.zip' \\\n  -H 'Referer: http://b.test/' \\\n  -b 'id=CANARY' \\\n  --compressed\n",
            ["http://a.test/a.zip"],
            [
                "list: the headers of the command are not sent: Referer, Cookie. To send a header, use -H 'NAME: VALUE'"
            ]
        ),
    ]) func linksAreFoundInText(_ text: String, _ links: [String], _ notices: [String]) throws {
        let read = try list(text)
        #expect(read.urls.map(\.url) == links)
        #expect(read.notices == notices)
        #expect(read.urls.allSatisfy { $0.headers == nil })
    }

    /// An option is never dropped, or used for another link.
    @Test(arguments: [
        ("http://a.test/a\nftp://a.test/b\n", "list, line 2: "),
        ("http://a.test/a\nhtp://a.test/b\n", "list, line 2: "),
        ("http://a.test/a\n  chekcsum=1\n", "list, line 2: "), ("http://a.test/a\noutput=b\n", "list, line 2: "),
        ("http://a.test/a\n  mirrors=http://b.test/a\n", "list, line 2: "),
        ("http://a.test/a\nsome text\n  output=b\n", "list, line 3: "),
        ("http://a.test/a.zip;http://a.test/b.zip\n  output=b\n", "list, line 2: "),
        ("see http://a.test/a.zip\n\n  limit-rate=fast\n", "list, line 3: limit-rate"),
    ]) func anErrorInAListRefusesIt(_ text: String, _ start: String) {
        let error = #expect(throws: TowlineError.self) { try list(text) }
        #expect(
            error?.message.replacing(#/\S*list, line/#, with: "list, line").hasPrefix(start) == true, "\(error as Any)")
    }

    @Test func manyLinesWithoutALinkAreCounted() throws {
        let read = try list("see http://a.test/a\n" + String(repeating: "\u{1B}[2J some text\n", count: 13))
        #expect(read.notices.count == 11 && read.notices.last == "list: no link in 3 other lines")
        #expect(!read.notices.joined().contains("\u{1B}"))
    }
}
