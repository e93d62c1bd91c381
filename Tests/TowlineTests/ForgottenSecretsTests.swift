import FaultServer
import Foundation
import Testing
import Towline

/// Secrets that only a transfer needs are removed after the transfer, because the list may stay for years.
@Suite struct ForgottenSecretsTests {
    private static let version = Version(seed: 52, length: 300_000)

    private func count(of word: String, in directory: URL) throws -> Int {
        try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .count { try Data(contentsOf: $0).range(of: Data(word.utf8)) != nil }
    }

    @Test func aFinishedDownloadKeepsNoSecrets() async throws {
        let site = try await Site(["/file": Resource(Self.version, rate: 1_000_000)])
        let downloader = try await site.downloader()
        var request = try site.request("/file?token=CANARY&x=1") {
            $0.headers = [.init("X-Key", "CANARY"), .init("Cookie", "a=CANARY")]
            $0.cookies = "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tCANARY"
            $0.mirrors = [$0.url]
            $0.startsPaused = true
        }
        var parts = try #require(URLComponents(url: request.url, resolvingAgainstBaseURL: false))
        (parts.user, parts.password) = ("me", "CANARY")
        request.url = try #require(parts.url)
        let download = try await downloader.add(request)
        let state = site.root.appendingPathComponent("state")
        #expect(try count(of: "CANARY", in: state) > 0, "an unfinished download needs them after a relaunch")
        try await download.resume()
        _ = try await download.file
        await downloader.close()
        #expect(try count(of: "CANARY", in: state) == 0)

        // The file is found with the remaining part of the URL.
        let later = try await site.downloader()
        let snapshot = try #require(try await later.page().downloads.first)
        #expect(snapshot.state == .finished && snapshot.source.hasSuffix("/file?token=&x=1"), "\(snapshot)")
        request.startsPaused = false
        let again = try await later.add(request)
        _ = try await again.file
        #expect(site.names == ["file"] && site.holds("file", Self.version))
        await later.close()
        await site.server.stop()
    }

    @Test func aFailedDownloadKeepsThemForTheNextTry() async throws {
        let site = try await Site(["/file": Resource(Self.version, behaviour: .first(2, .status(404)))])
        let downloader = try await site.downloader()
        let download = try await downloader.add(try site.request("/file") { $0.user = "me:secret" })
        try await download.reaches { $0.isOver }
        let state = site.root.appendingPathComponent("state")
        #expect(try count(of: "me:secret", in: state) > 0)
        try await download.retry()
        _ = try await download.file
        await downloader.close()
        await site.server.stop()
    }
}
