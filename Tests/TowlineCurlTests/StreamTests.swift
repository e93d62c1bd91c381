import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Tests broken HTTP/2 streams, frame by frame, and TLS connections that end in different ways.
    @Suite struct StreamTests {
        /// Returns a frame of RFC 9113 §4.1.
        private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
            [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
        }
        private static let settings = frame(4, stream: 0)
        /// HEADERS with END_HEADERS: `:status 200` from the static table (RFC 7541 appendix A), index 8.
        private static let head = frame(1, flags: 4, stream: 1, [0x88])
        /// The same head with `content-length: 8`.
        private static let headWithLength = frame(1, flags: 4, stream: 1, [0x88, 0x0F, 0x0D, 0x01, 0x38])
        private static let data = frame(0, stream: 1, Array("body".utf8))
        private static func reset(_ code: UInt8) -> [UInt8] { frame(3, stream: 1, [0, 0, 0, code]) }
        private static let refusedStream: UInt8 = 7
        private static let internalError: UInt8 = 2

        /// The bytes that the server sends first, and those it sends once the first were received: libcurl lets an
        /// error overtake bytes.
        private struct Script {
            let name: String
            var first: [UInt8] = []
            var last: [UInt8] = []
            let end: String
            var body = ""
        }

        private static let lastData = frame(0, flags: 1, stream: 1, Array("body".utf8))
        // "refused" and "GOAWAY": whether libcurl 7.88 asks again and then says so, or reports an empty reply, depends on
        // how the frames fall into its reads.
        private static let cases = [
            Script(name: "whole", last: headWithLength + data + lastData, end: "delimited", body: "bodybody"),
            // Indistinguishable from "reset without an error" below, because the head states no length.
            Script(name: "whole, of no length", last: head + lastData, end: "stream", body: "body"),
            Script(name: "head alone", last: frame(1, flags: 5, stream: 1, [0x88]), end: "stream"),
            Script(name: "reset without an error", first: head + data, last: reset(0), end: "stream", body: "body"),
            Script(name: "refused", last: reset(refusedStream), end: "streamRefused closedBeforeHead"),
            Script(
                name: "GOAWAY", last: frame(7, stream: 0, [UInt8](repeating: 0, count: 8)),
                end: "streamRefused closedBeforeHead"),
            Script(name: "reset before the head", last: reset(internalError), end: "closedBeforeHead"),
            Script(
                name: "reset in the body", first: head + data, last: reset(internalError), end: "bodyCut", body: "body"),
            Script(name: "closed in the body", first: head + data, end: "bodyCut", body: "body"),
            Script(name: "closed before the head", end: "closedBeforeHead"),
            Script(
                name: "short of its length", first: headWithLength + data, last: frame(0, flags: 1, stream: 1),
                end: "bodyCut",
                body: "body"),
        ]

        @Test(
            "Streams end as what they are",
            arguments: [
                "whole", "whole, of no length", "head alone", "reset without an error", "refused", "GOAWAY",
                "reset before the head", "reset in the body",
                "closed in the body",
                "closed before the head", "short of its length",
            ])
        func streams(name: String) async throws {
            let script = try #require(Self.cases.first { $0.name == name })
            let server = ScriptedServer { connection, server in
                connection.readHTTP2Request(sending: Self.settings)
                connection.send(script.first)
                if !script.first.isEmpty { server.waitForTest() }
                connection.send(script.last)
                if name.hasPrefix("closed") { connection.finishSending() }
                connection.waitForPeer()
            }
            defer { server.close() }
            let options = ConnectionOptions.with { $0.httpProtocol = .http2PriorKnowledge }
            let receiver = RecordingReceiver(onBody: { _, _ in
                server.proceed()
                return .consumed
            })
            let record = await run(.make(server.url(), connection: options), receiver)
            #expect(script.end.split(separator: " ").contains(describe(record.end)[...]))
            #expect(record.body == Array(script.body.utf8))
        }

        @Test(
            "A body that ends with the TLS connection is proven whole only by close_notify",
            .enabled(if: Programs.areThere(Programs.python, Programs.openssl)),
            arguments: [true, false], ["TLSv1_2", "TLSv1_3"])
        func closeNotify(isOrderly: Bool, version: String) async throws {
            let folder = try TemporaryFolder()
            let certificates = try Certificates(in: folder)
            let port = Loopback.freePort()
            let script = try folder.write(
                "server.py",
                """
                import socket, ssl
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.maximum_version = ssl.TLSVersion.\(version)
                context.load_cert_chain("\(folder.path)/good.pem", "\(folder.path)/good.key")
                listener = socket.create_server(("127.0.0.1", \(port)))
                while True:
                    peer, _ = listener.accept()
                    try:
                        tls = context.wrap_socket(peer, server_side=True)
                        while not tls.recv(65536).endswith(b"\\r\\n\\r\\n"): pass
                        tls.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nbody")
                        if \(isOrderly ? "True" : "False"): tls.unwrap()
                        tls.close()
                    except OSError: pass
                """)
            let server = try await ServerProgram(Programs.python, [script], port: port, log: folder.path + "/log")
            defer { withExtendedLifetime(server) {} }
            let options = ConnectionOptions.with { $0.certificateAuthorityFile = certificates.authority }
            let record = await run(.make("https://127.0.0.1:\(port)/", connection: options))
            #expect(record.body == Array("body".utf8))
            #expect(describe(record.end) == (isOrderly ? "closed" : "unclosed"))
        }
    }
}
