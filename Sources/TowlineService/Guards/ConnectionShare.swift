internal import Foundation
import NIOCore
import Synchronization

/// Closes connections of a listener that exceed its limits, see `ConnectionTable`.
final class ConnectionShare: Sendable {
    private struct State {
        var table: ConnectionTable<ObjectIdentifier>
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    private let state: Mutex<State>

    /// - Parameter limit: the maximum number of connections of the listener.
    init(limit: Int) { state = Mutex(State(table: ConnectionTable(limit: limit))) }

    /// Adds a stranger. The stranger that it replaces gets the event `StrangerReplaced`.
    func add(_ channel: any Channel) {
        change(channel, isOpen: true) { table, id in table.add(id) }?
            .pipeline.fireUserInboundEventTriggered(StrangerReplaced())
    }

    /// Records that the client of a connection has shown the access token or a session.
    func authenticate(_ channel: any Channel) {
        change(channel, isOpen: true) { table, id in table.authenticate(id) }.map(Self.reset)
    }

    /// Records that a connection has become idle, or that a request is in progress.
    func set(idle: Bool, _ channel: any Channel) {
        _ = change(channel) { table, id in
            table.set(idle: idle, id)
            return nil
        }
    }

    func remove(_ channel: any Channel) {
        _ = change(channel, isOpen: false) { table, id in
            table.remove(id)
            return nil
        }
    }

    /// Changes the table, and returns the connection that is no longer in it.
    private func change(
        _ channel: any Channel, isOpen: Bool? = nil,
        _ change: (inout ConnectionTable<ObjectIdentifier>, ObjectIdentifier) -> ObjectIdentifier?
    ) -> (any Channel)? {
        state.withLock { state in
            let id = ObjectIdentifier(channel)
            if let isOpen { state.channels[id] = isOpen ? channel : nil }
            return change(&state.table, id).flatMap { state.channels.removeValue(forKey: $0) }
        }
    }

    /// Closes a connection and discards its unsent bytes. Otherwise the kernel would keep the bytes for minutes after
    /// the close, for a client that does not read (tcp(7), `tcp_orphan_retries`).
    static func reset(_ channel: any Channel) {
        _ = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        channel.close(promise: nil)
    }
}

/// An event of the pipeline: another stranger has replaced this one, see `ConnectionTable`.
struct StrangerReplaced: Sendable {}
