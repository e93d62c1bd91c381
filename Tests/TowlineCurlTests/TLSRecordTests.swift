import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

extension CurlTransportTests {
    /// Tests TLS connections whose records arrive together: no record is left behind although its socket is not
    /// readable.
    @Suite(.enabled(if: Programs.areThere(Programs.python, Programs.openssl)), .timeLimit(.minutes(2)))
    struct TLSRecordTests {
        /// Answers each request with all of its records at once. The path selects the response: `/SIZE/COUNT` for COUNT
        /// records of SIZE bytes, `/chunked/SIZE/COUNT` for chunks whose heads have records of their own, `/torn` and
        /// `/bytes` for a head in records of three bytes and of one.
        private static func script(_ folder: String, _ port: UInt16) -> String {
            """
            import socket, ssl, threading
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("\(folder)/good.pem", "\(folder)/good.key")
            def content(count): return bytes(i * 7 % 251 for i in range(count))
            def records(path):
                words = path.split("/")[1:]
                if words[0] in ("torn", "bytes"):
                    size = 3 if words[0] == "torn" else 1
                    line = b"Name: " + b"x" * 200 + b"\\r\\n"
                    answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: 30\\r\\n" + line + b"\\r\\n" + content(30)
                    return [answer[i:i + size] for i in range(0, len(answer), size)]
                size, count = int(words[-2]), int(words[-1])
                body = content(size * count)
                pieces = [body[i:i + size] for i in range(0, len(body), size)]
                if words[0] != "chunked":
                    return [b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)] + pieces
                answer = [b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"]
                for piece in pieces: answer += [b"%x\\r\\n" % len(piece), piece, b"\\r\\n"]
                return answer + [b"0\\r\\n\\r\\n"]
            def serve(peer):
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = context.wrap_bio(incoming, outgoing, server_side=True)
                def step(action):
                    while True:
                        try: result = action()
                        except ssl.SSLWantReadError: result = None
                        peer.sendall(outgoing.read())
                        if result is not None: return result
                        data = peer.recv(65536)
                        if not data: raise OSError
                        incoming.write(data)
                try:
                    step(lambda: tls.do_handshake() or True)
                    while True:
                        request = b""
                        while not request.endswith(b"\\r\\n\\r\\n"):
                            part = step(lambda: tls.read(65536))
                            if not part: raise OSError
                            request += part
                        for record in records(request.split()[1].decode()): tls.write(record)
                        peer.sendall(outgoing.read())
                except (OSError, ssl.SSLError): peer.close()
            listener = socket.create_server(("127.0.0.1", \(port)))
            while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            """
        }

        private static func content(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 * 7 % 251) } }

        private static func withServer(_ body: (_ base: String, _ options: ConnectionOptions) async throws -> Void)
            async throws
        {
            let folder = try TemporaryFolder()
            let certificates = try Certificates(in: folder)
            let port = Loopback.freePort()
            let path = try folder.write("server.py", script(folder.path, port))
            let server = try await ServerProgram(Programs.python, [path], port: port, log: folder.path + "/log")
            defer { withExtendedLifetime(server) {} }
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = certificates.authority }
            try await body("https://127.0.0.1:\(port)", options)
        }

        @Test func allRecordsThatCameAtOnceAreHandedOver() async throws {
            try await Self.withServer { base, options in
                for (size, count) in [(300, 1000), (16 << 10, 10), (5000, 40)] {
                    for path in ["", "/chunked"] {
                        let record = await run(.make("\(base)\(path)/\(size)/\(count)", connection: options))
                        let isRight = record.body == Self.content(size * count)
                        #expect(isRight, "\(path)/\(size)/\(count): \(record.body.count) bytes")
                        #expect(record.end?.framing == .delimited)
                    }
                }
            }
        }

        /// Heads and bodies of responses on a reused connection arrive together.
        @Test func nextResponsesOfTheSameConnectionToo() async throws {
            try await Self.withServer { base, options in
                let transport = CurlTransport()
                for path in ["300/1000", "torn", "1/30", "chunked/2/15", "torn"] {
                    let record = await run(.make("\(base)/\(path)", connection: options), on: transport)
                    let count = path == "300/1000" ? 300_000 : 30
                    let isRight = record.body == Self.content(count)
                    #expect(isRight, "\(path): \(record.body.count) bytes, \(describe(record.end))")
                }
                await transport.shutdown()
            }
        }

        /// The body arrived together with the head, and waits in the TLS buffer until its receiver wants it. libcurl,
        /// which does not know of the pause, must not continue.
        @Test(arguments: ["300/100", "chunked/300/100", "torn", "bytes"])
        func aPauseAtTheHeadEndsWithProceed(_ path: String) async throws {
            try await Self.withServer { base, options in
                let transport = CurlTransport()
                _ = await run(.make("\(base)/300/1000", connection: options), on: transport)
                let request = AttemptRequest.make("\(base)/\(path)", connection: options)
                let receiver = RecordingReceiver(onHead: { _ in .pause })
                let start = ContinuousClock.now
                transport.start(request, receiver: receiver)
                await receiver.until { !$0.heads.isEmpty }
                // No byte may be delivered during the pause.
                try await Task.sleep(for: .milliseconds(50))
                transport.proceed(request.id)
                let record = await receiver.finished()
                let isRight = record.body == Self.content(path.hasSuffix("300/100") ? 30_000 : 30)
                #expect(isRight, "\(record.body.count) bytes, \(describe(record.end))")
                #expect(ContinuousClock.now - start < .seconds(10), "at once, not after a timeout")
                await transport.shutdown()
            }
        }

        @Test func pausesAndOthersAtTheSameTime() async throws {
            try await Self.withServer { base, options in
                let transport = CurlTransport()
                await withTaskGroup(of: Void.self) { group in
                    for size in [200, 300, 1000, 3000] {
                        group.addTask {
                            let request = AttemptRequest.make("\(base)/\(size)/400", connection: options)
                            let receiver = RecordingReceiver(onBody: { _, record in
                                guard record.bodyCallCount.isMultiple(of: 3) else { return .consumed }
                                if record.bodyCallCount.isMultiple(of: 2) { return .pauseFor(.milliseconds(1)) }
                                transport.proceed(request.id)
                                return .pause
                            })
                            let record = await run(request, receiver, on: transport)
                            #expect(record.body == Self.content(size * 400) && record.pauseCount > 50)
                        }
                    }
                }
                await transport.shutdown()
            }
        }
    }
}
