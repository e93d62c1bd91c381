import NIOCore
import Synchronization

/// The bytes that a client sends on one connection, in order, and the event of its end.
final class Inbound: Sendable {
    /// The received bytes. The stream finishes when the client closes its side.
    let buffers: AsyncStream<ByteBuffer>
    /// A gate that opens when the client closes its side or the connection ends.
    let clientGone = Gate()

    private let continuation: AsyncStream<ByteBuffer>.Continuation

    init() { (buffers, continuation) = AsyncStream.makeStream() }

    func received(_ buffer: ByteBuffer) { continuation.yield(buffer) }

    func ended() {
        continuation.finish()
        clientGone.open()
    }
}

/// A queue of accepted connections until the server that serves them exists.
final class ConnectionIntake: Sendable {
    /// The accepted connections that wait for the server, and the function that serves them once the server exists.
    private struct Queue {
        var waiting: [(any Channel, Inbound)] = []
        var serve: (@Sendable (any Channel, Inbound) -> Void)?
    }

    private let state = Mutex(Queue())

    func accept(_ channel: any Channel, _ inbound: Inbound) {
        let serve = state.withLock { state in
            if state.serve == nil { state.waiting.append((channel, inbound)) }
            return state.serve
        }
        serve?(channel, inbound)
    }

    func begin(_ serve: @escaping @Sendable (any Channel, Inbound) -> Void) {
        let waiting = state.withLock { state in
            state.serve = serve
            defer { state.waiting = [] }
            return state.waiting
        }
        for (channel, inbound) in waiting { serve(channel, inbound) }
    }
}

/// A handler that passes the bytes of a connection from its event loop to the task that serves it.
final class InboundHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let intake: ConnectionIntake
    private let inbound = Inbound()

    init(intake: ConnectionIntake) { self.intake = intake }

    func channelActive(context: ChannelHandlerContext) {
        intake.accept(context.channel, inbound)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { inbound.received(unwrapInboundIn(data)) }

    func channelInactive(context: ChannelHandlerContext) {
        inbound.ended()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.inputClosed) = event as? ChannelEvent { inbound.ended() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A reset by the client or a failed handshake: the connection has no client any more.
        inbound.ended()
        context.close(promise: nil)
    }
}
