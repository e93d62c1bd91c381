import CTowline
import Glibc
import Synchronization
package import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// A network monitor that receives changes from the kernel on a netlink socket (`rtnetlink(7)`). One thread reads the
/// socket and sleeps between changes.
package final class NetlinkMonitor: NetworkMonitor {
    private let watch: NetworkWatch

    /// The interval in which several changes are reported as one.
    package static let window = Duration.milliseconds(200)

    /// Creates a monitor of the network namespace of the calling thread; `nil` if the system refuses the socket, a
    /// descriptor or the thread.
    package init?() {
        guard let watch = NetworkWatch() else { return nil }
        self.watch = watch
        guard WorkThread.tryStart({ watch.run() }) else {
            watch.abandon()
            return nil
        }
    }

    deinit { watch.stop() }

    package var state: NetworkState { watch.network }

    package func changes() -> AsyncStream<NetworkState> { watch.changes() }

    package func close() async {
        watch.stop()
        await watch.ended()
    }
}

/// The state of the monitor's thread, which exists until the thread has ended, shortly after the monitor is released.
private final class NetworkWatch: Sendable {
    /// The readers of the changes and the callers that wait for the end of the thread, and how far the thread has come.
    private struct Observers {
        var isStopping = false
        var isOver = false
        var network = NetworkState.available
        var next = 0
        var readers: [Int: AsyncStream<NetworkState>.Continuation] = [:]
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(Observers())
    private let socket: Int32
    /// The read end of a pipe. A byte, or the end of the pipe, wakes the thread to stop.
    private let wakeReader: Int32
    private let wakeWriter: Int32

    init?() {
        let socket = towline_watch_network()
        guard socket >= 0 else { return nil }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            Glibc.close(socket)
            return nil
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        self.socket = socket
        wakeReader = ends[0]
        wakeWriter = ends[1]
        // Read after the socket exists, so that no change is missed.
        state.withLock { $0.network = SystemNetwork.state() }
    }

    /// Closes the descriptors. Called if the thread could not be started.
    func abandon() {
        state.withLock { state in
            state.isStopping = true
            closeDescriptors()
        }
    }

    private func closeDescriptors() {
        for descriptor in [socket, wakeReader, wakeWriter] { Glibc.close(descriptor) }
    }

    // MARK: From other threads

    var network: NetworkState { state.withLock { $0.network } }

    func changes() -> AsyncStream<NetworkState> {
        let (stream, continuation) = AsyncStream<NetworkState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            guard !state.isStopping else { return nil }
            state.next += 1
            state.readers[state.next] = continuation
            return state.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }

    func stop() {
        state.withLock { state in
            guard !state.isStopping else { return }
            state.isStopping = true
            // Written under the lock, because the thread closes the descriptors under the same lock.
            _ = write(wakeWriter, [1], 1)
        }
    }

    func ended() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.waiters.append(continuation) }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
    }

    // MARK: On the thread

    func run() {
        while wait(milliseconds: -1) {
            guard drain() else { continue }
            // Further changes within the window belong to the same event.
            let end = ContinuousClock.now + NetlinkMonitor.window
            while ContinuousClock.now < end {
                let left = Int32((end - ContinuousClock.now) / .milliseconds(1)) + 1
                guard wait(milliseconds: left) else { return finish() }
                _ = drain()
            }
            let network = SystemNetwork.state()
            let readers = state.withLock { state in
                state.network = network
                return Array(state.readers.values)
            }
            for reader in readers { reader.yield(network) }
        }
        finish()
    }

    /// Sleeps until the socket is readable, the timeout in milliseconds ends (-1: none), or the thread must stop.
    ///
    /// - Returns: `false` if the thread must stop.
    private func wait(milliseconds: Int32) -> Bool {
        var watched = [
            pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&watched, 2, milliseconds)
        return watched[1].revents == 0
    }

    /// Reads and discards all messages. Lost messages (`ENOBUFS`) count as a change too.
    /// Returns whether a change was reported.
    private func drain() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 8192)
        var changed = false
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count > 0 || (count < 0 && errno == ENOBUFS) {
                changed = true
            } else if count == 0 || errno != EINTR {
                return changed
            }
        }
    }

    private func finish() {
        let (readers, waiters) = state.withLock { state in
            closeDescriptors()
            state.isOver = true
            defer { (state.readers, state.waiters) = ([:], []) }
            return (Array(state.readers.values), state.waiters)
        }
        for reader in readers { reader.finish() }
        for waiter in waiters { waiter.resume() }
    }
}
