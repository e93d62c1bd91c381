internal import Foundation
import NIOCore
import Synchronization

/// Limits the connections of each client address, so that one client cannot use all connections of the service.
///
/// A client that exceeds its share loses a connection: first the oldest that has not shown the access token, also while
/// its request comes in; then the one that has been idle for the longest time. If there is neither, its new connection
/// is closed.
final class ConnectionShare: Sendable {
    private struct Entry {
        let channel: any Channel
        let client: String
        let accepted = ContinuousClock.now
        /// A request with the access token was answered.
        var isProven = false
        /// When the connection became idle; `nil` while a request is in progress.
        var idleSince: ContinuousClock.Instant?
    }

    private let limit: Int
    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    /// - Parameter limit: the maximum number of connections of one client address.
    init(limit: Int) { self.limit = limit }

    /// Adds a connection. Connections over the Unix socket belong to the owner and are not counted.
    func add(_ channel: any Channel) {
        guard let client = Self.client(channel.remoteAddress) else { return }
        let victim = entries.withLock { entries -> (any Channel)? in
            let others = entries.values.filter { $0.client == client }
            entries[ObjectIdentifier(channel)] = Entry(channel: channel, client: client, idleSince: .now)
            guard others.count >= limit else { return nil }
            if let stranger = others.filter({ !$0.isProven }).min(by: { $0.accepted < $1.accepted }) {
                return stranger.channel
            }
            let idle = others.filter { $0.idleSince != nil }
            return idle.min { ($0.idleSince ?? .now) < ($1.idleSince ?? .now) }?.channel ?? channel
        }
        if let victim {
            remove(victim)
            victim.close(promise: nil)
        }
    }

    /// Records that a connection has become idle, or that a request is in progress.
    func set(idle: Bool, _ channel: any Channel) {
        entries.withLock { $0[ObjectIdentifier(channel)]?.idleSince = idle ? .now : nil }
    }

    /// Records that the client of a connection has the access token.
    func prove(_ channel: any Channel) { entries.withLock { $0[ObjectIdentifier(channel)]?.isProven = true } }

    func remove(_ channel: any Channel) { _ = entries.withLock { $0.removeValue(forKey: ObjectIdentifier(channel)) } }

    /// Returns the client of an address: all of loopback, an IPv4 address, or the first 64 bits of an IPv6 address. A
    /// client usually has a whole IPv6 network (RFC 6177).
    static func client(_ address: SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        // Any process of this machine can use any of these addresses.
        if ServiceContext.isLoopback(text) { return "loopback" }
        var bytes = [UInt8](repeating: 0, count: 16)
        guard inet_pton(AF_INET6, text, &bytes) == 1 else { return text }
        // An IPv4 address in IPv6 form (RFC 4291 §2.5.5.2).
        if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
            return bytes[12...].map(String.init).joined(separator: ".")
        }
        return bytes[..<8].map(String.init).joined(separator: ":")
    }
}
