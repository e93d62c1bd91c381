import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

/// Closes a connection if the client takes too long to send a head, a body, or the next request.
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
    private var timer: Scheduled<Void>?
    private var answersOwed = 0
    private var isReadingBody = false
    /// The last request needs no access token.
    private var isPublic = true

    init(_ configuration: ServiceConfiguration, share: ConnectionShare) {
        self.share = share
        head = TimeAmount(configuration.headTimeout)
        body = TimeAmount(configuration.bodyTimeout)
        idle = TimeAmount(configuration.idleTimeout)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do { try StrictRequestHandler.add(to: context.pipeline) } catch { context.close(promise: nil) }
        if context.channel.isActive { opened(context) }
    }

    private func opened(_ context: ChannelHandlerContext) {
        wait(head, context)
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
        switch unwrapInboundIn(data) {
        case .head(let request):
            isPublic = Gate.isPublic(request.path ?? "")
            if answersOwed == 0 { share.set(idle: false, context.channel) }
            answersOwed += 1
            isReadingBody = true
            wait(body, context)
        case .body: break
        case .end:
            isReadingBody = false
            stop()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .head(let response) = unwrapOutboundIn(data), !isPublic, response.status.code < 400 {
            share.prove(context.channel)
        }
        if case .end = unwrapOutboundIn(data) {
            answersOwed -= 1
            if answersOwed == 0 { share.set(idle: true, context.channel) }
            if answersOwed == 0, !isReadingBody { wait(idle, context) }
        }
        context.write(data, promise: promise)
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
