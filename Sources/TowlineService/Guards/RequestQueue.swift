import NIOCore

/// Delivers the bytes of the next request on a connection only after the response to the last one has left.
///
/// NIO's decoder decodes all requests of a read at once. A client that sends many small requests and reads no response
/// would make the service hold each of them, decoded, in memory.
///
/// `@unchecked Sendable`: everything happens on the event loop of its channel.
final class RequestQueue: ChannelDuplexHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The length of the shortest request in bytes: `GET / HTTP/1.0` and two LF. A piece of this length cannot contain
    /// the end of a request and another complete request. Shorter pieces would let a client that sends only LF waste
    /// CPU time.
    private static let shortestRequest = 16

    private var context: ChannelHandlerContext?
    private var held = ByteBuffer()
    private var isReadHeld = false
    private var isEndHeld = false
    private var isDelivering = false
    /// The number of complete requests minus the number of responses that have left.
    private var unanswered = 0
    /// The bytes of the body that have not been delivered, if the head says how many there are.
    private var missingBody = 0
    /// The last delivered byte, without CR, is an LF.
    private var isAfterLineFeed = false

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Records the length of the body that follows a head.
    func expectBody(_ length: Int) { missingBody = length }

    /// Records that bytes of the body were decoded.
    func receiveBody(_ count: Int) { missingBody = max(0, missingBody - count) }

    /// Records that a request is complete.
    func endRequest() {
        missingBody = 0
        unanswered += 1
    }

    /// Records that a response has left, and delivers the next request.
    func endResponse() {
        unanswered -= 1
        guard let context, held.readableBytes > 0 else { return }
        deliver(context)
        context.fireChannelReadComplete()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if held.readableBytes == 0 { held = bytes } else { held.writeImmutableBuffer(bytes) }
        deliver(context)
    }

    func read(context: ChannelHandlerContext) {
        if held.readableBytes == 0 { context.read() } else { isReadHeld = true }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The requests before the end are still to be answered.
        if event as? ChannelEvent == .inputClosed, held.readableBytes > 0 { return isEndHeld = true }
        context.fireUserInboundEventTriggered(event)
    }

    private func deliver(_ context: ChannelHandlerContext) {
        guard !isDelivering else { return }
        isDelivering = true
        while unanswered <= 0, held.readableBytes > 0, let piece = nextPiece() {
            context.fireChannelRead(wrapInboundOut(piece))
        }
        isDelivering = false
        guard held.readableBytes == 0 else { return }
        held = ByteBuffer()
        if isEndHeld {
            isEndHeld = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
        if isReadHeld {
            isReadHeld = false
            context.read()
        }
    }

    /// Takes the bytes up to the next empty line, which ends a head or a body in chunks, or to the end of a body of
    /// known length. No piece contains the end of a request and another complete request.
    private func nextPiece() -> ByteBuffer? {
        if missingBody > 0 { return held.readSlice(length: min(missingBody, held.readableBytes)) }
        var length = 0
        var hasEmptyLine = false
        for byte in held.readableBytesView {
            length += 1
            let isLineFeed = byte == UInt8(ascii: "\n")
            if isLineFeed, isAfterLineFeed { hasEmptyLine = true }
            if byte != UInt8(ascii: "\r") { isAfterLineFeed = isLineFeed }
            if hasEmptyLine, length >= Self.shortestRequest { break }
        }
        return held.readSlice(length: length)
    }
}
