import Hummingbird
import NIOCore

struct ServiceContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// True for a request over the Unix socket, which only its owner can open.
    let isOverSocket: Bool
    /// The client's address, over TCP.
    let peer: SocketAddress?
    /// The local address of the connection, over TCP.
    let local: SocketAddress?
    private let channel: any Channel

    /// True if the client runs on this machine.
    var isLocal: Bool { isOverSocket || Self.isLoopback(peer?.ipAddress ?? "") }

    static func isLoopback(_ address: String) -> Bool {
        let plain = address.lowercased().hasPrefix("::ffff:") ? String(address.dropFirst(7)) : address
        return plain.hasPrefix("127.") || plain == "::1"
    }

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        peer = source.channel.remoteAddress
        local = source.channel.localAddress
        if case .unixDomainSocket = local { isOverSocket = true } else { isOverSocket = false }
    }

    /// Records that the client of the connection has shown the access token or a session.
    func authenticate() { channel.triggerUserOutboundEvent(ClientAuthenticated(), promise: nil) }
}
