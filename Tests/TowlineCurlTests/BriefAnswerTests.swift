import Glibc
import Synchronization
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine
import TowlineThreads

extension CurlTransportTests {
    /// Which thread small files and what they lead to are done by.
    @Suite struct BriefAnswerTests {
        @Test("Enough attempts that may be brief have a second thread, others never", arguments: [true, false])
        func spread(mayBeBrief: Bool) async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let trace = ThreadTrace()
            let receivers = (0..<12).map { _ in
                RecordingReceiver(onHead: { _ in
                    trace.note()
                    // Until all have begun.
                    return .pause
                })
            }
            let requests = receivers.map { _ in AttemptRequest.make(server.url(), mayBeBrief: mayBeBrief) }
            for (request, receiver) in zip(requests, receivers) { transport.start(request, receiver: receiver) }
            for receiver in receivers { await receiver.until { !$0.heads.isEmpty } }
            for request in requests { transport.proceed(request.id) }
            for receiver in receivers { #expect(await receiver.finished().body == Array("body".utf8)) }
            await transport.shutdown()
            let counts = Dictionary(grouping: trace.threads) { $0 }.values.map(\.count).sorted()
            #expect(counts == (mayBeBrief ? [6, 6] : [12]))
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
                    // The oldest, the newest, or from the midst: they are of one thread or of both.
                    let last = running.count - 1
                    let (id, receiver) = running.remove(at: [0, last, last / 2, min(3, last)][stride])
                    transport.proceed(id)
                    #expect(await receiver.finished().body == Array("body".utf8))
                }
                while running.count < count {
                    let receiver = RecordingReceiver(onHead: { _ in .pause })
                    let request = AttemptRequest.make(server.url(), mayBeBrief: true)
                    transport.start(request, receiver: receiver)
                    await receiver.until { !$0.heads.isEmpty }
                    running.append((request.id, receiver))
                }
                most = max(most, count)
                #expect(server.connectionCount == most, "with \(count)")
            }
            await transport.shutdown()
        }

        /// A task that asks three times, and where it was after each answer.
        private static func threads(
            _ disposition: HeadDisposition, mayBeBrief: Bool = true
        ) async -> (heads: [UInt], task: [UInt]) {
            let server = ScriptedServer(responses: { _ in
                // What has come before the task waits for it does not take it anywhere.
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
                    transport.start(.make(url, mayBeBrief: mayBeBrief), receiver: receiver)
                    // The wait itself: a function of the test's own executor would take the task elsewhere.
                    await receiver.until { $0.end != nil }
                    places.note()
                }
            }.value
            await transport.shutdown()
            return (heads.threads, places.threads)
        }

        @Test("What a brief answer leads to is done by the thread that it came to, the next request included")
        func stays() async {
            let seen = await Self.threads(.proceedBriefly(within: .seconds(20)))
            #expect(seen.task == seen.heads && Set(seen.heads).count == 1, "\(seen)")
        }

        @Test("What another leads to is not: its thread has bytes to see to")
        func leaves() async {
            let seen = await Self.threads(.proceed)
            #expect(Set(seen.task).isDisjoint(with: seen.heads), "\(seen)")
        }

        @Test("An answer that was brief too late is like any other")
        func late() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo")
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
                transport.start(.make(url, mayBeBrief: true), receiver: receiver)
                await receiver.until { $0.end != nil }
                places.note()
                #expect(receiver.record.lateCount == 1)
            }.value
            await transport.shutdown()
            #expect(Set(places.threads).isDisjoint(with: heads.threads))
        }

        @Test("One that its receiver has paused is, too, and is not told that it is late")
        func paused() async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbo")
                usleep(200_000)
                connection.send("dy")
                connection.waitForPeer()
            }
            defer { server.close() }
            let transport = CurlTransport()
            let executor = await ThreadExecutor.served()
            let (heads, places) = (ThreadTrace(), ThreadTrace())
            let request = AttemptRequest.make(server.url(), mayBeBrief: true)
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

        @Test("What waits for an answer that was to be brief hears that the transport ends")
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
                transport.start(.make(server.url(), mayBeBrief: true), receiver: receiver)
                await receiver.until { $0.end != nil }
            }
            await receiver.until { $0.bodyCallCount > 0 }
            await transport.shutdown()
            await task.value
            #expect(receiver.record.end?.isCancelled == true)
        }

        @Test("A task may end its transport on that one's own thread")
        func shutdownFromATask() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport(engineThreads: 2)
            let executor = await ThreadExecutor.served()
            let url = server.url()
            let isOver = await Task(executorPreference: executor) {
                let receiver = RecordingReceiver(onHead: { _ in .proceedBriefly(within: .seconds(20)) })
                transport.start(.make(url, mayBeBrief: true), receiver: receiver)
                await receiver.until { $0.end != nil }
                // Here it is on the engine thread.
                await transport.shutdown()
                return true
            }.value
            #expect(isOver)
        }
    }
}
