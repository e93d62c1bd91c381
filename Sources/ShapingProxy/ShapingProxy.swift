import CPoll
import Glibc
import Synchronization

/// A TCP proxy on the loopback that simulates the delay, the limits and the faults of a network. One thread and no
/// allocation per byte make the proxy fast enough for comparisons of programs.
///
/// The proxy forwards while ``run()`` runs. The other methods may be called from any thread.
package final class ShapingProxy: Sendable {
    /// The port on 127.0.0.1 that the proxy listens on.
    package let port: UInt16
    private let listener: Int32
    private let alarm: Int32
    private let target: UInt16
    private let options: ShapingOptions
    private let shared = Mutex(ShapingStatistics())

    /// Creates a proxy that listens, so that clients can connect, but forwards no byte before ``run()``.
    ///
    /// - Parameter target: The port of 127.0.0.1 to forward to.
    package init(to target: UInt16, _ options: ShapingOptions) throws(SocketFailure) {
        (listener, port) = try Sockets.listen(port: options.port)
        alarm = eventfd(0, 0)
        guard alarm >= 0 else { throw SocketFailure("eventfd") }
        self.target = target
        self.options = options
    }

    /// The current counters.
    package var statistics: ShapingStatistics { shared.withLock { $0 } }

    /// Forwards on the calling thread until ``stop()``, or until `input` ends or is readable. Call this method once.
    package func run(untilEndOf input: Int32? = nil) throws(SocketFailure) {
        var loop = try ProxyLoop(listener: listener, alarm: alarm, input: input, target: target, options: options)
        while loop.turn() { publish(loop.statistics) }
        loop.close()
        publish(loop.statistics)
    }

    private func publish(_ statistics: ShapingStatistics) { shared.withLock { $0 = statistics } }

    /// Makes ``run()`` reset all connections and return.
    package func stop() {
        var one: UInt64 = 1
        // The write fails if the counter is full: ``run()`` has then been notified.
        _ = write(alarm, &one, 8)
    }
}
