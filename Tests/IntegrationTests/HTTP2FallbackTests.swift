import FaultServer
import Testing
import TowlineCore
import TowlineEngine

/// Catalogue row 50 over TLS: a server that cannot speak HTTP/2 is asked over HTTP/1.1.
@Suite(.enabled(if: Thoroughness.areThere("/usr/bin/openssl"))) struct HTTP2FallbackTests {
    private static let length: Int64 = 600_000

    /// A fault over HTTP/2 only.
    struct Broken: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let reply: @Sendable (RequestContext) -> Reply
    }

    /// Returns the head, without a length, and the first bytes of the body.
    private static func cut(_ context: RequestContext, _ end: Reply.Step) -> Reply {
        context.correct.head { $0.remove("Content-Length") }.body([
            .content(context.version.content, 0..<60_000), .pause(.milliseconds(100)), end,
        ])
    }

    static let faults: [Broken] = [
        Broken(testDescription: "reset before the head") { _ in Reply([.resetStream(code: 1)]) },
        Broken(testDescription: "reset without an error before the head") { _ in Reply([.resetStream(code: 0)]) },
        Broken(testDescription: "reset in the body") { cut($0, .resetStream(code: 2)) },
        Broken(testDescription: "reset without an error in the body") { cut($0, .resetStream(code: 0)) },
        Broken(testDescription: "refused") { _ in Reply([.resetStream(code: 7)]) },
        Broken(testDescription: "GOAWAY") { _ in Reply([.goAway(lastStream: 0, code: 2)]) },
        Broken(testDescription: "GOAWAY in the body, then silence") { context in
            cut(context, .goAway(lastStream: nil, code: 2)).then(.stall)
        },
        Broken(testDescription: "no frame") { _ in Reply([.raw(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))]) },
    ]

    @Test(arguments: faults) func row50TheFileComesOverHTTP1(_ fault: Broken) async throws {
        let folder = try Scratch()
        var options = try await folder.makeTLS()
        options.http2 = true
        let behaviour = Behaviour { $0.request.isHTTP2 ? fault.reply($0) : $0.correct }
        let resource = Resource(length: Self.length, behaviour: behaviour)
        try await Site.with(try await Site(resource, options: options)) { site in
            let outcome = try await site.download {
                $0.connection.certificateAuthorityFile = folder.file("chain.pem")
                $0.retryWait = .milliseconds(10)
            }
            try site.expectFile(outcome)
            // libcurl repeats a refused request itself.
            let tries = site.requests.filter(\.info.isHTTP2).count
            #expect(tries >= 1 && tries <= (fault.testDescription == "refused" ? 6 : 1), "\(tries)")
            #expect(site.requests.contains { !$0.info.isHTTP2 })
        }
    }
}
