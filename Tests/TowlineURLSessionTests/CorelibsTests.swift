#if canImport(FoundationNetworking)
    import FaultServer
    import Foundation
    import FoundationNetworking
    import Synchronization
    import Testing
    import TowlineCore
    import TowlineEngine
    import TowlineURLSession

    extension URLSessionTransportTests {
        /// The behaviour of `URLSession` in swift-corelibs-foundation that differs from Apple's. Each test fails if the
        /// behaviour changes; the transport may then do without a special case.
        @Suite struct CorelibsTests {
            /// A resumed task sends its request again and delivers a second response. `ReceiveWindow` therefore
            /// suspends no task.
            @Test func suspendingATaskRepeatsItsRequest() async throws {
                let server = ScriptedServer { connection, server in
                    guard server.head(from: connection) != nil else { return }
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
                    if connection.index == 0 { connection.waitForPeer() } else { connection.send("rest") }
                }
                let delegate = CountingDelegate()
                let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
                let task = session.dataTask(with: try #require(URL(string: server.url())))
                task.resume()
                await delegate.wait { $0.body == "half" }
                task.suspend()
                task.resume()
                await delegate.wait { $0.isComplete }
                #expect(server.requestHeads.count == 2)
                #expect(delegate.state.responseCount == 2 && delegate.state.body == "halfhalfrest")
                session.finishTasksAndInvalidate()
                server.close()
            }

            /// A paused response that can be resumed is cut: the bytes before the cut arrive, and memory is bounded.
            @Test func aPausedPartIsCut() async throws {
                // A faster server may send everything before the cancellation of the task is carried out.
                let server = try await FaultServer.start(["/file": Resource(length: 400_000_000, rate: 40_000_000)])
                let request = AttemptRequest.make(server.url("/file"), [("Range", "bytes=0-")])
                let transport = URLSessionTransport()
                let body = CheckedBody()
                let receiver = RecordingReceiver(
                    keepsBody: false, onHead: { _ in .pause }, onBody: { bytes, _ in body.take(bytes) })
                transport.start(request, receiver: receiver)
                await server.log.wait { $0.requests("/file").first?.ended != nil }
                #expect(receiver.record.bodyCallCount == 0 && receiver.record.end == nil)
                transport.proceed(request.id)
                let record = await receiver.finished()
                expectInOrder(receiver)
                #expect(record.end?.failureKind == .bodyCut)
                #expect((16 << 20..<17 << 20).contains(body.count) && body.isRight)
                #expect(server.log.bodyBytesServed("/file") < 100_000_000)
                await transport.shutdown()
                await server.stop()
            }

            /// A paused response that cannot be resumed is kept in memory, without a limit.
            @Test func aPausedFileIsKeptInMemory() async throws {
                let length: Int64 = 60_000_000
                let server = try await FaultServer.start(["/file": Resource(length: length)])
                let request = AttemptRequest.make(server.url("/file"))
                let transport = URLSessionTransport()
                let body = CheckedBody()
                let receiver = RecordingReceiver(
                    keepsBody: false, onHead: { _ in .pause }, onBody: { bytes, _ in body.take(bytes) })
                transport.start(request, receiver: receiver)
                await server.log.wait { $0.requests("/file").first?.ended != nil }
                #expect(server.log.bodyBytesServed("/file") == length && receiver.record.bodyCallCount == 0)
                transport.proceed(request.id)
                let record = await receiver.finished()
                #expect(record.end?.framing == .delimited && body.count == length && body.isRight)
                await transport.shutdown()
                await server.stop()
            }

            /// The session decodes a body although the request does not allow a coding.
            @Test func codedBodiesAreDecoded() async throws {
                let coded: [UInt8] = [
                    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 215, 81, 72, 206, 79, 73, 77, 81, 40, 207,
                    47, 202, 73, 1, 0, 223, 232, 128, 150, 18, 0, 0, 0,
                ]
                let server = ScriptedServer { connection, server in
                    guard server.head(from: connection) != nil else { return }
                    let length = "Content-Length: \(coded.count)\r\n"
                    connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\(length)\r\n")
                    connection.send(coded)
                }
                var plain = URLRequest(url: try #require(URL(string: server.url())))
                plain.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
                let (data, _) = try await URLSession(configuration: .ephemeral).data(for: plain)
                #expect(String(decoding: data, as: UTF8.self) == "hello, coded world")
                #expect(server.requestHeads.first?.contains("Accept-Encoding: identity\r\n") == true)
                // The transport therefore refuses the response.
                let record = await run(.make(server.url(), [("Accept-Encoding", "identity")]))
                #expect(record.end?.failureKind == .malformed && record.heads.isEmpty && record.body.isEmpty)
                server.close()
            }

            /// The response of a redirect arrives after its body, which the session keeps in memory.
            @Test func aRedirectArrivesAfterItsBody() async {
                let server = ScriptedServer { connection, server in
                    guard server.head(from: connection) != nil else { return }
                    connection.send("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 8\r\n\r\nhalf")
                    connection.waitForPeer()
                }
                let options = ConnectionOptions.with { $0.headTimeout = .milliseconds(300) }
                let record = await run(.make(server.url(), connection: options))
                #expect(record.end?.failureKind == .headTimedOut && record.heads.isEmpty)
                server.close()
            }

            /// The parser of the session refuses lines that libcurl and browsers skip.
            @Test(arguments: ["no colon", "X Y: z", "X-Bytes: \u{e9}"]) func invalidFieldLinesAreRefused(
                _ line: String
            ) async {
                let server = ScriptedServer { connection, server in
                    guard server.head(from: connection) != nil else { return }
                    let text = "HTTP/1.1 200 OK\r\n\(line)\r\nContent-Length: 1\r\n\r\nx"
                    // Latin-1, which is not valid UTF-8.
                    connection.send(text.unicodeScalars.map { UInt8($0.value) })
                }
                let record = await run(.make(server.url()))
                #expect(record.end?.failureKind == .malformed, "\(String(describing: record.end))")
                server.close()
            }

            /// The libcurl of the system limits a head, not the session.
            @Test(arguments: [Fault.endlessHead, .endlessFieldLine]) func anEndlessHeadIsRefused(
                _ fault: Fault
            ) async throws {
                let resource = Resource(length: 10, behaviour: .always(fault))
                let server = try await FaultServer.start(["/file": resource])
                let record = await run(.make(server.url("/file")))
                #expect(record.end?.failureKind == .headTooLarge)
                await server.stop()
            }

            /// A close in the middle of a head terminates the process.
            @Test func aCutHeadTerminatesTheProcess() async {
                let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    let server = ScriptedServer { connection, server in
                        _ = server.head(from: connection)
                        connection.send("HTTP/1.1 200 OK\r\nContent-Le")
                    }
                    _ = await run(.make(server.url()))
                }
                let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
                #expect(text.contains("there's no response"), "\(text)")
            }

            /// A field after the last chunk terminates the process.
            @Test func aTrailerTerminatesTheProcess() async {
                let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                    let server = ScriptedServer { connection, server in
                        _ = server.head(from: connection)
                        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
                        connection.send("1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n")
                        connection.waitForPeer()
                    }
                    _ = await run(.make(server.url()))
                }
                let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
                #expect(text.contains("there's no response"), "\(text)")
            }
        }
    }

    /// Compares a body with the content of the server, without keeping the body.
    private final class CheckedBody: Sendable {
        private let state = Mutex((count: Int64(0), isRight: true))

        var count: Int64 { state.withLock { $0.count } }
        var isRight: Bool { state.withLock { $0.isRight } }

        func take(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
            state.withLock { state in
                let mismatch = FaultContent(seed: 1).firstMismatch(in: Array(bytes), at: state.count)
                if mismatch != nil { state.isRight = false }
                state.count += Int64(bytes.count)
            }
            return .consumed
        }
    }

    /// Counts the events that a session reports about one task.
    private final class CountingDelegate: NSObject, URLSessionDataDelegate {
        struct State {
            var responseCount = 0
            var body = ""
            var isComplete = false
        }

        private let events = AsyncStream.makeStream(of: Void.self)
        private let mutex = Mutex(State())

        var state: State { mutex.withLock { $0 } }

        /// Waits until the state fulfils `condition`.
        func wait(_ condition: (State) -> Bool) async {
            if condition(state) { return }
            for await _ in events.stream where condition(state) { return }
        }

        private func change(_ change: (inout State) -> Void) {
            mutex.withLock { change(&$0) }
            events.continuation.yield()
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            change { $0.responseCount += 1 }
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            change { $0.body += String(decoding: data, as: UTF8.self) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            change { $0.isComplete = true }
        }
    }
#endif
