import Synchronization
package import TowlineCore
internal import TowlineEngine

/// A monitor for systems that do not report network changes. The monitor reads the state of the network at short
/// intervals. It also reports a change at growing intervals, so that no download waits for ever.
package final class TickingMonitor: NetworkMonitor {
    /// The tasks that report changes, one for each stream of changes.
    private struct Subscribers {
        var isClosed = false
        var next = 0
        var tasks: [Int: Task<Void, Never>] = [:]
    }

    private let subscribers = Mutex(Subscribers())
    private let first: Duration
    private let longest: Duration
    private let poll: Duration
    private let read: @Sendable () -> NetworkState

    /// Creates a monitor that reports a change after `first`. The interval then doubles each time, up to `longest`. A
    /// change of the state that `read` returns is reported after at most `poll`.
    package init(
        first: Duration = .seconds(15), longest: Duration = .seconds(300), poll: Duration = .seconds(1),
        read: @escaping @Sendable () -> NetworkState = { SystemNetwork.state() }
    ) {
        self.first = first
        self.longest = longest
        self.poll = poll
        self.read = read
    }

    deinit { subscribers.withLock { $0.tasks.values.forEach { $0.cancel() } } }

    package var state: NetworkState { read() }

    package func changes() -> AsyncStream<NetworkState> {
        let (stream, continuation) = AsyncStream<NetworkState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (first, longest, poll, read) = (first, longest, poll, read)
        let initial = read()
        subscribers.withLock { state in
            guard !state.isClosed else { return continuation.finish() }
            state.next += 1
            let number = state.next
            let task = Task {
                var (last, pause, left) = (initial, first, first)
                while (try? await Task.sleep(for: min(poll, left))) != nil {
                    left -= min(poll, left)
                    let network = read()
                    guard network != last || left <= .zero else { continue }
                    continuation.yield(network)
                    if left <= .zero { pause = min(pause * 2, longest) }
                    (last, left) = (network, pause)
                }
                continuation.finish()
            }
            state.tasks[number] = task
            continuation.onTermination = { [weak self] _ in
                task.cancel()
                _ = self?.subscribers.withLock { $0.tasks.removeValue(forKey: number) }
            }
        }
        return stream
    }

    package func close() async {
        let tasks = subscribers.withLock { state in
            state.isClosed = true
            return Array(state.tasks.values)
        }
        for task in tasks {
            task.cancel()
            await task.value
        }
    }
}
