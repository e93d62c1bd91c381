import Glibc
import NIOCore

/// The handler at the end of the pipeline next to the socket. Operations from its context bypass TLS, so that no
/// close_notify is sent.
final class SocketEnd: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Closes the socket itself: with RST (SO_LINGER of zero, socket(7)) or FIN, without close_notify.
    static func close(_ channel: any Channel, reset: Bool) async {
        let done = channel.eventLoop.flatSubmit {
            if reset {
                _ = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            }
            do {
                return try channel.pipeline.syncOperations.context(handlerType: SocketEnd.self).close()
            } catch {
                return channel.close()
            }
        }
        // An error here means that the connection is already closed.
        try? await done.get()
    }
}
