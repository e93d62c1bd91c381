import Testing
import TowlineCore

@testable import TowlineEngine

/// A mirror over http is not trusted for a file that is requested over https.
struct MirrorTrustTests {
    private static let sha256 = "sha256:" + String(repeating: "ab", count: 32)

    @Test(
        arguments: [
            ("https", ["http"], nil, false, false), ("https", ["https", "http"], nil, false, false),
            ("https", ["http"], "crc32c:01020304", false, false), ("https", ["http"], sha256, false, true),
            ("https", ["http"], nil, true, true), ("https", ["https"], nil, false, true),
            ("http", ["http", "https"], nil, false, true), ("https", [], nil, false, true),
        ] as [(String, [String], String?, Bool, Bool)])
    func table(
        _ scheme: String, _ mirrors: [String], _ checksum: String?, _ allows: Bool, _ isAccepted: Bool
    ) throws {
        let url = try HTTPURL(parsing: scheme + "://a.test/f?secret=1")
        var options = DownloadOptions(url: url, target: .file(directory: "/", name: nil))
        options.mirrors = try mirrors.map { try HTTPURL(parsing: $0 + "://b.test/f?secret=1") }
        options.checksum = try checksum.map { try Checksum(parsing: $0) }
        options.allowsDowngrade = allows
        guard !isAccepted else { return try options.checkMirrors() }
        let error = #expect(throws: TowlineError.self) { try options.checkMirrors() }
        #expect(error?.code == .unusableOption)
        #expect(error?.message.contains("http://b.test/f") == true && error?.message.contains("secret=1") == false)
    }
}
