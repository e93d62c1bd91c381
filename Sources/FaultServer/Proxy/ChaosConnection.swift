import NIOCore
import NIOPosix
import Synchronization

/// One connection through a ``ChaosProxy``: two channels and a delay line for each direction.
final class ChaosConnection: Sendable {
    /// The connection to the server, and whether the proxy has abandoned it.
    private struct ServerSide {
        var server: (any Channel)?
        var isAbandoned = false
    }

    private let proxy: ChaosProxy
    private let number: Int
    private let client: any Channel
    private let fromClient: Inbound
    private let options: ChaosOptions
    private let resetAfter: Int64?
    private let state = Mutex(ServerSide())

    init(
        proxy: ChaosProxy, number: Int, client: any Channel, fromClient: Inbound, options: ChaosOptions,
        resetAfter: Int64?
    ) {
        self.proxy = proxy
        self.number = number
        self.client = client
        self.fromClient = fromClient
        self.options = options
        self.resetAfter = resetAfter
    }

    /// Forwards until both directions have ended, or one has failed.
    func run(target: Int) async {
        do {
            try await forwardBothWays(target: target)
            if state.withLock({ $0.isAbandoned }) { await watchAbandonedClient() }
            try await client.close()
        } catch {
            // One side failed. The other side is closed too, like in a network failure.
            if state.withLock({ $0.isAbandoned }) {
                await watchAbandonedClient()
            } else {
                await SocketEnd.close(client, reset: true)
            }
        }
        if let server = state.withLock({ $0.server }) { await SocketEnd.close(server, reset: false) }
    }

    /// Resets the client's side and closes the server's.
    func reset() async {
        await SocketEnd.close(client, reset: true)
        if let server = state.withLock({ $0.server }) { await SocketEnd.close(server, reset: true) }
    }

    /// Resets the server's side, and sends no further byte to the client.
    func abandon() async {
        let server = state.withLock { state in
            state.isAbandoned = true
            return state.server
        }
        if let server { await SocketEnd.close(server, reset: true) }
    }

    private func watchAbandonedClient() async {
        // Continues to read in order to detect the client's end. A closed channel has already reported it.
        try? await client.setOption(.autoRead, value: true).get()
        await fromClient.clientGone.passed()
        await SocketEnd.close(client, reset: true)
    }

    private func forwardBothWays(target: Int) async throws {
        let intake = ConnectionIntake()
        let fromServer = Mutex<Inbound?>(nil)
        let connected = Gate()
        intake.begin { _, inbound in
            fromServer.withLock { $0 = inbound }
            connected.open()
        }
        await proxy.passage()
        let server = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.autoRead, value: false)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(SocketEnd())
                    try channel.pipeline.syncOperations.addHandler(InboundHandler(intake: intake))
                }
            }
            .withConnectedSocket(PrivateSocket.connected(host: "127.0.0.1", port: target)).get()
        state.withLock { $0.server = server }
        await connected.passed()
        guard let fromServer = fromServer.withLock({ $0 }) else { return }
        let (up, down) = (DelayLine(), DelayLine())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.read(self.client, self.fromClient, into: up) }
            group.addTask { await self.read(server, fromServer, into: down) }
            group.addTask { try await self.deliver(up, to: server, isDown: false) }
            group.addTask { try await self.deliver(down, to: self.client, isDown: true) }
            try await group.waitForAll()
        }
    }

    private func read(_ channel: any Channel, _ inbound: Inbound, into line: DelayLine) async {
        channel.read()
        for await buffer in inbound.buffers {
            await line.put(DelayLine.Delivery(due: .now + options.latency, buffer: buffer))
            channel.read()
        }
        await line.put(DelayLine.Delivery(due: .now + options.latency, buffer: nil))
    }

    private func deliver(_ line: DelayLine, to channel: any Channel, isDown: Bool) async throws {
        var pacer = isDown ? options.rate.map(Pacer.init) : nil
        var left = isDown ? resetAfter ?? .max : .max
        while let delivery = await line.next() {
            if delivery.due > .now { try await Task.sleep(until: delivery.due, clock: .continuous) }
            // The client must not receive the end of the server's side.
            if isDown, state.withLock({ $0.isAbandoned }) { return }
            guard var buffer = delivery.buffer else {
                await proxy.passage()
                return try await channel.close(mode: .output)
            }
            while let piece = buffer.readSlice(length: min(buffer.readableBytes, pacer?.pieceLength ?? .max)),
                piece.readableBytes > 0
            {
                try await pacer?.wait(for: piece.readableBytes)
                await proxy.passage()
                let count = Int(min(Int64(piece.readableBytes), left))
                try await write(
                    piece.getSlice(at: piece.readerIndex, length: count) ?? piece, to: channel, isDown: isDown)
                left -= Int64(count)
                if left == 0 {
                    proxy.didReset()
                    return await reset()
                }
            }
        }
    }

    private func write(_ buffer: ByteBuffer, to channel: any Channel, isDown: Bool) async throws {
        let length = isDown ? options.writeLength ?? buffer.readableBytes : buffer.readableBytes
        guard length > 0 else { return }
        try await channel.eventLoop.flatSubmit {
            var rest = buffer
            var last = channel.eventLoop.makeSucceededVoidFuture()
            while let piece = rest.readSlice(length: min(length, rest.readableBytes)), piece.readableBytes > 0 {
                last = channel.writeAndFlush(piece)
            }
            return last
        }.get()
        if isDown { proxy.forwarded(buffer.readableBytes, connection: number) }
    }
}
