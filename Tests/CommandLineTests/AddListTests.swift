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
}
