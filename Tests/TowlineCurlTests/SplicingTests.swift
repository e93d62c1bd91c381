import Glibc
import Synchronization
import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

/// Compares a body with the expected one as it arrives.
private final class ComparingReceiver: AttemptReceiver {
    struct Record {
        var count = 0
        var isRight = true
        var isWhole = false
        /// The number of calls whose bytes were in a pipe.
        var pipeCount = 0
        var mostInPipe = 0
        var pauseCount = 0
        var end: AttemptEnd?
    }

    private let state = Mutex(Record())
    private let content: [UInt8]
    private let onPipe: @Sendable (Record) -> BodyDisposition
    let takesPipes = true
    private let wants: @Sendable (Int) -> Int64
    private let asked = Atomic<Int>(0)
    var wanted: Int64 { wants(asked.add(1, ordering: .relaxed).oldValue) }

    /// - Parameters:
    /// - wants: Returns how many bytes are wanted; its argument counts the calls from 0.
    /// - onPipe: Called before bytes are taken out of the pipe.
    init(
        _ content: [UInt8], wants: @escaping @Sendable (Int) -> Int64 = { _ in .max },
        onPipe: @escaping @Sendable (Record) -> BodyDisposition = { _ in .consumed }
    ) {
        self.content = content
        self.wants = wants
        self.onPipe = onPipe
    }

    var record: Record { state.withLock { $0 } }

    func waitUntil(_ condition: (Record) -> Bool) async {
        while !condition(record) { try? await Task.sleep(for: .milliseconds(2)) }
    }

    func finished() async -> Record {
        await waitUntil { $0.end != nil }
        return record
    }

    private func compare(_ bytes: UnsafeRawBufferPointer) {
        state.withLock { record in
            let isSame = content.withUnsafeBytes { whole in
                guard let left = whole.baseAddress, let right = bytes.baseAddress else { return bytes.isEmpty }
                return record.count + bytes.count <= whole.count && memcmp(left + record.count, right, bytes.count) == 0
            }
            record.isRight = record.isRight && isSame && record.end == nil
            record.count += bytes.count
            record.isWhole = record.isRight && record.count == content.count
        }
    }

    func receivedHead(_ head: ResponseHead) -> HeadDisposition { .proceed }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
        compare(bytes)
        return .consumed
    }

    func receivedBody(in pipe: Int32, count: Int) -> BodyDisposition {
        let disposition = onPipe(record)
        guard case .consumed = disposition else {
            state.withLock { record in
                record.pipeCount += 1
                if case .stop = disposition { return }
                record.pauseCount += 1
            }
            return disposition
        }
        // One more byte than there should be.
        var bytes = [UInt8](repeating: 0, count: count + 1)
        let got = read(pipe, &bytes, bytes.count)
        bytes.withUnsafeBytes { compare(UnsafeRawBufferPointer(rebasing: $0[..<max(0, got)])) }
        state.withLock { record in
            record.pipeCount += 1
            record.mostInPipe = max(record.mostInPipe, count)
            if got != count { record.isRight = false }
        }
        return .consumed
    }

    func ended(_ end: AttemptEnd) { state.withLock { $0.end = end } }
}

private func run(
    _ request: AttemptRequest, _ receiver: ComparingReceiver, on transport: CurlTransport = CurlTransport()
) async -> ComparingReceiver.Record {
    transport.start(request, receiver: receiver)
    return await receiver.finished()
}

extension CurlTransportTests {
    /// Tests long bodies on a fast connection. The kernel moves their bytes after libcurl has begun.
    @Suite(.timeLimit(.minutes(2))) struct SplicingTests {
        private static let length = 48 << 20
        /// The body of the file. All its pieces of 4 KiB differ.
        private static let content: [UInt8] = {
            var bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
            while bytes.count < length { bytes += bytes }
            for page in 0..<length / 4096 {
                bytes.replaceSubrange(page * 4096..<page * 4096 + 4, with: [7, 7, UInt8(page & 255), UInt8(page >> 8)])
            }
            return Array(bytes.prefix(length))
        }()
        private static let head = "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n"

        /// Sends the head and the body up to `end`.
        private static func answer(_ connection: ScriptedServer.Connection, _ end: Int = length) {
            connection.send(head)
            for start in stride(from: 0, to: end, by: 1 << 20) {
                guard connection.send(Array(content[start..<min(start + 1 << 20, end)])) else { return }
            }
        }

        private static func server(
            _ script: @escaping @Sendable (ScriptedServer.Connection, ScriptedServer) -> Void = { connection, _ in
                answer(connection)
                connection.waitForPeer()
            }
        ) -> ScriptedServer {
            ScriptedServer { connection, server in
                while server.head(from: connection) != nil { script(connection, server) }
            }
        }

        private static func request(_ server: ScriptedServer) -> AttemptRequest {
            .make("http://127.0.0.1:\(server.port)/")
        }

        @Test("the complete body arrives, in order, and the connection ends with it")
        func whole() async {
            let server = Self.server { connection, _ in Self.answer(connection) }
            defer { server.close() }
            let transport = CurlTransport()
            for index in 1...2 {
                let record = await run(Self.request(server), ComparingReceiver(Self.content), on: transport)
                #expect(record.end?.framing == .delimited && record.isWhole)
                #expect(record.pipeCount > 0)
                #expect(server.connectionCount == index)
            }
            await transport.shutdown()
        }

        @Test("bytes after the body do not belong to it")
        func excess() async {
            let server = Self.server { connection, _ in
                Self.answer(connection)
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
            }
            defer { server.close() }
            let record = await run(Self.request(server), ComparingReceiver(Self.content))
            #expect(record.end?.framing == .delimited && record.isWhole && record.pipeCount > 0)
        }

        @Test("a body that is cut is cut", arguments: [false, true])
        func cut(isReset: Bool) async {
            let server = Self.server { connection, _ in
                if isReset { connection.resetOnClose() }
                Self.answer(connection, 30 << 20)
                shutdown(connection.descriptor, Int32(SHUT_RDWR))
            }
            defer { server.close() }
            let record = await run(Self.request(server), ComparingReceiver(Self.content))
            #expect(record.end?.failureKind == .bodyCut)
            #expect(record.isRight && record.count <= 30 << 20 && record.pipeCount > 0)
            if !isReset { #expect(record.count == 30 << 20) }
        }

        @Test("one piece has no more bytes than are wanted, and never more than a kill may cost")
        func little() async {
            let server = Self.server()
            defer { server.close() }
            let much = await run(Self.request(server), ComparingReceiver(Self.content))
            #expect(much.isWhole && much.pipeCount > 0 && much.mostInPipe <= SplicePolicy.most)
            // The receiver is asked first when splicing is decided, and again when splicing begins.
            let little = ComparingReceiver(Self.content, wants: { $0 == 0 ? .max : 10_000 })
            let record = await run(Self.request(server), little)
            #expect(record.isWhole && record.pipeCount > 1000 && record.mostInPipe <= 10_000)
        }

        @Test("pauses keep the bytes in the pipe, and other attempts continue meanwhile")
        func pauses() async {
            let server = Self.server()
            defer { server.close() }
            let transport = CurlTransport()
            let request = Self.request(server)
            let receiver = ComparingReceiver(
                Self.content,
                onPipe: { record in
                    switch record.pipeCount {
                    case 1, 2, 9: .pauseFor(.milliseconds(20))
                    case 5: .pause
                    default: .consumed
                    }
                })
            transport.start(request, receiver: receiver)
            await receiver.waitUntil { $0.pipeCount == 6 }
            let other = Self.server { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
            defer { other.close() }
            #expect(await run(Self.request(other), on: transport).body.count == 2)
            #expect(receiver.record.pipeCount == 6, "a paused body receives no bytes")
            transport.proceed(request.id)
            let record = await receiver.finished()
            #expect(record.isWhole && record.pauseCount == 4)
            await transport.shutdown()
        }

        @Test("it ends on request, and leaves no descriptor behind", arguments: ["stop", "cancel", "shutdown"])
        func ends(_ how: String) async throws {
            let server = Self.server()
            defer { server.close() }
            // Descriptors that stay open after the first use are open now.
            _ = await run(Self.request(server), ComparingReceiver(Self.content))
            let before = try openDescriptors()
            let transport = CurlTransport()
            let request = Self.request(server)
            let receiver = ComparingReceiver(
                Self.content, onPipe: { how == "stop" && $0.pipeCount == 7 ? .stop : .consumed })
            transport.start(request, receiver: receiver)
            await receiver.waitUntil { $0.pipeCount > 3 || $0.end != nil }
            if how == "cancel" { transport.cancel(request.id) }
            if how == "shutdown" { await transport.shutdown() }
            let record = await receiver.finished()
            #expect(record.isRight && record.pipeCount > 0)
            if how == "stop" { #expect(record.end?.isStopped == true && record.pipeCount == 8) }
            if how != "stop" { #expect(record.end?.isCancelled == true || record.count == Self.length) }
            await transport.shutdown()
            server.close()
            for _ in 0..<100 where try openDescriptors() > before { try await Task.sleep(for: .milliseconds(20)) }
            // The listener is closed with its server.
            #expect(try openDescriptors() <= before)
        }

        @Test("libcurl receives a body whose extent is unproven: another response came before it on the connection")
        func notTheFirst() async {
            let server = ScriptedServer { connection, server in
                while let head = server.head(from: connection) {
                    if head.hasPrefix("GET /small") {
                        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    } else {
                        Self.answer(connection)
                    }
                }
            }
            defer { server.close() }
            let transport = CurlTransport()
            #expect(await run(.make("http://127.0.0.1:\(server.port)/small"), on: transport).body.count == 2)
            for _ in 0..<2 {
                let record = await run(Self.request(server), ComparingReceiver(Self.content), on: transport)
                #expect(record.end?.framing == .delimited && record.isWhole && record.pipeCount == 0)
            }
            #expect(server.connectionCount == 1)
            await transport.shutdown()
        }

        @Test("the server closes after its response while other attempts make libcurl run")
        func closedByTheServer() async {
            let server = Self.server { connection, _ in
                Self.answer(connection)
                connection.finishSending()
                connection.waitForPeer()
            }
            let other = Self.server { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }
            defer {
                server.close()
                other.close()
            }
            let transport = CurlTransport()
            let receiver = ComparingReceiver(
                Self.content,
                onPipe: { $0.pipeCount % 16 == 3 && $0.pauseCount < 9 ? .pauseFor(.milliseconds(5)) : .consumed })
            transport.start(Self.request(server), receiver: receiver)
            while receiver.record.end == nil {
                #expect(await run(.make("http://127.0.0.1:\(other.port)/"), on: transport).body.count == 2)
            }
            let record = await receiver.finished()
            #expect(record.isWhole && record.pipeCount > 0 && record.end?.framing == .delimited)
            await transport.shutdown()
        }

        @Test("a segment that shrinks to nothing meanwhile ends")
        func shrunk() async {
            let server = Self.server()
            defer { server.close() }
            let record = await run(Self.request(server), ComparingReceiver(Self.content, wants: { $0 == 0 ? .max : 0 }))
            #expect(record.end?.isStopped == true && record.isRight && !record.isWhole)
        }

        @Test("chunked bodies are left to libcurl")
        func chunked() async {
            let server = Self.server { connection, _ in
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for start in stride(from: 0, to: Self.length, by: 1 << 20) {
                    connection.send("100000\r\n")
                    connection.send(Array(Self.content[start..<start + 1 << 20]))
                    connection.send("\r\n")
                }
                connection.send("0\r\n\r\n")
            }
            defer { server.close() }
            let record = await run(Self.request(server), ComparingReceiver(Self.content))
            #expect(record.end?.framing == .delimited && record.isWhole && record.pipeCount == 0)
        }

        @Test("interim heads count as part of the response")
        func interim() async {
            let server = Self.server { connection, _ in
                connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
                Self.answer(connection)
            }
            defer { server.close() }
            let record = await run(Self.request(server), ComparingReceiver(Self.content))
            #expect(record.isWhole && record.pipeCount > 0)
        }
    }

    /// If another reader takes bytes from the socket of a moved body, this is detected before any byte is believed.
    @Suite struct SplicedBodyTests {
        /// The two ends of a TCP connection.
        private struct Pair {
            let near: Int32
            let far: Int32

            init() {
                let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = Loopback.bind(listener).bigEndian
                address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                near = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                let near = near
                withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        precondition(listen(listener, 1) == 0)
                        precondition(connect(near, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0)
                    }
                }
                far = accept(listener, nil, nil)
                close(listener)
            }

            func send(_ text: String) {
                precondition(write(far, text, text.utf8.count) == text.utf8.count)
                // Bytes sent over the loopback interface arrive before this returns.
                var request = pollfd(fd: near, events: Int16(POLLIN), revents: 0)
                precondition(poll(&request, 1, 1000) == 1)
            }

            func take(_ count: Int) -> String {
                var bytes = [UInt8](repeating: 0, count: count)
                let got = recv(near, &bytes, count, 0)
                return String(decoding: bytes.prefix(max(0, got)), as: UTF8.self)
            }

            func end() { for descriptor in [near, far] { close(descriptor) } }
        }

        private func text(_ body: SplicedBody) -> String {
            var bytes = [UInt8](repeating: 0, count: body.waiting)
            let got = read(body.pipe, &bytes, bytes.count)
            return String(decoding: bytes.prefix(max(0, got)), as: UTF8.self)
        }

        @Test func onlyWhatIsAllThatCameIsTakenOver() throws {
            let pair = Pair()
            defer { pair.end() }
            pair.send("headbody")
            #expect(try isDisturbed(pair.near, passed: 4), "nobody has read the head")
            #expect(pair.take(4) == "head")
            for passed: Int64 in [3, 5] { #expect(try isDisturbed(pair.near, passed: passed)) }
            #expect(try isDisturbed(-1, passed: 4))
            let body = try #require(SplicedBody(socket: pair.near, rest: 4, passed: 4))
            guard case .moved = body.receive(upTo: 100, callCount: 1) else {
                Issue.record("nothing came")
                return
            }
            #expect(text(body) == "body" && body.rest == 0)
        }

        private func isDisturbed(_ socket: Int32, passed: Int64) throws -> Bool {
            let body = try #require(SplicedBody(socket: socket, rest: 4, passed: passed))
            guard case .disturbed = body.receive(upTo: 100, callCount: 1) else { return false }
            return body.waiting == 0
        }

        /// The kernel counts the end of the peer's bytes as one more byte.
        @Test func anEndIsNoByte() throws {
            let pair = Pair()
            defer { pair.end() }
            pair.send("headbody")
            #expect(pair.take(4) == "head")
            shutdown(pair.far, Int32(SHUT_WR))
            let body = try #require(SplicedBody(socket: pair.near, rest: 8, passed: 4))
            for (count, piece) in [(1, "b"), (2, "od"), (3, "y")] {
                guard case .moved = body.receive(upTo: Int64(count), callCount: 1 + count), text(body) == piece else {
                    Issue.record("\(piece) did not come")
                    return
                }
            }
            guard case .closed = body.receive(upTo: 4, callCount: 9) else {
                Issue.record("its end was not seen")
                return
            }
        }

        @Test func whoReadsInBetweenIsFoundOut() throws {
            let pair = Pair()
            defer { pair.end() }
            pair.send("headbodymore")
            #expect(pair.take(4) == "head")
            let body = try #require(SplicedBody(socket: pair.near, rest: 8, passed: 4))
            guard case .moved = body.receive(upTo: 2, callCount: 1), text(body) == "bo" else {
                Issue.record("nothing came")
                return
            }
            // libcurl was called, and did not read from the socket.
            guard case .moved = body.receive(upTo: 1, callCount: 2), text(body) == "d" else {
                Issue.record("nothing came")
                return
            }
            #expect(pair.take(1) == "y")
            guard case .disturbed = body.receive(upTo: 4, callCount: 3) else {
                Issue.record("it was not seen")
                return
            }
        }
    }
}
