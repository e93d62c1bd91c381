import NIOCore
import Synchronization

/// A reply on one stream of an HTTP/2 connection.
final class HTTP2Stream: ResponseStream {
    let channel: any Channel
    let number: UInt32
    let windows: FlowControl
    let clientGone = Gate()
    let framesBody = true

    private let isStarted = Atomic(false)

    init(channel: any Channel, number: UInt32, windows: FlowControl) {
        self.channel = channel
        self.number = number
        self.windows = windows
    }

    /// Returns the frames of a head without the fields of an HTTP/1.1 connection (RFC 9113 §8.2.2).
    func headBytes(_ head: ReplyHead) -> [UInt8] {
        if head.status >= 200 { isStarted.store(true, ordering: .relaxed) }
        let fields = head.fields.filter { !["connection", "transfer-encoding"].contains($0.0.lowercased()) }
        return HTTP2Frame.headers([(":status", String(head.status))] + fields, stream: number)
    }

    func send(_ buffer: ByteBuffer) -> EventLoopFuture<Void> { channel.writeAndFlush(buffer) }

    func sendBody(
        _ buffer: ByteBuffer, accepted: @escaping @Sendable (Int) -> Void
    ) async throws -> EventLoopFuture<Void> {
        var rest = buffer
        var last = channel.eventLoop.makeSucceededVoidFuture()
        while rest.readableBytes > 0 {
            let count = try await windows.take(rest.readableBytes, stream: number)
            guard let part = rest.readSlice(length: count) else { break }
            last = channel.eventLoop.flatSubmit { [self] in sendFrames(part, accepted) }
        }
        return last
    }

    private func sendFrames(_ buffer: ByteBuffer, _ accepted: @escaping @Sendable (Int) -> Void) -> EventLoopFuture<
        Void
    > {
        var rest = buffer
        var last = channel.eventLoop.makeSucceededVoidFuture()
        while rest.readableBytes > 0 {
            let count = min(HTTP2Frame.maximumPayload, rest.readableBytes)
            guard let piece = rest.readSlice(length: count) else { break }
            channel.write(HTTP2Frame.header(HTTP2Frame.Kind.data, stream: number, length: count), promise: nil)
            last = channel.write(piece)
            last.whenSuccess { accepted(count) }
        }
        channel.flush()
        return last
    }

    /// Sends END_STREAM, or INTERNAL_ERROR for a reply without a head.
    func finish() async throws {
        guard isStarted.load(ordering: .relaxed) else { return try await reset(code: 2) }
        let frame = HTTP2Frame.bytes(HTTP2Frame.Kind.data, flags: HTTP2Frame.Flag.endStream, stream: number)
        try await send(frame).get()
    }

    func limitSendBuffer() async {
        // The call may fail. The only effect is that more bytes are in flight than the client has read.
        try? await channel.setOption(.socketOption(.so_sndbuf), value: 65_536).get()
    }

    func end(_ step: Reply.Step) async throws {
        switch step {
        case .resetStream(let code): try await reset(code: code)
        case .goAway(let lastStream, let code):
            try await send(HTTP2Frame.bytes(HTTP2Frame.Kind.goAway, numbers: [lastStream ?? number, code])).get()
        default: try await HTTP1Stream(channel: channel, clientGone: clientGone).end(step)
        }
    }

    private func reset(code: UInt32) async throws {
        try await send(HTTP2Frame.bytes(HTTP2Frame.Kind.resetStream, stream: number, numbers: [code])).get()
    }
}
