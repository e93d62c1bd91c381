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

    func add(_ channel: any Channel) {
        change(channel) { table, id in
            table.add(id)
        } before: {
            $0[ObjectIdentifier(channel)] = channel
        }
    }

    /// Records that the client of a connection has shown the access token or a session.
    func authenticate(_ channel: any Channel) { change(channel) { table, id in table.authenticate(id) } }

    /// Records that a connection has become idle, or that a request is in progress.
    func set(idle: Bool, _ channel: any Channel) {
        change(channel) { table, id in
            table.set(idle: idle, id)
            return nil
        }
    }

    func remove(_ channel: any Channel) {
        change(channel) { table, id in
            table.remove(id)
            return nil
        } before: {
            $0[ObjectIdentifier(channel)] = nil
        }
    }

    /// Changes the table, and closes the connection that the change returns.
    private func change(
        _ channel: any Channel,
        _ change: (inout ConnectionTable<ObjectIdentifier>, ObjectIdentifier) -> ObjectIdentifier?,
        before: (inout [ObjectIdentifier: any Channel]) -> Void = { _ in }
    ) {
        let victim = state.withLock { state in
            before(&state.channels)
            return change(&state.table, ObjectIdentifier(channel)).flatMap { state.channels.removeValue(forKey: $0) }
        }
        victim.map(Self.reset)
    }

    /// Closes a connection and discards its unsent bytes. Otherwise the kernel would keep the bytes for minutes after
    /// the close, for a client that does not read (tcp(7), `tcp_orphan_retries`).
    static func reset(_ channel: any Channel) {
        _ = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        channel.close(promise: nil)
    }
}
