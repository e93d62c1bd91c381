import CPoll
import Glibc

/// The connection of a client and its connection to the target.
struct ShapedConnection {
    let client: Int32
    let server: Int32
    private(set) var up: Flow
    private(set) var down: Flow

    init(number: Int, client: Int32, server: Int32, options: ShapingOptions, now: Int64) {
        self.client = client
        self.server = server
        // The client is connected at once, but on a network a connection takes a round trip.
        up = Flow(from: client, to: server, options: options, rate: nil, opens: now + options.delay, now: now)
        down = Flow(from: server, to: client, options: options, rate: options.rate(of: number), opens: now, now: now)
        down.stallsAt = options.stalled[number] ?? .max
        down.breaksAt = options.reset(of: number) ?? .max
    }

    /// Records the epoll events of one of the sockets.
    mutating func note(_ events: UInt32, ofClient: Bool) {
        let failed = events & cpoll_failed != 0
        if failed || events & cpoll_readable != 0 {
            if ofClient { up.isReadable = true } else { down.isReadable = true }
        }
        if failed || events & cpoll_writable != 0 {
            if ofClient { down.isWritable = true } else { up.isWritable = true }
        }
    }

    /// Moves bytes in both directions.
    mutating func step(_ now: Int64, link: inout TokenBucket?) -> Flow.Outcome {
        var none: TokenBucket?
        let upward = up.step(now, link: &none)
        if case .broken = upward { return .broken }
        let downward = down.step(now, link: &link)
        // A stalled connection ends when its client closes it.
        if up.isFinished, down.isFinished || down.isStalled { return .broken }
        switch (upward, downward) {
        case (_, .broken), (.broken, _): return .broken
        case (.moved, _), (_, .moved): return .moved
        case (.waits(let one), .waits(let other)): return .waits(min(one, other))
        }
    }

    /// Closes both sockets: normally if both directions ended, otherwise with a reset for the client.
    mutating func close() {
        if !(up.isFinished && down.isFinished) { Sockets.resetOnClose(client) }
        Glibc.close(client)
        Glibc.close(server)
        up.release()
        down.release()
    }
}
