import Synchronization

/// Runs tasks one after the other on the thread that serves it, with others to help while a job of theirs waits for a
/// disk. Timers of a moment come from the same thread.
///
/// For a program whose tasks are many and short: the runtime's own threads, a clock's among them, are not even started.
/// Actors keep what they promise: who runs a job does not matter to them.
package final class ThreadExecutor: TaskExecutor {
    private struct Timer {
        let due: ContinuousClock.Instant
        let body: @Sendable () -> Void
    }

    private struct State {
        var jobs: [UnownedJob] = []
        /// Index of the next one.
        var next = 0
        var timers: [Timer] = []
        /// Threads that wait for something to do.
        var parked: [AutoResetEvent] = []
        var threads = 0
        /// When the last job was begun.
        var lastBegun = ContinuousClock.now
    }

    /// Who has to hear of a new job, once the lock is free again.
    private enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    /// What there is for a thread.
    private enum Work {
        case job(UnownedJob)
        case timer(@Sendable () -> Void)
        /// Nothing, for so many milliseconds.
        case rest(Int)
    }

    /// A job that takes longer has others done beside it.
    private static let patience = Duration.milliseconds(5)
    private static let mostThreads = 4
    /// A helper that had nothing to do for so many milliseconds ends.
    private static let idleLife = 1000

    private let state = Mutex(State())

    /// An executor that nobody serves yet.
    package init() {}

    /// Begins a task and serves from the calling thread, for ever.
    package func run(_ body: @escaping @Sendable () async -> Void) -> Never {
        state.withLock { $0.threads += 1 }
        Task.detached(executorPreference: self) { await body() }
        let event = AutoResetEvent()
        while true { _ = work(event) }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let call = state.withLock { state in
            state.jobs.append(job)
            return whoHears(&state)
        }
        switch call {
        case .nobody: break
        case .wake(let event): event.set()
        case .thread: if !WorkThread.tryStart({ self.help() }) { state.withLock { $0.threads -= 1 } }
        }
    }

    /// Runs `body` after a delay, or as soon as a job that is under way then has ended; it must not take long.
    package func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        let event = state.withLock { state in
            state.timers.append(Timer(due: .now.advanced(by: delay), body: body))
            // Who waits has to know how long.
            return state.parked.popLast()
        }
        event?.set()
    }

    private func whoHears(_ state: inout State) -> Call {
        let isIdle = state.threads == state.parked.count
        guard isIdle || state.lastBegun.duration(to: .now) > Self.patience else { return .nobody }
        if let event = state.parked.popLast() { return .wake(event) }
        guard (1..<Self.mostThreads).contains(state.threads) else { return .nobody }
        state.threads += 1
        return .thread
    }

    /// Does what there is, and waits for more.
    ///
    /// - Returns: whether somebody brought more, or a timer ran out.
    private func work(_ event: AutoResetEvent) -> Bool {
        while true {
            switch take(parking: event) {
            case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
            case .timer(let body): body()
            case .rest(let milliseconds):
                let isWoken = event.wait(milliseconds: milliseconds)
                return state.withLock { state in
                    // Among the parked still: nobody woke it.
                    guard let index = state.parked.firstIndex(where: { $0 === event }) else { return true }
                    state.parked.remove(at: index)
                    return isWoken || !state.timers.isEmpty
                }
            }
        }
    }

    private func help() {
        let event = AutoResetEvent()
        while work(event) {}
        state.withLock { $0.threads -= 1 }
    }

    private func take(parking event: AutoResetEvent) -> Work {
        state.withLock { state in
            if !state.timers.isEmpty, let index = state.timers.firstIndex(where: { $0.due <= .now }) {
                return .timer(state.timers.remove(at: index).body)
            }
            guard state.next < state.jobs.count else {
                state.jobs.removeAll(keepingCapacity: state.jobs.count < 1024)
                state.next = 0
                state.parked.append(event)
                let due = state.timers.map(\.due).min()
                return .rest(
                    due.map { Int(ContinuousClock.now.duration(to: $0) / .milliseconds(1)) + 1 } ?? Self.idleLife)
            }
            state.lastBegun = .now
            if state.next >= 1024, state.next * 2 >= state.jobs.count {
                state.jobs.removeFirst(state.next)
                state.next = 0
            }
            defer { state.next += 1 }
            return .job(state.jobs[state.next])
        }
    }
}
