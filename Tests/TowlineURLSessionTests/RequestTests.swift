import FaultServer
import Foundation
import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineURLSession

extension URLSessionTransportTests {
    /// The requests of the transport, and the requests that `URLSession` cannot honour.
    @Suite struct RequestTests {
        private static let unsupported: [@Sendable (inout ConnectionOptions) -> Void] = [
            { $0.publicAddressesOnly = true }, { $0.certificateAuthorityFile = "/etc/ssl/ca.pem" },
            { $0.clientCertificate = .init(file: "/tmp/client.pem") }, { $0.allowsInsecure = true },
            { $0.proxy = "http://127.0.0.1:3128" }, { $0.netrc = .userFile }, { $0.cookieFile = "/tmp/cookies.txt" },
            { $0.fixedAddresses = [.init(host: "example.org", port: 80, addresses: ["127.0.0.1"])] },
            { $0.addressFamily = .ipv6 }, { $0.httpProtocol = .http1 }, { $0.ignoresLength = true },
        ]

        @Test(arguments: unsupported.indices) func anUnsupportedOptionSendsNoRequest(_ index: Int) async {
            let server = ScriptedServer(responses: { _ in response("x") })
            var options = ConnectionOptions()
            Self.unsupported[index](&options)
            let record = await run(.make(server.url(), connection: options))
            #expect(record.end?.failureKind == .unsupported)
            #expect(record.end?.failureMessage?.contains("URLSession") == true)
            #expect(server.connectionCount == 0)
            server.close()
        }

        #if canImport(FoundationNetworking)
            @Test func theProxyOfTheEnvironmentCannotBeBypassed() {
                let options = ConnectionOptions.with { $0.proxy = "" }
                let failure = UnsupportedOptions.failure(of: options, environment: ["https_proxy": "http://p:1"])
                #expect(failure?.kind == .unsupported && failure?.message.contains("https_proxy") == true)
                #expect(UnsupportedOptions.failure(of: options, environment: [:]) == nil)
                #expect(UnsupportedOptions.failure(of: .init(), environment: ["https_proxy": "http://p:1"]) == nil)
            }
        #endif

        @Test(arguments: ["a\r\nX-Other: b", "a\u{0}b", "\u{10FFE9}"]) func aFieldThatCannotBeSentEndsTheAttempt(
            _ value: String
        ) async {
            let server = ScriptedServer(responses: { _ in response("x") })
            let record = await run(.make(server.url(), [("X-Own", value)]))
            #expect(record.end?.failureKind == .local && server.connectionCount == 0)
            server.close()
        }

        @Test func fieldsAreSentUnchanged() async throws {
            let server = ScriptedServer(responses: { _ in response("x") })
            let fields = [
                ("Range", "bytes=5-"), ("If-Range", "\"a,b\""), ("Accept-Encoding", "identity"), ("Accept", "*/*"),
                ("User-Agent", "tow/1"), ("X-Name", "värde"),
            ]
            let record = await run(.make(server.url("/a%20b/%C3%A4?x=1&y=[2]"), fields))
            #expect(record.end?.framing == .delimited)
            let lines = try #require(server.requestHeads.first).components(separatedBy: "\r\n")
            #expect(lines[0].hasPrefix("GET /a%20b/%C3%A4?x=1&y="))
            for (name, value) in fields { #expect(lines.filter { $0 == "\(name): \(value)" }.count == 1, "\(lines)") }
            server.close()
        }

        @Test func credentialsAreSentOnlyIfAllowed() async throws {
            let server = ScriptedServer(responses: { _ in response("x") })
            let options = ConnectionOptions.with { $0.user = "name:päss" }
            _ = await run(.make(server.url(), connection: options))
            _ = await run(.make(server.url(), sendsCredentials: true, connection: options))
            let heads = server.requestHeads
            try #require(heads.count == 2)
            let expected = Data("name:päss".utf8).base64EncodedString()
            #expect(!heads[0].contains("Authorization"))
            #expect(heads[1].contains("Authorization: Basic \(expected)\r\n"))
            server.close()
        }

        @Test(arguments: ["Basic realm=\"r\"", "Digest realm=\"r\", nonce=\"n\"", "Bearer"])
        func aRefusalForCredentialsIsAResponse(_ challenge: String) async {
            let server = ScriptedServer(responses: { _ in
                response("no", status: "401 Unauthorized", fields: "WWW-Authenticate: \(challenge)\r\n")
            })
            let record = await run(.make(server.url()))
            #expect(record.heads.map(\.status) == [401] && record.end?.framing == .delimited)
            #expect(record.heads.first?.fields.firstValue(named: "WWW-Authenticate") == challenge)
            #expect(server.requestHeads.count == 1)
            server.close()
        }

        @Test func nothingIsStored() async {
            let fields = "Set-Cookie: a=b\r\nCache-Control: max-age=1000\r\nETag: \"e\"\r\nDate: \(Self.date)\r\n"
            let server = ScriptedServer(responses: { _ in response("x", fields: fields) })
            let transport = URLSessionTransport()
            for _ in 0..<3 {
                let receiver = RecordingReceiver()
                transport.start(.make(server.url()), receiver: receiver)
                _ = await receiver.finished()
            }
            await transport.shutdown()
            #expect(server.requestHeads.count == 3)
            #expect(server.requestHeads.allSatisfy { !$0.contains("Cookie") && !$0.contains("If-None-Match") })
            server.close()
        }

        private static var date: String {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(identifier: "GMT")
            formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            return formatter.string(from: Date())
        }

        @Test func failuresBeforeTheResponseHaveTheirKinds() async throws {
            let refused = await run(.make("http://127.0.0.1:\(Loopback.freePort())/"))
            #expect(refused.end?.failureKind == .connectFailed)
            let unknown = await run(.make("http://name.invalid/"))
            #expect(unknown.end?.failureKind == .hostNotFound)
            let scratch = try Scratch()
            let server = try await FaultServer.start(
                ["/file": Resource(length: 10)], options: try await scratch.makeTLS())
            let untrusted = await run(.make(server.url("/file")))
            #expect(untrusted.end?.failureKind == .certificateRefused)
            await server.stop()
        }

        @Test func afterShutdownNothingStarts() async {
            let server = ScriptedServer(responses: { _ in response("x") })
            let transport = URLSessionTransport()
            await transport.shutdown()
            let receiver = RecordingReceiver()
            transport.start(.make(server.url()), receiver: receiver)
            #expect(receiver.record.end?.isCancelled == true && server.connectionCount == 0)
            server.close()
        }
    }
}
