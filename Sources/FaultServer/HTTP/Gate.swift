import Synchronization

/// A gate at which a reply waits until a test opens it.
package final class Gate: Sendable {
    /// The replies that wait at the gate, and whether the gate is open.
    private struct Waiters {
        var isOpen = false
        var nextKey = 0
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(Waiters())

    /// Creates a closed gate.
    package init() {}

    /// `true` if the gate is open.
    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Opens the gate for current and later waiters.
    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return state.waiting.values.map { $0 }
        }
        waiting.forEach { $0.resume() }
    }

    /// Waits until the gate is open or the task is cancelled.
    package func passed() async {
        let key = state.withLock { state in
            state.nextKey += 1
            return state.nextKey
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let passes = state.withLock { state in
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiting[key] = continuation
                    return false
                }
                if passes { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: key) }?.resume()
        }
    }
}
