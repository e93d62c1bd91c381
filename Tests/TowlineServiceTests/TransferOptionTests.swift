import FaultServer
import Foundation
import Testing
import Towline
import TowlineWire

@testable import TowlineService

/// Tests of the options of a transfer in the API, by their effect on the requests that a server receives.
@Suite struct TransferOptionTests {
    private static let version = Version(seed: 8, length: 2_000_000)

    private func site(_ behaviour: Behaviour = .correct) async throws -> ServiceSite {
        try await ServiceSite(["/a.bin": Resource(Self.version, behaviour: behaviour)])
    }

    @Test func aSequentialDownloadHasOneRequest() async throws {
        let site = try await ServiceSite(["/a.bin": Resource(Self.version)], rate: 1_500_000)
        let id = try await site.add("/a.bin", ["connections": 4, "sequential": true])
        try await site.wait(id, for: .finished)
        #expect(site.server.log.requests.count == 1)
        try await site.stop()
    }

    /// The server plays the proxy: it receives the complete URL of another host.
    @Test func aProxyIsUsed() async throws {
        let site = try await site()
        let body = [
            "url": "http://elsewhere.invalid/a.bin", "proxy": site.server.url("").replacing("//", with: "//u:p@"),
        ]
        let added = try await site.ask("POST", "/downloads", body)
        let list = added.object["downloads"] as? [[String: Any]]
        try await site.wait(try #require(list?.first?["id"] as? String), for: .finished)
        let request = try #require(site.server.log.requests.first)
        #expect(request.info.target == "http://elsewhere.invalid/a.bin")
        #expect(request.info.field("Proxy-Authorization") == "Basic dTpw")
        try await site.stop()
    }

    /// A proxy could reach the addresses that such a client must not reach.
    @Test func aClientThatMayNotUsePrivateAddressesMayNotNameAProxy() async throws {
        let site = try await ServiceSite { $0.privateAddresses = .nobody }
        let body: [String: Any] = ["url": "http://elsewhere.invalid/a.bin", "startsPaused": true]
        let refused = try await site.ask("POST", "/downloads", body.merging(["proxy": site.server.url("")]) { $1 })
        #expect(refused.status == 400)
        #expect((refused.object["detail"] as? String)?.hasPrefix("proxy: not allowed") == true, "\(refused.object)")
        #expect(try await site.ask("POST", "/downloads", body.merging(["proxy": ""]) { $1 }).status == 201)
        #expect(site.server.log.connections.isEmpty)
        try await site.stop()
    }

    @Test func cookiesGoToTheirHost() async throws {
        let site = try await site(.always(.cookieRequired("id=1")))
        let cookies = ["127.0.0.1\tFALSE\t/\tFALSE\t0\tid\t1", "other.test\tFALSE\t/\tFALSE\t0\tother\t2"]
        let id = try await site.add("/a.bin", ["cookies": cookies.joined(separator: "\n") + "\n"])
        try await site.wait(id, for: .finished)
        #expect(site.server.log.requests.allSatisfy { $0.info.field("Cookie") == "id=1" })
        try await site.stop()
    }

    @Test func aStatusIsRetried() async throws {
        let site = try await site(.first(3, .notFound))
        let id = try await site.add("/a.bin", ["retryStatuses": [404], "retryWait": 0.01])
        try await site.wait(id, for: .finished)
        try await site.stop()
    }

    /// The default wait is at most 1.25 seconds, and waits vary by 25 %.
    @Test func theFirstRetryWaits() async throws {
        let site = try await site(.first(1, .status(429)))
        let id = try await site.add("/a.bin", ["retryWait": 2])
        try await site.wait(id, for: .finished)
        let requests = site.server.log.requests
        #expect(requests[1].time - requests[0].time >= .seconds(1.5))
        try await site.stop()
    }

    @Test func aLongPauseFails() async throws {
        let site = try await site(.always(.retryAfter("100")))
        let id = try await site.add("/a.bin", ["maximumWait": 1, "maximumTries": 3])
        try await site.wait(id, for: .failed)
        #expect(site.server.log.requests.count == 1)
        try await site.stop()
    }

    @Test(arguments: [(2, DownloadState.failed), (3, .finished)])
    func redirectsAreLimited(_ limit: Int, _ end: DownloadState) async throws {
        let site = try await site(.always(.redirectChain(hops: 3)))
        let id = try await site.add("/a.bin", ["maximumRedirects": limit])
        try await site.wait(id, for: end)
        #expect(site.server.log.requests.count >= limit + 1)
        try await site.stop()
    }

    @Test func aMirrorWithoutTLSCanBeAllowed() async throws {
        let site = try await site()
        let body: [String: Any] = [
            "url": "https://127.0.0.1:9/f", "mirrors": ["http://127.0.0.1:9/f"], "startsPaused": true,
        ]
        #expect(try await site.ask("POST", "/downloads", body).status == 400)
        #expect(try await site.ask("POST", "/downloads", body.merging(["allowDowngrade": true]) { $1 }).status == 201)
        try await site.stop()
    }

    @Test func everyFieldReachesTheRequest() throws {
        var wire = Wire.NewDownload(url: "http://a.test/f")
        (wire.options.isSequential, wire.options.usesHTTP1Only, wire.options.allowsDowngrade) = (true, true, true)
        (wire.cookies, wire.proxy) = ("c", "p")
        (wire.options.retryWait, wire.options.maximumWait) = (.seconds(1), .seconds(2))
        (wire.options.retryStatuses, wire.options.maximumRedirects) = ([404], 3)
        let folder = FileManager.default.temporaryDirectory
        let request = try DownloadRequest(wire, roots: try DownloadRoots([folder]))
        #expect(request.isSequential && request.usesHTTP1Only && request.allowsDowngrade)
        #expect(request.cookies == "c" && request.proxy == "p")
        #expect(request.retryWait == .seconds(1) && request.maximumWait == .seconds(2))
        #expect(request.retryStatuses == [404] && request.maximumRedirects == 3)
    }

    private static let invalid: [(String, any Sendable, String)] = [
        ("proxy", "ftp://c4nary@h/", "proxy URL"), ("cookies", "c4nary=1", "cookies: line 1"),
        ("retryWait", 0, "retryWait: "), ("retryWait", 86_401, "retryWait: invalid value, expected 0.001 to 86400"),
        ("maximumWait", 5, "maximumWait: needs maximumTries"), ("retryStatuses", [404, 200], "retryStatuses: "),
        ("maximumRedirects", 101, "maximumRedirects: invalid value, expected 0 to 100"),
        ("maximumTries", -1, "maximumTries: "), ("maximumSize", -1, "maximumSize: "),
        ("stallTimeout", 0.5, "stallTimeout: invalid value, expected 1 to 86400"),
        ("netrc", true, "netrc"), ("cookieFile", "/etc/passwd", "cookieFile"),
    ]

    @Test func invalidValuesAreRefusedWithTheirNames() async throws {
        let site = try await site()
        for (name, value, message) in Self.invalid {
            let answer = try await site.ask("POST", "/downloads", ["url": "http://127.0.0.1:9/f", name: value])
            let detail = answer.object["detail"] as? String ?? ""
            #expect(answer.status == 400 && detail.contains(message), "\(name): \(detail)")
            #expect(!detail.contains("c4nary"))
        }
        #expect(try await site.ask("GET", "/downloads").object["downloads"] as? [[String: String]] == [])
        try await site.stop()
    }
}
