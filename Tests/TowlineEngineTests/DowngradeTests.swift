import Testing
import TowlineCore

@testable import TowlineEngine

/// Bytes that came over http are not trusted for a download over https.
struct DowngradeTests {
    @Test(arguments: [
        ("https", "http://a.test/f", true), ("https", "https://a.test/f", false), ("http", "http://a.test/f", false),
        ("http", "https://a.test/f", false),
    ])
    func table(_ scheme: String, _ source: String, _ isDowngrade: Bool) throws {
        let url = try HTTPURL(parsing: scheme + "://b.test/f")
        let options = DownloadOptions(url: url, target: .file(directory: "/", name: nil))
        #expect(options.isDowngrade(from: source) == isDowngrade)
    }
}
