import Synchronization
internal import TowlineEngine

/// A monitor for systems that do not report network changes. The monitor reports a change at growing intervals, so that
/// no download waits for ever.
package final class TickingMonitor: NetworkMonitor {
    /// The tasks that report changes, one for each stream of changes.
    private struct Subscribers {
        var isClosed = false
        var next = 0
        var tasks: [Int: Task<Void, Never>] = [:]
    }

    private let state = Mutex(Subscribers())
    private let first: Duration
    private let longest: Duration

    /// Creates a monitor that reports a change after `first`. The interval then doubles each time, up to `longest`.
    package init(first: Duration = .seconds(15), longest: Duration = .seconds(300)) {
        self.first = first
        self.longest = longest
    }

    deinit { state.withLock { $0.tasks.values.forEach { $0.cancel() } } }

    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (first, longest) = (first, longest)
        state.withLock { state in
            guard !state.isClosed else { return continuation.finish() }
            state.next += 1
            let number = state.next
            let task = Task {
                var pause = first
                while (try? await Task.sleep(for: pause)) != nil {
                    continuation.yield()
                    pause = min(pause * 2, longest)
                }
                continuation.finish()
            }
            state.tasks[number] = task
            continuation.onTermination = { [weak self] _ in
                task.cancel()
                _ = self?.state.withLock { $0.tasks.removeValue(forKey: number) }
            }
        }
        return stream
    }

    package func close() async {
        let tasks = state.withLock { state in
            state.isClosed = true
            return Array(state.tasks.values)
        }
        for task in tasks {
            task.cancel()
            await task.value
        }
    }
}
