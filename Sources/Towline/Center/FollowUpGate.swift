import Synchronization

/// Lets so many follow-ups run at once, in the order in which they came.
///
/// Four: a program that takes an hour, or a webhook that nobody answers, does not hold up the others; and what unpacks or
/// runs at the same time leaves processor, disk and memory to the downloads, also when a thousand finish at once.
final class FollowUpGate: Sendable {
    static let room = 4

    private struct State {
        var running = 0
        var numbers = 0
        /// Who waits.
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// In the order of coming, with those who gave up; whoever is before `first` had his turn.
        var order: [Int] = []
        var first = 0
    }

    private let state = Mutex(State())

    /// How many wait.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Waits for room. Whoever was let in leaves again.
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
                // A task that was cancelled before it waited.
                if Task.isCancelled { giveUp(number) }
            }
        } onCancel: {
            giveUp(number)
        }
    }

    /// Makes room for the next one.
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
