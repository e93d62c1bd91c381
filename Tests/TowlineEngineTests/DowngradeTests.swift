import Testing
import TowlineCore

@testable import TowlineEngine

/// Bytes that came over http are not trusted for a download over https.
struct DowngradeTests {
    private func options(_ scheme: String) throws -> DownloadOptions {
        let url = try HTTPURL(parsing: scheme + "://b.test/f")
        return DownloadOptions(url: url, target: .file(directory: "/", name: nil))
    }

    private func record(_ source: String, mayBePlain: Bool = false) -> DownloadRecord {
        DownloadRecord(
            source: source, resolved: source, name: "f", representation: Representation(), checksums: [], generation: 1,
            mayBePlain: mayBePlain)
    }

    @Test(arguments: [
        ("https", "http://a.test/f", true), ("https", "https://a.test/f", false), ("http", "http://a.test/f", false),
        ("http", "https://a.test/f", false),
    ])
    func table(_ scheme: String, _ source: String, _ isDowngrade: Bool) throws {
        #expect(try options(scheme).isDowngrade(from: record(source)) == isDowngrade)
    }

    /// Bytes from an http mirror, or after a redirect to http, are trusted only if this run may bring such bytes
    /// itself.
    @Test(arguments: [("https", false, true), ("https", true, false), ("http", false, false)])
    func bytesOfMirrors(_ scheme: String, _ allows: Bool, _ isDowngrade: Bool) throws {
        var options = try options(scheme)
        options.allowsDowngrade = allows
        #expect(options.isDowngrade(from: record("https://b.test/f", mayBePlain: true)) == isDowngrade)
    }

    @Test(arguments: [
        ("https", nil, false, false), ("https", "http://m.test/f", false, true),
        ("https", "https://m.test/f", false, false),
        ("https", nil, true, true), ("http", "http://m.test/f", true, false),
    ])
    func whichRunsMayBringPlainBytes(_ scheme: String, _ mirror: String?, _ allows: Bool, _ may: Bool) throws {
        var options = try options(scheme)
        options.mirrors = try mirror.map { [try HTTPURL(parsing: $0)] } ?? []
        options.allowsDowngrade = allows
        #expect(options.mayBringPlainBytes == may)
    }
}
