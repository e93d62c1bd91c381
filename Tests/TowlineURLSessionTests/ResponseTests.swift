import Foundation
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineURLSession

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The reading of response heads, by value.
@Suite struct ResponseShapeTests {
    private func shape(
        _ fields: [String: String], status: Int = 200, scheme: HTTPURL.Scheme = .http
    ) throws -> ResponseShape {
        let url = try #require(URL(string: "\(scheme.rawValue)://example.org/"))
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
        return try ResponseShape(response, scheme: scheme, latency: .zero)
    }

    private func kind(_ fields: [String: String], status: Int = 200) throws -> TransportFailure.Kind? {
        do {
            _ = try shape(fields, status: status)
            return nil
        } catch let failure as TransportFailure {
            return failure.kind
        }
    }

    @Test func theEndOfTheBody() throws {
        #expect(try shape(["Content-Length": "5"]).framing == .delimited)
        #expect(try shape(["Content-Length": "5"]).length == 5)
        #expect(try shape(["Transfer-Encoding": "chunked", "Content-Length": "5"]).length == nil)
        #expect(try shape(["Transfer-Encoding": "chunked"]).framing == .delimited)
        #expect(try shape([:], status: 204).framing == .delimited)
        #expect(try shape([:]).framing == .closed)
        #expect(try shape(["Transfer-Encoding": "identity"]).framing == .closed)
        // Without a length, nothing shows that a response over TLS is complete.
        #expect(try shape([:], scheme: .https).framing == .unclosed)
    }

    @Test func headsThatAreRefused() throws {
        #expect(try kind(["Content-Length": "5, 6"]) == .malformed)
        #expect(try kind(["Content-Length": "-1"]) == .malformed)
        #expect(try kind(["Transfer-Encoding": "odd"]) == .malformed)
        #expect(try kind(["Content-Encoding": "gzip"]) == .malformed)
        #expect(try kind(["Content-Encoding": "gzip"], status: 404) == nil)
        #expect(try kind(["Content-Encoding": "Identity"]) == nil)
        #expect(try kind([:], status: 407) == .proxyUnauthorized)
        #expect(try kind(["X-Long": String(repeating: "x", count: 301 << 10)]) == .headTooLarge)
        let many = (0...5000).map { ("X-\($0)", "y") }
        #expect(try kind(Dictionary(uniqueKeysWithValues: many)) == .headTooLarge)
    }
}

/// The events that a session may report, without a session.
@Suite struct AttemptEventTests {
    private static func attempt(_ receiver: RecordingReceiver) -> DataTaskAttempt {
        DataTaskAttempt(.make("http://example.org/"), receiver: receiver) {}
    }

    private static func head(_ fields: [String: String]) throws -> HTTPURLResponse {
        let url = try #require(URL(string: "http://example.org/"))
        return try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
    }

    @Test func aShortBodyThatTheSessionCallsCompleteFails() async throws {
        let receiver = RecordingReceiver()
        let attempt = Self.attempt(receiver)
        attempt.received(try Self.head(["Content-Length": "100"]))
        attempt.received(Data("half".utf8))
        attempt.completed(nil, nil)
        let record = await receiver.finished()
        expectInOrder(receiver)
        #expect(record.end?.failureKind == .bodyCut && record.body == Array("half".utf8))
    }

    @Test func theEndOfAPausedResponseWaits() async throws {
        let receiver = RecordingReceiver(onHead: { _ in .pause })
        let attempt = Self.attempt(receiver)
        attempt.received(try Self.head(["Content-Length": "0"]))
        attempt.completed(nil, nil)
        await receiver.until { !$0.heads.isEmpty }
        #expect(receiver.record.end == nil)
        attempt.proceed()
        #expect(await receiver.finished().end?.framing == .delimited)
        expectInOrder(receiver)
    }

    @Test func aSecondResponseFails() async throws {
        let receiver = RecordingReceiver()
        let attempt = Self.attempt(receiver)
        for _ in 0..<2 { attempt.received(try Self.head(["Content-Length": "8"])) }
        let record = await receiver.finished()
        expectInOrder(receiver)
        #expect(record.end?.failureKind == .other && record.heads.count == 1)
    }

    @Test func nothingFollowsACancellation() async throws {
        let receiver = RecordingReceiver()
        let attempt = Self.attempt(receiver)
        attempt.received(try Self.head(["Content-Length": "8"]))
        attempt.received(Data("half".utf8))
        attempt.cancel()
        attempt.received(Data("rest".utf8))
        attempt.completed(nil, nil)
        let record = await receiver.finished()
        #expect(record.end?.isCancelled == true && record.body == Array("half".utf8))
        expectInOrder(receiver)
    }
}

extension URLSessionTransportTests {
    /// Responses, and the limits of what the receiver learns about them.
    @Suite struct ResponseTests {
        @Test func aBodyOfTheWrongLengthFails() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            }
            let record = await run(.make(server.url()))
            #expect(record.end?.failureKind == .bodyCut && record.body == Array("half".utf8))
            server.close()
        }

        @Test func aRedirectIsAResponse() async {
            let server = ScriptedServer(responses: { _ in
                response("moved", status: "302 Found", fields: "Location: /other\r\n")
            })
            let record = await run(.make(server.url()))
            #expect(record.heads.map(\.status) == [302] && record.end?.framing == .delimited)
            #expect(record.heads.first?.fields.firstValue(named: "Location") == "/other")
            #expect(server.requestHeads.count == 1)
            server.close()
        }

        @Test(arguments: ["", "Location: http://[/\r\n"]) func aRedirectToNowhereIsAResponse(_ field: String) async {
            let server = ScriptedServer(responses: { _ in response("moved", status: "302 Found", fields: field) })
            let record = await run(.make(server.url()))
            #expect(record.heads.map(\.status) == [302])
            #expect(server.requestHeads.count == 1)
            server.close()
        }

        @Test func interimResponsesAreNotPassedOn() async {
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            for (count, kind) in [(3, nil), (30, TransportFailure.Kind.headTooLarge)] {
                let text = String(repeating: interim, count: count) + response("x")
                let server = ScriptedServer(responses: { _ in text })
                let record = await run(.make(server.url()))
                #expect(record.end?.failureKind == kind)
                #expect(record.heads.map(\.status) == (kind == nil ? [200] : []))
                server.close()
            }
        }

        /// Fields with one name are one field, joined by commas. Names and order are those of the session.
        @Test func fieldsWithOneNameAreJoined() async {
            let fields = "X-One: a\r\nETag: \"t\"\r\nX-One: b\r\n"
            let server = ScriptedServer(responses: { _ in response("x", fields: fields) })
            let record = await run(.make(server.url()))
            let head = record.heads.first
            #expect(head?.fields.values(named: "X-One") == ["a, b"])
            #expect(head?.fields.firstValue(named: "ETag") == "\"t\"" && head?.version == .http1_1)
            server.close()
        }
    }
}
