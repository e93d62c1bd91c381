import Synchronization

/// A limit on the number of follow-ups that run at the same time, so that a slow one does not block the others.
/// Follow-ups start in the order of their `enter` calls.
final class FollowUpGate: Sendable {
    /// The maximum number of follow-ups that run at the same time.
    static let room = 4

    /// The number of follow-ups that run, and the tasks that wait to run others.
    private struct Queue {
        var running = 0
        var numbers = 0
        /// The tasks that wait in `enter`, by the numbers that identify them.
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// The numbers that identify the tasks that waited, in the order of their `enter` calls, including cancelled
        /// tasks. The tasks before index `first` have already started or were cancelled.
        var order: [Int] = []
        var first = 0
    }

    private let state = Mutex(Queue())

    /// The number of tasks that wait in `enter` until they may run a follow-up, for tests.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits until fewer than `room` follow-ups run. After the result `true`, the caller runs its follow-up and then
    /// must call `leave`.
    ///
    /// - Returns: `false` if the task was cancelled while it waited. The follow-up then must not run.
    func enter() async -> Bool {
        let number = state.withLock { state in
            state.numbers += 1
            return state.numbers
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isFree = state.withLock { state in
                    guard state.running < Self.room else {
                        state.waiting[number] = continuation
                        state.order.append(number)
                        return false
                    }
                    state.running += 1
                    return true
                }
                if isFree { return continuation.resume(returning: true) }
                // The task may have been cancelled before it waited.
                if Task.isCancelled { giveUp(number) }
            }
        } onCancel: {
            giveUp(number)
        }
    }

    /// Records that a follow-up ended, and lets the next waiting follow-up start.
    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            while state.first < state.order.count {
                defer { state.first += 1 }
                if let next = state.waiting.removeValue(forKey: state.order[state.first]) { return next }
            }
            (state.order, state.first) = ([], 0)
            state.running -= 1
            return nil
        }
        next?.resume(returning: true)
    }

    private func giveUp(_ number: Int) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: false)
    }
}
