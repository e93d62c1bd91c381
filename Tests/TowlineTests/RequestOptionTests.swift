import FaultServer
import Foundation
import TestServers
import Testing
import TowlineEngine

@testable import Towline

/// Tests of the options of a request: how they are stored, checked and used.
@Suite struct RequestOptionTests {
    private static let version = Version(seed: 61, length: 300_000)
    private static let cookie = "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb"

    private func request(_ change: (inout DownloadRequest) -> Void = { _ in }) -> DownloadRequest {
        var request = DownloadRequest(
            from: URL(fileURLWithPath: "/"), to: .file(URL(fileURLWithPath: "/srv/a.iso", isDirectory: false)))
        if let url = URL(string: "http://a.test/a.iso") { request.url = url }
        change(&request)
        return request
    }

    /// Options that were added later are missing in requests that an older version stored.
    @Test func aRequestOfAnOlderVersionIsRead() throws {
        let row = #"""
            {"acceptHTML":true,"connections":3,"unsafeResume":true,
            "destination":{"file":{"_0":"file:///srv/a.iso"}},"existing":"rename","followUps":[],
            "headers":[{"name":"A","value":"b"}],"isPublicOnly":true,"maximumTries":7,"metadata":{"k":"v"},
            "otherURLs":["http://b.test/a.iso"],"priority":2,"stallTimeout":12,"startsPaused":false,
            "url":"http://a.test/a.iso","user":"n:p"}
            """#
        let expected = request {
            ($0.allowsUnsafeResume, $0.acceptsWebPages, $0.publicAddressesOnly) = (true, true, true)
            ($0.connections, $0.maximumTries, $0.priority, $0.stallTimeout) = (3, 7, 2, .seconds(12))
            ($0.existing, $0.headers, $0.metadata, $0.user) = (.rename, [.init("A", "b")], ["k": "v"], "n:p")
            $0.mirrors = [URL(string: "http://b.test/a.iso")].compactMap(\.self)
        }
        #expect(try StoredRequest.decode(Array(row.utf8)) == expected)
    }

    @Test func storedOptionsAreReadAgain() throws {
        let complete = request {
            ($0.cookies, $0.proxy) = (Self.cookie, "http://n:p@proxy.test:1")
            ($0.retryWait, $0.maximumWait, $0.maximumTries, $0.maximumRedirects) = (.seconds(0.5), .seconds(60), 3, 0)
            ($0.retryStatuses, $0.isSequential, $0.usesHTTP1Only, $0.allowsDowngrade) = ([404, 403], true, true, true)
        }
        #expect(try StoredRequest.decode(try StoredRequest.encode(complete)) == complete)
        let options = try complete.options(known: nil)
        #expect(options.connection.proxy == "http://n:p@proxy.test:1" && options.connection.httpProtocol == .http1)
        #expect(options.connection.cookies.lines == [Self.cookie])
        #expect(options.retryWait == .milliseconds(500) && options.maximumWait == .seconds(60))
        #expect(options.maximumTries == 3 && options.maximumRedirects == 0 && options.retryStatuses == [403, 404])
        #expect(options.isSequential && options.allowsDowngrade)
    }

    private static let invalid: [(String, @Sendable (inout DownloadRequest) -> Void)] = [
        ("proxy URL", { $0.proxy = "ftp://SECRET@proxy.test/" }),
        ("proxy: ", { ($0.proxy, $0.publicAddressesOnly) = ("http://proxy.test", true) }),
        ("netrcFile: cannot read /a/b", { $0.netrcFile = URL(fileURLWithPath: "/a/b") }),
        ("cookies: line 2 ", { $0.cookies = cookie + "\nSECRET=1" }),
        ("cookies: line 1 ", { $0.cookies = "RELOAD" }),
        ("cookies: line 1 ", { $0.cookies = cookie + "\u{0}SECRET" }),
        ("retryWait: ", { $0.retryWait = .zero }), ("retryWait: ", { $0.retryWait = .seconds(86_401) }),
        ("maximumWait: ", { ($0.maximumWait, $0.maximumTries) = (.seconds(31_622_401), 1) }),
        ("maximumWait: needs maximumTries", { $0.maximumWait = .seconds(1) }),
        ("stallTimeout: ", { $0.stallTimeout = .milliseconds(999) }), ("rateLimit: ", { $0.rateLimit = -1 }),
        ("maximumRedirects: ", { $0.maximumRedirects = 101 }), ("maximumRedirects: ", { $0.maximumRedirects = -1 }),
        ("retryStatuses: ", { $0.retryStatuses = [404, 416] }), ("retryStatuses: ", { $0.retryStatuses = [200] }),
    ]

    @Test(arguments: invalid.indices) func anInvalidValueIsRefusedWithoutShowingSecrets(_ index: Int) {
        let error = #expect(throws: TowlineError.self) {
            try request(Self.invalid[index].1).options(known: nil)
        }
        #expect(error?.code == .unusableOption)
        #expect(error?.message.contains(Self.invalid[index].0) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("SECRET") == false)
    }

    @Test func noProxyIsAllowedWithPublicAddressesOnly() throws {
        let options = try request { ($0.proxy, $0.publicAddressesOnly) = ("", true) }.options(known: nil)
        #expect(options.connection.proxy?.isEmpty == true)
    }

    @Test func aNetrcFileSuppliesThePassword() async throws {
        let password = Fault.authorizationRequired("Basic \(Data("alice:secret".utf8).base64EncodedString())")
        let site = try await Site(["/file": Resource(Self.version, behaviour: .always(password))])
        let file = site.root.appendingPathComponent("netrc")
        try Data("machine 127.0.0.1 login alice password secret\n".utf8).write(to: file)
        let downloader = try await site.downloader()
        let refused = try await downloader.add(try site.request("/file"))
        let error = await #expect(throws: TowlineError.self) { _ = try await refused.file }
        #expect(error?.status == 401)
        let download = try await downloader.add(try site.request("/file") { $0.netrcFile = file })
        _ = try await download.file
        #expect(site.holds("file", Self.version))
        #expect(try await download.request.netrcFile == file, "it is no secret, and a refetch needs it")
        await downloader.close()
        await site.server.stop()
    }

    @Test(arguments: [("http://a.test/new", true), ("https://a.test/new", false), ("http://b.test/new", false)])
    func aLinkToAnotherServerGetsNoCookies(_ url: String, _ isKept: Bool) throws {
        var request = request { $0.cookies = Self.cookie }
        request.follow(RenewedLink(url: try #require(URL(string: url))))
        #expect((request.cookies != nil) == isKept)
    }

    @Test(arguments: [false, true]) func theHTTPVersionIsLimited(_ isLimited: Bool) async throws {
        let certificates = try Certificates(in: try TemporaryFolder())
        var options = ServerOptions()
        options.http2 = true
        options.tls = ServerOptions.TLS(
            certificateChain: certificates.folder.path + "/good.pem",
            privateKey: certificates.folder.path + "/good.key")
        let server = try await FaultServer.start(["/file": Resource(Self.version)], options: options)
        let site = try await Site([:])
        let downloader = try await site.downloader()
        var request = try site.request("/file") { $0.usesHTTP1Only = isLimited }
        request.url = try #require(URL(string: server.url("/file")))
        request.certificateAuthorities = URL(fileURLWithPath: certificates.authority)
        _ = try await downloader.add(request).file
        #expect(site.holds("file", Self.version))
        #expect(server.log.requests.allSatisfy { $0.info.isHTTP2 != isLimited })
        await downloader.close()
        await server.stop()
        await site.server.stop()
    }
}
