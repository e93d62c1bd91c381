import Synchronization

/// A limit on the number of follow-ups that run at the same time. Follow-ups start in the order of their arrival.
///
/// With a limit of four, a slow program or webhook does not block the other follow-ups, and downloads still get
/// processor time, disk and memory when a thousand downloads finish at once.
final class FollowUpGate: Sendable {
    static let room = 4

    private struct State {
        var running = 0
        var numbers = 0
        /// The waiting tasks, by their numbers.
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// The numbers in the order of arrival, including cancelled tasks. Entries before `first` are handled.
        var order: [Int] = []
        var first = 0
    }

    private let state = Mutex(State())

    /// The number of waiting tasks.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits until a follow-up may start. After the result `true`, the caller must call `leave`.
    ///
    /// - Returns: `false` if the task was cancelled before there was room.
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

    /// Ends a follow-up and lets the next one start.
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
