import Glibc
import Synchronization
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine
import TowlineThreads

extension CurlTransportTests {
    /// Tests the thread on which small files and the work after them run.
    @Suite struct BriefAnswerTests {
        @Test("Enough attempts that may be brief use a second thread, others never", arguments: [true, false])
        func spread(mayBeSmall: Bool) async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let trace = ThreadTrace()
            let receivers = (0..<12).map { _ in
                RecordingReceiver(onHead: { _ in
                    trace.note()
                    // The pauses last until all attempts have begun.
                    return .pause
                })
            }
            let requests = receivers.map { _ in AttemptRequest.make(server.url(), mayBeSmall: mayBeSmall) }
            for (request, receiver) in zip(requests, receivers) { transport.start(request, receiver: receiver) }
            for receiver in receivers { await receiver.until { !$0.heads.isEmpty } }
            for request in requests { transport.proceed(request.id) }
            for receiver in receivers { #expect(await receiver.finished().body == Array("body".utf8)) }
            await transport.shutdown()
            let counts = Dictionary(grouping: trace.threads) { $0 }.values.map(\.count).sorted()
            #expect(counts == (mayBeSmall ? [6, 6] : [12]))
        }

        @Test("No more connections than attempts that ran at one time", arguments: 0..<4)
        func connections(_ stride: Int) async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            var running: [(id: AttemptID, receiver: RecordingReceiver)] = []
            var most = 0
            for count in [5, 4, 5, 3, 6, 12, 3, 9, 12, 2, 16, 7, 11, 16] {
                while running.count > count {
                    // The oldest, the newest or one from the middle: they belong to one thread or to both.
                    let last = running.count - 1
                    let (id, receiver) = running.remove(at: [0, last, last / 2, min(3, last)][stride])
                    transport.proceed(id)
                    #expect(await receiver.finished().body == Array("body".utf8))
                }
                while running.count < count {
                    let receiver = RecordingReceiver(onHead: { _ in .pause })
                    let request = AttemptRequest.make(server.url(), mayBeSmall: true)
                    transport.start(request, receiver: receiver)
                    await receiver.until { !$0.heads.isEmpty }
                    running.append((request.id, receiver))
                }
                most = max(most, count)
                #expect(server.connectionCount == most, "with \(count)")
            }
            await transport.shutdown()
        }

        /// Runs a task with three requests. Returns the threads of the heads, and those of the task after each
        /// response.
        private static func threads(
            _ disposition: HeadDisposition, mayBeSmall: Bool = true
        ) async -> (heads: [UInt], task: [UInt]) {
            let server = ScriptedServer(responses: { _ in
                // A response that arrives before the task waits for it does not move the task to another thread.
                usleep(50_000)
                return response("body")
            })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let executor = await ThreadExecutor.served()
            let (heads, places) = (ThreadTrace(), ThreadTrace())
            let url = server.url()
            await Task(executorPreference: executor) {
                for _ in 0..<3 {
                    let receiver = RecordingReceiver(onHead: { _ in
                        heads.note()
                        return disposition
                    })
                    transport.start(.make(url, mayBeSmall: mayBeSmall), receiver: receiver)
                    // The wait is inlined: a function with the test's own executor would move the task.
                    await receiver.until { $0.end != nil }
                    places.note()
                }
            }.value
            await transport.shutdown()
            return (heads.threads, places.threads)
        }

        @Test("After a brief answer the task continues on the thread of the answer, the next request included")
        func stays() async {
            let seen = await Self.threads(.proceedBriefly(within: .seconds(20)))
            #expect(seen.task == seen.heads && Set(seen.heads).count == 1, "\(seen)")
        }

        @Test("After another answer it does not: the answer's thread has bytes to process")
        func leaves() async {
            let seen = await Self.threads(.proceed)
            #expect(Set(seen.task).isDisjoint(with: seen.heads), "\(seen)")
        }

        @Test("A brief answer that ends too late is like any other")
        func late() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo")
                // The response takes longer than a brief answer may take.
                usleep(200_000)
                connection.send("dy")
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            let executor = await ThreadExecutor.served()
            let (heads, places) = (ThreadTrace(), ThreadTrace())
            let url = server.url()
            await Task(executorPreference: executor) {
                let receiver = RecordingReceiver(onHead: { _ in
                    heads.note()
                    return .proceedBriefly(within: .milliseconds(10))
                })
                transport.start(.make(url, mayBeSmall: true), receiver: receiver)
                await receiver.until { $0.end != nil }
                places.note()
                #expect(receiver.record.lateCount == 1)
            }.value
            await transport.shutdown()
            #expect(Set(places.threads).isDisjoint(with: heads.threads))
        }

        @Test("A brief answer that its receiver paused is like any other, and is not reported as late")
        func paused() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo")
                // The response takes longer than a brief answer may take.
                usleep(200_000)
                connection.send("dy")
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            let executor = await ThreadExecutor.served()
            let (heads, places) = (ThreadTrace(), ThreadTrace())
            let request = AttemptRequest.make(server.url(), mayBeSmall: true)
            await Task(executorPreference: executor) {
                let receiver = RecordingReceiver(
                    onHead: { _ in
                        heads.note()
                        return .proceedBriefly(within: .milliseconds(100))
                    }, onBody: { _, record in record.pauseCount == 0 ? .pause : .consumed })
                transport.start(request, receiver: receiver)
                await receiver.until { $0.pauseCount == 1 }
                transport.proceed(request.id)
                let record = await receiver.until { $0.end != nil }
                places.note()
                #expect(record.body == Array("body".utf8) && record.lateCount == 0)
            }.value
            await transport.shutdown()
            #expect(Set(places.threads).isDisjoint(with: heads.threads))
        }

        @Test("A wait for a brief answer ends when the transport ends")
        func shutdownUnderWay() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo")
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let executor = await ThreadExecutor.served()
            let receiver = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .seconds(20)) })
            let task = Task(executorPreference: executor) {
                transport.start(.make(server.url(), mayBeSmall: true), receiver: receiver)
                await receiver.until { $0.end != nil }
            }
            await receiver.until { $0.bodyCallCount > 0 }
            await transport.shutdown()
            await task.value
            #expect(receiver.record.end?.isCancelled == true)
        }

        @Test("A task may shut down its transport on the transport's own thread")
        func shutdownFromATask() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let executor = await ThreadExecutor.served()
            let url = server.url()
            let isOver = await Task(executorPreference: executor) {
                let receiver = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .seconds(20)) })
                transport.start(.make(url, mayBeSmall: true), receiver: receiver)
                await receiver.until { $0.end != nil }
                // The task is on the engine thread here.
                await transport.shutdown()
                return true
            }.value
            #expect(isOver)
        }
    }
}
