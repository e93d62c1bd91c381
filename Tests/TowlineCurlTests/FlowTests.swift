import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Pausing, stopping, cancelling.
    @Suite struct FlowTests {
        private static let long = String(repeating: "0123456789abcdef", count: 64 * 1024)

        private static func serveLong() -> ScriptedServer { ScriptedServer(responses: { _ in response(long) }) }

        @Test("A pause after the head holds the body back until proceed")
        func pauseAtHead() async {
            let server = Self.serveLong()
            defer { server.close() }
            let transport = CurlTransport()
            let receiver = RecordingReceiver(onHead: { _ in .pause })
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: receiver)
            await receiver.until { !$0.heads.isEmpty }
            // A second attempt runs from start to end in the meantime: the paused attempt blocks no other.
            let other = await run(.make(server.url()), on: transport)
            #expect(other.body.count == Self.long.utf8.count)
            #expect(receiver.record.bodyCallCount == 0)
            transport.proceed(request.id)
            let record = await receiver.finished()
            #expect(record.end?.framing == .delimited)
            #expect(record.body == Array(Self.long.utf8))
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("The receiver is notified once no more bytes are available, and not with each piece")
        func rests() async {
            let server = ScriptedServer { connection, server in
                guard server.head(from: connection) != nil else { return }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n")
                connection.send([UInt8](repeating: 7, count: 200_000))
                server.waitForTest()
                connection.send([UInt8](repeating: 7, count: 100_000))
            }
            defer { server.close() }
            let transport = CurlTransport()
            let receiver = RecordingReceiver()
            transport.start(.make(server.url()), receiver: receiver)
            let waiting = await receiver.until { $0.restedAt == 200_000 }
            #expect(waiting.restCount < waiting.bodyCallCount)
            server.proceed()
            #expect(await receiver.finished().body.count == 300_000)
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("A receiver that stops between bytes ends the attempt, also after a pause", arguments: [false, true])
        func stopsAtRest(_ isPaused: Bool) async {
            let server = ScriptedServer { connection, server in
                guard server.head(from: connection) != nil else { return }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n")
                connection.send([UInt8](repeating: 7, count: 50_000))
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            let receiver = RecordingReceiver(
                onBody: { _, record in isPaused && record.pauseCount == 0 ? .pause : .consumed },
                onRest: { $0.body.isEmpty })
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: receiver)
            if isPaused {
                await receiver.until { $0.pauseCount == 1 }
                transport.proceed(request.id)
            }
            let record = await receiver.finished()
            #expect(record.end?.isStopped == true && !record.body.isEmpty)
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("pauseFor waits for the delay and costs no byte")
        func pauseFor() async {
            let server = ScriptedServer(responses: { _ in response("some body") })
            defer { server.close() }
            let start = ContinuousClock.now
            let receiver = RecordingReceiver(onBody: { _, record in
                record.pauseCount < 3 ? .pauseFor(.milliseconds(100)) : .consumed
            })
            let record = await run(.make(server.url()), receiver)
            #expect(record.body == Array("some body".utf8))
            #expect(start.duration(to: .now) >= .milliseconds(300))
            #expect(record.bodyCallCount == 4)
        }

        @Test(
            "A body that does not end in the expected time is reported, once; a body that does is not",
            .timeLimit(.minutes(1)))
        func proceedBriefly() async {
            let quick = ScriptedServer(responses: { _ in response("some body") })
            defer { quick.close() }
            let inTime = await run(
                .make(quick.url()), RecordingReceiver(onHead: { _ in .proceedBriefly(within: .seconds(30)) }))
            #expect(inTime.lateCount == 0 && inTime.body == Array("some body".utf8))

            // A pause that the receiver asked for does not make the end late.
            let receiver = RecordingReceiver(
                onHead: { _ in .proceedBriefly(within: .milliseconds(50)) },
                onBody: { _, record in
                    if record.lateCount == 0, record.bodyCallCount > 1 { return .consumed }
                    return record.pauseCount == 0 ? .pauseFor(.milliseconds(200)) : .consumed
                })
            let paused = await run(.make(quick.url()), receiver)
            #expect(paused.lateCount == 0 && paused.body == Array("some body".utf8))

            let slow = ScriptedServer(responses: { _ in
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"
            })
            defer { slow.close() }
            let transport = CurlTransport()
            let request = AttemptRequest.make(slow.url())
            let waiting = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .milliseconds(50)) })
            transport.start(request, receiver: waiting)
            await waiting.until { $0.lateCount == 1 }
            // No second report may follow when the time of the deadline has passed again.
            try? await Task.sleep(for: .milliseconds(200))
            #expect(waiting.record.lateCount == 1 && waiting.record.body == Array("ab".utf8))
            transport.cancel(request.id)
            _ = await waiting.finished()
            await transport.shutdown()
            expectInOrder(waiting)
        }

        @Test("An empty response whose head was answered with a pause ends after proceed")
        func pauseAtEmptyResponse() async {
            let server = ScriptedServer(responses: { _ in response("") })
            defer { server.close() }
            let transport = CurlTransport()
            let request = AttemptRequest.make(server.url())
            let receiver = RecordingReceiver(onHead: { _ in .pause })
            transport.start(request, receiver: receiver)
            await receiver.until { !$0.heads.isEmpty }
            _ = await run(.make(server.url()), on: transport)
            #expect(receiver.record.end == nil)
            transport.proceed(request.id)
            #expect(await receiver.finished().end?.framing == .delimited)
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("stop ends as stopped, after a head, a body and a pause", arguments: ["head", "body", "afterPause"])
        func stop(at place: String) async {
            let server = Self.serveLong()
            defer { server.close() }
            let receiver = RecordingReceiver(
                onHead: { _ in place == "head" ? .stop : .proceed },
                onBody: { _, record in
                    if place == "body" { return .stop }
                    return record.pauseCount == 0 ? .pauseFor(.milliseconds(10)) : .stop
                })
            let record = await run(.make(server.url()), receiver)
            #expect(record.end?.isStopped == true)
            #expect(record.body.isEmpty)
        }

        @Test(
            "cancel ends as cancelled in every phase",
            arguments: ["connect", "handshake", "head", "body", "pause", "delay"])
        func cancel(in phase: String) async {
            let server = ScriptedServer { connection, server in
                if phase == "handshake" { return connection.waitForPeer() }
                _ = server.head(from: connection)
                server.proceed()
                if phase != "head" { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbody") }
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            let scheme = phase == "handshake" ? "https" : "http"
            let request = AttemptRequest.make("\(scheme)://127.0.0.1:\(server.port)/")
            let receiver = RecordingReceiver(onBody: { _, _ in
                switch phase {
                case "pause": .pause
                case "delay": .pauseFor(.seconds(60))
                default: .consumed
                }
            })
            transport.start(request, receiver: receiver)
            switch phase {
            case "connect": break
            case "handshake": while server.connectionCount == 0 { await Task.yield() }
            case "head": await Task.detached { server.waitForTest() }.value
            default: await receiver.until { $0.bodyCallCount > 0 }
            }
            transport.cancel(request.id)
            #expect(await receiver.finished().end?.isCancelled == true)
            // The id is unknown by now, which is not an error.
            transport.cancel(request.id)
            transport.proceed(request.id)
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("cancel does not wait for a name that is being resolved")
        func cancelWhileResolving() async {
            let transport = CurlTransport()
            let receivers = (0..<8).map { _ in RecordingReceiver() }
            for (index, receiver) in receivers.enumerated() {
                let request = AttemptRequest.make("http://no-such-host-\(index).invalid/")
                transport.start(request, receiver: receiver)
                transport.cancel(request.id)
            }
            // Without a name server the failure may come before the cancellation; `NamespaceTests` has a slow name
            // server.
            for receiver in receivers {
                let end = await receiver.finished().end
                #expect(end?.isCancelled == true || describe(end) == "hostNotFound", "\(describe(end))")
            }
            await transport.shutdown()
        }

        @Test("cancel from within a callback")
        func cancelInCallback() async {
            let server = Self.serveLong()
            defer { server.close() }
            let transport = CurlTransport()
            let request = AttemptRequest.make(server.url())
            let receiver = RecordingReceiver(onBody: { _, _ in
                transport.cancel(request.id)
                return .pause
            })
            transport.start(request, receiver: receiver)
            #expect(await receiver.finished().end?.isCancelled == true)
            await transport.shutdown()
            expectInOrder(receiver)
        }

        @Test("Every attempt ends exactly once under a storm of pauses, proceeds and cancels")
        func storm() async {
            let server = Self.serveLong()
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let attempts = (0..<200).map { index -> (AttemptRequest, RecordingReceiver) in
                let request = AttemptRequest.make(server.url(), mayBeSmall: index % 2 == 0)
                let receiver = RecordingReceiver(
                    keepsBody: false, onHead: { _ in index % 5 == 0 ? .pause : .proceed },
                    onBody: { _, record in
                        if index % 7 == 0, record.bodyCallCount == 3 { return .stop }
                        return index % 3 == 0 && record.pauseCount < 5 ? .pause : .consumed
                    })
                return (request, receiver)
            }
            for (request, receiver) in attempts { transport.start(request, receiver: receiver) }
            for (index, attempt) in attempts.enumerated() where index % 4 == 0 { transport.cancel(attempt.0.id) }
            while attempts.contains(where: { $0.1.record.end == nil }) {
                for (request, _) in attempts { transport.proceed(request.id) }
                await Task.yield()
            }
            await transport.shutdown()
            for (_, receiver) in attempts { expectInOrder(receiver) }
        }
    }
}
