import NIOCore
import NIOPosix
import Synchronization

/// A TCP proxy that simulates a bad network: latency, rates, silence, resets, refused connections. The proxy runs
/// until ``stop()``.
package final class ChaosProxy: Sendable {
    /// The connections through the proxy, the options that apply to them, and their counts.
    fileprivate struct Network {
        var listener: (any Channel)?
        /// The reservation of the port, until the proxy stops.
        var reservation: PortReservation?
        var connections: [Int: (connection: ChaosConnection, task: Task<Void, Never>)] = [:]
        var options: ChaosOptions
        var generator: SeededGenerator
        var accepted = 0
        var resetsDone = 0
        var bytes: [Int: Int64] = [:]
        var silence: Gate?
    }

    /// The port on 127.0.0.1 that the proxy listens on.
    package let port: Int
    private let target: Int
    private let state: Mutex<Network>

    /// Starts a proxy to a port of 127.0.0.1. Throws an `IOError` if it cannot listen.
    package static func start(to target: Int, _ options: ChaosOptions = ChaosOptions()) async throws -> ChaosProxy {
        let intake = ConnectionIntake()
        let reservation = try PortReservation(host: "127.0.0.1", port: 0)
        let listener = try await listen(port: reservation.port, intake)
        let proxy = ChaosProxy(reservation: reservation, target: target, options: options, listener: listener)
        intake.begin { proxy.serve($0, $1) }
        return proxy
    }

    private init(reservation: PortReservation, target: Int, options: ChaosOptions, listener: any Channel) {
        port = reservation.port
        self.target = target
        var seed: UInt64 = 0
        if case .random(_, let given) = options.reset { seed = given }
        state = Mutex(
            Network(
                listener: listener, reservation: reservation, options: options,
                generator: SeededGenerator(seed: seed)))
    }

    /// The number of accepted connections.
    package var accepted: Int { state.withLock { $0.accepted } }

    /// The number of connections that were reset by the rule of the options.
    package var resets: Int { state.withLock { $0.resetsDone } }

    /// The number of bytes forwarded towards clients, by connection number; the first connection is 0.
    package var bytesForwarded: [Int: Int64] { state.withLock { $0.bytes } }

    /// Stops forwarding in both directions without closing a connection, as if packets were lost. New connections are
    /// accepted and are silent as well.
    package func swallow() { state.withLock { state in if state.silence == nil { state.silence = Gate() } } }

    /// Ends ``swallow()`` and forwards the retained bytes.
    package func forward() {
        let silence = state.withLock { state in
            defer { state.silence = nil }
            return state.silence
        }
        silence?.open()
    }

    /// Makes the open connections half-open: resets the server's side, and sends no further byte to the client. New
    /// connections work.
    package func abandonConnections() async {
        for connection in connections { await connection.abandon() }
    }

    /// Resets all open connections towards the client.
    package func resetConnections() async {
        for connection in connections { await connection.reset() }
    }

    /// Simulates a network failure: stops listening, so that the system refuses connections, and resets the open ones.
    /// The port stays reserved.
    package func refuseConnections() async {
        let listener = state.withLock { state in
            defer { state.listener = nil }
            return state.listener
        }
        try? await listener?.close()
        await resetConnections()
    }

    /// Listens again on the same port. Throws an `IOError` after ``stop()`` if another process has taken the port.
    package func acceptConnections() async throws {
        let intake = ConnectionIntake()
        let listener = try await ChaosProxy.listen(port: port, intake)
        state.withLock { $0.listener = listener }
        intake.begin { self.serve($0, $1) }
    }

    /// Closes the listener and all connections. Returns after all tasks have ended.
    package func stop() async {
        await refuseConnections()
        forward()
        let tasks = state.withLock { state in
            state.reservation = nil
            return state.connections.values.map(\.task)
        }
        for task in tasks {
            task.cancel()
            await task.value
        }
    }

    private var connections: [ChaosConnection] { state.withLock { $0.connections.values.map(\.connection) } }

    private func serve(_ channel: any Channel, _ inbound: Inbound) {
        state.withLock { state in
            let number = state.accepted
            state.accepted += 1
            let connection = ChaosConnection(
                proxy: self, number: number, client: channel, fromClient: inbound, options: state.options,
                resetAfter: state.nextReset())
            let task = Task {
                await connection.run(target: self.target)
                _ = self.state.withLock { $0.connections.removeValue(forKey: number) }
            }
            state.connections[number] = (connection, task)
        }
    }

    /// Waits until forwarding is allowed.
    func passage() async {
        while let silence = state.withLock({ $0.silence }) {
            await silence.passed()
            if Task.isCancelled { return }
        }
    }

    func forwarded(_ count: Int, connection: Int) {
        state.withLock { $0.bytes[connection, default: 0] += Int64(count) }
    }

    func didReset() { state.withLock { $0.resetsDone += 1 } }

    private static func listen(port: Int, _ intake: ConnectionIntake) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 4096)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try PrivateSocket.keep(channel)
                    try channel.pipeline.syncOperations.addHandler(SocketEnd())
                    try channel.pipeline.syncOperations.addHandler(InboundHandler(intake: intake))
                }
            }
            .withBoundSocket(PrivateSocket.bound(host: "127.0.0.1", port: port)).get()
    }
}

extension ChaosProxy.Network {
    /// Returns the number of bytes after which the new connection is reset; `nil` for no reset.
    fileprivate mutating func nextReset() -> Int64? {
        guard accepted <= options.resets else { return nil }
        switch options.reset {
        case .never: return nil
        case .after(let count): return count
        case .random(let range, _): return Int64.random(in: range, using: &generator)
        }
    }
}
