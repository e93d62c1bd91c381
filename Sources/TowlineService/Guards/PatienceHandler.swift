import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// Closes a connection if the client takes too long to send a head, a body, or the next request. `ResponseWatch` closes
/// a connection if the client takes too long to read.
///
/// Without these limits, a client could hold a connection forever with an occasional byte (slow-loris).
///
/// `@unchecked Sendable`: everything happens on the event loop of its channel.
final class PatienceHandler: ChannelDuplexHandler, RemovableChannelHandler, @unchecked Sendable {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let head: TimeAmount
    private let body: TimeAmount
    private let idle: TimeAmount
    private let share: ConnectionShare
    private let queue = RequestQueue()
    private let watch: ResponseWatch
    private var timer: Scheduled<Void>?
    private var answersOwed = 0
    private var isReadingBody = false
    /// The service has sent its last response on this connection.
    private var hasEnded = false

    init(_ configuration: ServiceConfiguration, share: ConnectionShare) {
        self.share = share
        head = TimeAmount(configuration.headTimeout)
        body = TimeAmount(configuration.bodyTimeout)
        idle = TimeAmount(configuration.idleTimeout)
        watch = ResponseWatch(configuration)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            try StrictRequestHandler.add(to: context.pipeline)
            try context.pipeline.syncOperations.addHandlers([watch, queue], position: .first)
        } catch { context.close(promise: nil) }
        if context.channel.isActive { opened(context) }
    }

    private func opened(_ context: ChannelHandlerContext) {
        wait(head, context)
        // Connections over the Unix socket belong to the owner.
        if case .unixDomainSocket = context.localAddress { return }
        watch.open(context.channel)
        share.add(context.channel)
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop() }

    func channelActive(context: ChannelHandlerContext) {
        opened(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        share.remove(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if hasEnded { return }
        switch unwrapInboundIn(data) {
        case .head(let request):
            if answersOwed == 0 { share.set(idle: false, context.channel) }
            answersOwed += 1
            isReadingBody = true
            queue.expectBody(request.headerFields[.contentLength].flatMap { Int($0) } ?? 0)
            wait(body, context)
        case .body(let bytes): queue.receiveBody(bytes.readableBytes)
        case .end:
            isReadingBody = false
            queue.endRequest()
            stop()
        }
        context.fireChannelRead(data)
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        if event is ClientAuthenticated { share.authenticate(context.channel) }
        context.triggerUserOutboundEvent(event, promise: promise)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        let sent = promise ?? context.eventLoop.makePromise()
        sent.futureResult.assumeIsolated().whenSuccess { self.responseLeft(context) }
        context.write(data, promise: sent)
    }

    /// The client has time to close its side. Requests that it sends meanwhile are not answered.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .output = mode { hasEnded = true }
        context.close(mode: mode, promise: promise)
    }

    private func responseLeft(_ context: ChannelHandlerContext) {
        answersOwed -= 1
        if answersOwed == 0 { share.set(idle: true, context.channel) }
        if answersOwed == 0, !isReadingBody { wait(idle, context) }
        queue.endResponse()
    }

    private func wait(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        stop()
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }

    private func stop() {
        timer?.cancel()
        timer = nil
    }
}
