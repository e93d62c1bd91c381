import Hummingbird
import NIOCore

/// What is known of a request besides what it says.
struct ServiceContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Whether it came over the Unix socket, which only its owner can open.
    let isOverSocket: Bool
    /// Where it came from, over TCP.
    let peer: SocketAddress?
    /// The address of this machine that it came to, over TCP.
    let local: SocketAddress?

    /// Whether it came from this machine.
    var isLocal: Bool { isOverSocket || Self.isLoopback(peer?.ipAddress ?? "") }

    /// Whether an address, as text, is this machine's own and nobody else's.
    static func isLoopback(_ address: String) -> Bool {
        let plain = address.lowercased().hasPrefix("::ffff:") ? String(address.dropFirst(7)) : address
        return plain.hasPrefix("127.") || plain == "::1"
    }

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress
        local = source.channel.localAddress
        if case .unixDomainSocket = local { isOverSocket = true } else { isOverSocket = false }
    }
}
