import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import TowlineService

/// The next pipelined request is decoded after the response to the last one has left.
@Suite struct RequestQueueTests {
    /// Reports the parts of requests to a queue, as `PatienceHandler` does.
    private final class Reporter: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart

        let queue: RequestQueue
        var heads: [String] = []
        var ends = 0
        var isInputClosed = false

        init(_ queue: RequestQueue) { self.queue = queue }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                heads.append(head.uri)
                queue.expectBody(head.headers.first(name: "Content-Length").flatMap { Int($0) } ?? 0)
            case .body(let bytes): queue.receiveBody(bytes.readableBytes)
            case .end:
                ends += 1
                queue.endRequest()
            }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event as? ChannelEvent == .inputClosed { isInputClosed = true }
        }
    }

    /// A channel with a queue and NIO's decoder.
    private struct Pipeline {
        let channel = EmbeddedChannel()
        let queue = RequestQueue()
        let reporter: Reporter

        init() throws {
            reporter = Reporter(queue)
            let operations = channel.pipeline.syncOperations
            try operations.addHandler(queue)
            try operations.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
            try operations.addHandler(reporter)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        func send(_ text: String) throws { try channel.writeInbound(ByteBuffer(string: text)) }
    }

    /// Requests of each framing, and the shortest that NIO's decoder accepts.
    private static let requests = [
        "GET /N HTTP/1.1\r\nHost: a\r\n\r\n", "GET /N HTTP/1.1\r\n\r\n", "\r\n\r\nGET /N HTTP/1.1\r\nHost:a\r\n\r\n",
        "POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        "POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
        "POST /N HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        "POST /N HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\nA: b\r\n\r\n",
    ]

    /// Each pair of framings, received in one piece, byte by byte, and in pieces of other sizes.
    @Test(arguments: requests, requests)
    func oneRequestIsDecodedAtATime(_ first: String, _ second: String) throws {
        let texts = (0..<6).map { ($0 % 2 == 0 ? first : second).replacingOccurrences("N", "\($0)") }
        let bytes = Array(texts.joined().utf8)
        for size in [1, 2, 7, 16, 17, 40, bytes.count] {
            let pipeline = try Pipeline()
            let (channel, reporter) = (pipeline.channel, pipeline.reporter)
            for start in stride(from: 0, to: bytes.count, by: size) {
                try channel.writeInbound(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
                #expect(reporter.heads.count <= 1, "pieces of \(size) bytes")
            }
            channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            for number in 0..<6 {
                #expect(reporter.heads == (0...number).map { "/\($0)" }, "pieces of \(size) bytes")
                #expect(reporter.ends == number + 1, "pieces of \(size) bytes")
                #expect(reporter.isInputClosed == (number == 5), "the end comes after the last request")
                pipeline.queue.endResponse()
            }
            _ = try channel.finish(acceptAlreadyClosed: true)
        }
    }

    /// A response may leave before the body of its request is complete.
    @Test func anEarlyResponseDoesNotReleaseTheNextRequest() throws {
        let pipeline = try Pipeline()
        try pipeline.send("POST /0 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{")
        pipeline.queue.endResponse()
        try pipeline.send("}{}GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(pipeline.reporter.heads == ["/0", "/1"])
        pipeline.queue.endResponse()
        #expect(pipeline.reporter.heads == ["/0", "/1", "/2"])
        _ = try pipeline.channel.finish(acceptAlreadyClosed: true)
    }

    /// The socket is not read while bytes wait, so that the kernel's buffer limits what a client can send.
    @Test func nothingIsReadWhileBytesWait() throws {
        final class ReadCounter: ChannelOutboundHandler {
            typealias OutboundIn = Never
            var reads = 0
            func read(context: ChannelHandlerContext) { reads += 1 }
        }
        let (channel, queue, counter) = (EmbeddedChannel(), RequestQueue(), ReadCounter())
        try channel.pipeline.syncOperations.addHandlers([counter, queue])
        channel.read()
        #expect(counter.reads == 1)
        queue.endRequest()
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        channel.read()
        channel.read()
        #expect(counter.reads == 1)
        queue.endResponse()
        #expect(counter.reads == 2)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }
}

extension String {
    fileprivate func replacingOccurrences(_ character: Character, _ text: String) -> String {
        map { $0 == character ? text : String($0) }.joined()
    }
}
