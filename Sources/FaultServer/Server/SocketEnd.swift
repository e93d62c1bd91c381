import Glibc
import NIOCore

/// The end of the pipeline next to the socket. What is closed or written from its context passes by TLS, so that
/// no close_notify is sent.
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
        // An error here says that the connection is closed already, which is what is wanted.
        try? await done.get()
    }
}
