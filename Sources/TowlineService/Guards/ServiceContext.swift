import Hummingbird
import NIOCore

/// What is known of a request besides what it says.
struct ServiceContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Whether it came over the Unix socket, which only its owner can open.
    let isOverSocket: Bool
    /// Where it came from, over TCP.
    let peer: SocketAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress
        if case .unixDomainSocket = source.channel.localAddress { isOverSocket = true } else { isOverSocket = false }
    }
}
