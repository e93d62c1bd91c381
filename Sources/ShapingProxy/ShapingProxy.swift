import CPoll
import Glibc
import Synchronization

/// A TCP proxy on the loopback that has the delay, the limits and the faults of a network, fast enough to stand between
/// programs that are compared: one thread, no allocation for a byte.
///
/// It works while ``run()`` runs; everything else may be called from any thread.
package final class ShapingProxy: Sendable {
    /// The port it listens at, on 127.0.0.1.
    package let port: UInt16
    private let listener: Int32
    private let alarm: Int32
    private let target: UInt16
    private let options: ShapingOptions
    private let shared = Mutex(ShapingStatistics())

    /// Listens, so that clients may connect, and serves nobody before ``run()``.
    ///
    /// - Parameter target: the port of 127.0.0.1 to forward to.
    package init(to target: UInt16, _ options: ShapingOptions) throws(SocketFailure) {
        (listener, port) = try Sockets.listen(port: options.port)
        alarm = eventfd(0, 0)
        guard alarm >= 0 else { throw SocketFailure("eventfd") }
        self.target = target
        self.options = options
    }

    /// What it has seen so far.
    package var statistics: ShapingStatistics { shared.withLock { $0 } }

    /// Forwards on the calling thread until ``stop()``, or until `input` ends, if one is given. Call it once.
    package func run(untilEndOf input: Int32? = nil) throws(SocketFailure) {
        var loop = try ProxyLoop(listener: listener, alarm: alarm, input: input, target: target, options: options)
        while loop.turn() { publish(loop.statistics) }
        loop.close()
        publish(loop.statistics)
    }

    private func publish(_ statistics: ShapingStatistics) { shared.withLock { $0 = statistics } }

    /// Has ``run()`` reset all connections and return.
    package func stop() {
        var one: UInt64 = 1
        // It fails if the counter is full: ``run()`` has been told then.
        _ = write(alarm, &one, 8)
    }
}
