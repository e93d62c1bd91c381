import FaultServer
import Foundation
import Testing
import TestServers
import TowlineCore
import TowlineCurl
import TowlineEngine

@Suite("Webhooks", .timeLimit(.minutes(2)))
struct WebhookTests {
    private static let message = WebhookMessage(
        event: "finished", id: "d-1", name: "a \"b\".iso", path: "/d/a \"b\".iso", bytes: 12,
        checksum: Checksum(algorithm: .md5, value: [UInt8](repeating: 0xAB, count: 16)), time: 784_111_777)

    /// Reads request after request, body included, and answers each with the next head, and at the end with the last
    /// one.
    private static func server(_ answers: String...) -> ScriptedServer {
        ScriptedServer { connection, server in
            while let head = server.head(from: connection) {
                let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
                    .flatMap { Int($0.dropFirst(16)) }
                let body = connection.read(length ?? 0)
                let turn = server.requestHeads.count - 1
                guard body == Array(message.json.utf8) else { return }
                connection.send(answers[min(turn, answers.count - 1)])
            }
        }
    }

    private static let done = "HTTP/1.1 204 No Content\r\n\r\n"

    private func send(
        to server: ScriptedServer, tries: Int = 4, timeout: Duration = .seconds(10),
        _ change: (inout ConnectionOptions) -> Void = { _ in }
    ) async throws {
        var options = ConnectionOptions()
        change(&options)
        let retry = RetryPolicy(maxTries: tries, backoff: Backoff(base: .milliseconds(1)))
        let sender = WebhookSender(connection: options, retry: retry, timeout: timeout)
        try await sender.send(Self.message, to: try HTTPURL(parsing: server.url("/hook?a=b")))
    }

    private func status(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch let error as TowlineError where error.code == .webhookFailed {
            return error.status ?? 0
        } catch {
            Issue.record(error)
            return nil
        }
    }

    @Test("one POST with JSON and a key; a 2xx ends it")
    func success() async throws {
        let server = Self.server(Self.done)
        defer { server.close() }
        try await send(to: server)
        let heads = server.requestHeads
        #expect(heads.count == 1)
        #expect(heads[0].hasPrefix("POST /hook?a=b HTTP/1.1\r\n"))
        #expect(heads[0].contains("\r\nContent-Type: application/json\r\n"))
        #expect(heads[0].contains("\r\nIdempotency-Key: \"d-1-finished-784111777\"\r\n"))
    }

    @Test("the JSON, character by character")
    func json() {
        #expect(
            Self.message.json == """
                {"event":"finished","id":"d-1","name":"a \\"b\\".iso","path":"/d/a \\"b\\".iso","bytes":12,\
                "checksum":"md5:abababababababababababababababab","time":"1994-11-06T08:49:37Z"}
                """)
        var awkward = Self.message
        awkward.name = "\u{0}\n\u{2028}\\é🙂"
        awkward.checksum = nil
        #expect(awkward.json.contains("\"name\":\"\\u0000\\n\\u2028\\\\é🙂\""))
        #expect(awkward.json.contains("\"checksum\":null"))
        awkward.id = "a\r\n\"b"
        #expect(awkward.idempotencyKey == "\"a%0d%0a%22b-finished-784111777\"")
    }

    @Test("a transient failure is retried with the same key", arguments: [408, 425, 429, 500, 502, 503, 504, 599])
    func transient(code: Int) async throws {
        let busy = "HTTP/1.1 \(code) No\r\nContent-Length: 2\r\n\r\nno"
        let server = Self.server(busy, busy, Self.done)
        defer { server.close() }
        try await send(to: server)
        #expect(server.requestHeads.count == 3)
        let keys = server.requestHeads.map { $0.split(separator: "\r\n").first { $0.hasPrefix("Idempotency-Key") } }
        #expect(Set(keys).count == 1)
    }

    @Test("permanent failures and redirects are final", arguments: [301, 302, 307, 308, 400, 401, 403, 404, 410, 422])
    func permanent(code: Int) async throws {
        let server = Self.server("HTTP/1.1 \(code) No\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
        defer { server.close() }
        #expect(await status { try await send(to: server) } == code)
        #expect(server.requestHeads.count == 1)
    }

    @Test("the number of tries is limited, and the error has the last status")
    func exhausted() async throws {
        let server = Self.server("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
        defer { server.close() }
        #expect(await status { try await send(to: server, tries: 3) } == 503)
        #expect(server.requestHeads.count == 3)
    }

    @Test("Retry-After is obeyed")
    func retryAfter() async throws {
        let server = Self.server("HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", Self.done)
        defer { server.close() }
        let start = ContinuousClock.now
        try await send(to: server)
        #expect(ContinuousClock.now - start >= .seconds(1))
    }

    @Test("a connection that breaks before the answer is retried; one that breaks in its body is an answer")
    func broken() async throws {
        let server = ScriptedServer { connection, server in
            _ = server.head(from: connection)
            _ = connection.read(Self.message.json.utf8.count)
            switch server.requestHeads.count {
            case 1: connection.resetOnClose()
            case 2: connection.send("HTTP/1.1 200 OK\r\nContent-")
            case 3: connection.send("HTTP/1.1 103 Early\r\n\r\n")
            default: connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            }
        }
        defer { server.close() }
        try await send(to: server, tries: 8)
        #expect(server.requestHeads.count == 4)
    }

    @Test("an endless answer is not read completely")
    func endlessBody() async throws {
        let server = ScriptedServer { connection, server in
            _ = server.head(from: connection)
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            while connection.send([UInt8](repeating: 0x20, count: 1 << 16)) {}
            server.proceed()
        }
        defer { server.close() }
        try await send(to: server)
        server.waitForTest()
        #expect(server.requestHeads.count == 1)
    }

    @Test("a silent server costs the timeout, and an unreachable one a try")
    func silent() async throws {
        let server = ScriptedServer { connection, server in
            _ = server.head(from: connection)
            connection.waitForPeer()
        }
        #expect(await status { try await send(to: server, tries: 2, timeout: .milliseconds(200)) } == 0)
        #expect(server.connectionCount == 2)
        server.close()
        #expect(await status { try await send(to: server, tries: 2) } == 0)
    }

    @Test("a cancelled task stops waiting, for the answer and between tries")
    func cancelled() async throws {
        let server = ScriptedServer { connection, server in
            _ = server.head(from: connection)
            server.proceed()
            connection.waitForPeer()
        }
        defer { server.close() }
        let waiting = Task { try await send(to: server) }
        await Task.detached { server.waitForTest() }.value
        waiting.cancel()
        await #expect { try await waiting.value } throws: { ($0 as? TowlineError)?.code == .cancelled }
        #expect(server.connectionCount == 1)
    }

    @Test("a server with an untrusted certificate gets no request; one that the options trust does")
    func untrusted() async throws {
        let folder = try TemporaryFolder()
        let certificates = try Certificates(in: folder)
        var options = ServerOptions()
        options.tls = .init(certificateChain: folder.path + "/good.pem", privateKey: folder.path + "/good.key")
        let server = try await FaultServer.start(["/hook": Resource(length: 1)], options: options)
        let url = try HTTPURL(parsing: server.url("/hook"))
        let single = RetryPolicy(maxTries: 3, backoff: Backoff(base: .milliseconds(1)))
        #expect(await status { try await WebhookSender(retry: single).send(Self.message, to: url) } == 0)
        #expect(server.log.requests("/hook").isEmpty)
        var connection = ConnectionOptions()
        connection.certificateAuthorityFile = certificates.authority
        let sender = WebhookSender(connection: connection, retry: single)
        #expect(await status { try await sender.send(Self.message, to: url) } == 405)
        #expect(server.log.requests("/hook").first?.info.method == "POST")
        await server.stop()
    }
}
