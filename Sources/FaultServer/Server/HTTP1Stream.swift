import NIOCore

/// A reply on an HTTP/1.1 connection.
struct HTTP1Stream: ResponseStream {
    /// The granularity at which body bytes are counted: one buffer of a gathering write.
    private static let pieceLength = 65_536

    let channel: any Channel
    let clientGone: Gate
    let framesBody = false

    func headBytes(_ head: ReplyHead) -> [UInt8] { head.bytes }

    func send(_ buffer: ByteBuffer) -> EventLoopFuture<Void> { channel.writeAndFlush(buffer) }

    func sendBody(_ buffer: ByteBuffer, accepted: @escaping @Sendable (Int) -> Void) -> EventLoopFuture<Void> {
        channel.eventLoop.flatSubmit { [channel] in
            var rest = buffer
            var last = channel.eventLoop.makeSucceededVoidFuture()
            while rest.readableBytes > 0 {
                let count = min(HTTP1Stream.pieceLength, rest.readableBytes)
                guard let piece = rest.readSlice(length: count) else { break }
                last = channel.write(piece)
                last.whenSuccess { accepted(count) }
            }
            channel.flush()
            return last
        }
    }

    func finish() {}

    func limitSendBuffer() async {
        // The call may fail. The only effect is that more bytes are in flight than the client has read.
        try? await channel.setOption(.socketOption(.so_sndbuf), value: 65_536).get()
    }

    func end(_ step: Reply.Step) async throws {
        switch step {
        case .close: try await channel.close()
        case .closeOutput: try await channel.close(mode: .output)
        case .closeWithoutNotify: await SocketEnd.close(channel, reset: false)
        case .reset, .resetStream: await SocketEnd.close(channel, reset: true)
        default: break
        }
    }
}
