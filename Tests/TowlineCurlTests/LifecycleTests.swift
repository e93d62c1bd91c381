import Foundation
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Threads, descriptors, shutdown, signals.
    @Suite struct LifecycleTests {
        private static func engineThreads() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").filter { task in
                let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
                return name?.hasPrefix("tow-curl-") == true
            }.count
        }

        @Test("Fifty transports leave no thread and no descriptor behind")
        func noLeak() async throws {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbody")
                connection.waitForPeer()
            }
            defer { server.close() }
            var before = 0
            for round in 0..<52 {
                let transport = CurlTransport(engineThreads: 2)
                // Six attempts are enough for a second thread.
                let receivers = (0..<6).map { _ in RecordingReceiver() }
                for receiver in receivers {
                    transport.start(.make(server.url(), mayBeSmall: true), receiver: receiver)
                }
                await receivers[0].until { $0.bodyCallCount > 0 }
                await transport.shutdown()
                for receiver in receivers {
                    #expect(receiver.record.end?.isCancelled == true)
                    expectInOrder(receiver)
                }
                while server.openConnectionCount > 0 { await Task.yield() }
                // Files that libcurl and OpenSSL open once for good are open after two rounds.
                if round == 1 { before = try openDescriptors() }
            }
            #expect(try openDescriptors() <= before)
            #expect(try Self.engineThreads() == 0)
        }

        @Test("A transport that was not shut down ends its thread")
        func dropped() async throws {
            do { _ = CurlTransport() }
            while try Self.engineThreads() > 0 { await Task.yield() }
        }

        @Test("After shutdown attempts end at once as cancelled; shutting down twice is no error")
        func afterShutdown() async {
            let transport = CurlTransport()
            async let first: Void = transport.shutdown()
            async let second: Void = transport.shutdown()
            _ = await (first, second)
            await transport.shutdown()
            let receiver = RecordingReceiver()
            transport.start(.make("http://127.0.0.1:1/"), receiver: receiver)
            #expect(receiver.record.end?.isCancelled == true)
        }

        @Test("An id in use is refused without harm to its attempt")
        func duplicateID() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport()
            let first = RecordingReceiver(onHead: { _ in .pause })
            let second = RecordingReceiver()
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: first)
            transport.start(request, receiver: second)
            #expect(await second.finished().end?.failureKind == .local)
            await first.until { !$0.heads.isEmpty }
            transport.proceed(request.id)
            #expect(await first.finished().body == Array("body".utf8))
            await transport.shutdown()
        }

        @Test("Idle connections are reused, by attempts of equal settings only")
        func reuse() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport()
            let alice = ConnectionOptions.with { $0.user = "alice:a" }
            let bob = ConnectionOptions.with { $0.user = "bob:b" }
            for _ in 0..<3 {
                for options in [alice, bob] {
                    let request = AttemptRequest.make(server.url(), sendsCredentials: true, connection: options)
                    #expect(await run(request, on: transport).end?.framing == .delimited)
                }
            }
            #expect(server.connectionCount == 2)
            // Without credentials both are the same anonymous client, on a third connection.
            for options in [alice, bob] {
                _ = await run(.make(server.url(), connection: options), on: transport)
            }
            #expect(server.connectionCount == 3)
            #expect(server.requestHeads.filter { $0.contains("Authorization: Basic YWxpY2U6YQ==") }.count == 3)
            #expect(server.requestHeads.filter { $0.contains("Authorization: Basic Ym9iOmI=") }.count == 3)
            #expect(server.requestHeads.suffix(2).allSatisfy { !$0.contains("Authorization") })
            await transport.shutdown()
        }

        @Test(
            "Bytes after a body cost the connection, and neither a response nor an attempt",
            arguments: [
                "\r\n", "\n\n\n", "garbage", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
            ], [true, false])
        func strayBytes(_ stray: String, isLate: Bool) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(response("first"))
                // On the connection before the next request, or instead of the response to it.
                if isLate { _ = server.head(from: connection) }
                connection.send(stray)
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            for number in 1...3 {
                let record = await run(.make(server.url()), on: transport)
                #expect(record.body == Array("first".utf8))
                #expect(record.end?.framing == .delimited, "request \(number): \(describe(record.end))")
            }
            await transport.shutdown()
        }

        @Test("A response that arrives before the request is not the response to it")
        func strayResponse() async {
            let (sent, continuation) = AsyncStream.makeStream(of: Void.self)
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(response("right"))
                if connection.index == 0 {
                    server.waitForTest()
                    connection.send(response("wrong"))
                    continuation.yield()
                }
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            #expect(await run(.make(server.url()), on: transport).body == Array("right".utf8))
            server.proceed()
            for await _ in sent { break }
            #expect(await run(.make(server.url()), on: transport).body == Array("right".utf8))
            #expect(server.connectionCount == 2 && server.requestHeads.count == 2)
            await transport.shutdown()
        }

        @Test("A response that is malformed on a fresh connection too is a failure")
        func malformedTwice() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                if connection.index == 0 { connection.send(response("body")) }
                if connection.index == 0 { _ = server.head(from: connection) }
                connection.send("nonsense\r\n\r\n")
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            #expect(await run(.make(server.url()), on: transport).end?.framing == .delimited)
            #expect(await run(.make(server.url()), on: transport).end?.failureKind == .malformed)
            #expect(server.connectionCount == 2 && server.requestHeads.count == 3)
            await transport.shutdown()
        }

        @Test("A connection that the server closed while it was idle is replaced unnoticed")
        func staleConnection() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(response("body"))
            }
            defer { server.close() }
            let transport = CurlTransport()
            for _ in 0..<5 { #expect(await run(.make(server.url()), on: transport).end?.framing == .delimited) }
            await transport.shutdown()
        }
    }
}
