import Glibc
import Synchronization
package import TowlineEngine

/// Runs tasks and timers on one thread, with a clock that moves only while every task waits.
///
/// A download that waits for an hour takes milliseconds here, and does the same each time: nothing depends on the speed
/// of the machine. Everything that takes part must wait by ``after(_:_:)`` and run its tasks here.
package final class Simulation: TaskExecutor {
    /// Why a run ended without a result.
    package enum Failure: Error {
        /// Every task waits, and no timer is left: a deadlock.
        case deadlock
        /// The limit on simulated time was reached.
        case outOfTime
    }

    private struct Timer {
        let due: Duration
        let body: @Sendable () -> Void
    }

    private struct State {
        var now = Duration.seconds(1000)
        var jobs: [UnownedJob] = []
        /// In reverse order: the last one is due first.
        var timers: [Timer] = []
        var timersFired = 0
    }

    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    private let state = Mutex(State())

    /// Makes a simulation in which nothing has happened.
    package init() {}

    /// The simulated time.
    package var now: Duration { state.withLock { $0.now } }

    /// Reads the simulated time.
    package var clock: @Sendable () -> Duration { { self.now } }

    /// The number of timers that were due so far.
    package var timersFired: Int { state.withLock { $0.timersFired } }

    /// Calls `body` after that simulated time.
    package func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            let due = state.now + max(delay, .zero)
            // Timers for the same time keep their order.
            let index = state.timers.firstIndex { $0.due <= due } ?? state.timers.count
            state.timers.insert(Timer(due: due, body: body), at: index)
        }
    }

    /// The timer for everything that takes part.
    package var timer: DelayedCall { { self.after($0, $1) } }

    /// Waits for that simulated time.
    package func sleep(for delay: Duration) async {
        await withCheckedContinuation { continuation in after(delay) { continuation.resume() } }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs a task to its end on the calling thread.
    ///
    /// - Parameter limit: the most simulated time that it may take.
    package func run<Value: Sendable>(
        limit: Duration = .seconds(7200), _ body: @escaping @Sendable () async -> Value
    ) throws -> Value {
        let end = now + limit
        let box = Box<Value>()
        Task(executorPreference: self) {
            let value = await body()
            box.value.withLock { $0 = value }
        }
        while true {
            while let job = nextJob() { job.runSynchronously(on: asUnownedTaskExecutor()) }
            if let value = box.value.withLock({ $0 }) { return value }
            guard now <= end else { throw Failure.outOfTime }
            if let timer = nextTimer() { timer() } else if !waitForJob() { throw Failure.deadlock }
        }
    }

    /// Ends everything that runs or waits, as the end of its process would.
    package func endProcess() {
        state.withLock { state in
            state.jobs = []
            state.timers = []
        }
    }

    private func nextJob() -> UnownedJob? {
        state.withLock { state in state.jobs.isEmpty ? nil : state.jobs.removeFirst() }
    }

    private func nextTimer() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard let timer = state.timers.popLast() else { return nil }
            state.now = max(state.now, timer.due)
            state.timersFired += 1
            return timer.body
        }
    }

    /// A task may have gone to another thread for a moment, to the runtime's own for example.
    private func waitForJob() -> Bool {
        for _ in 0..<300 {
            if state.withLock({ !$0.jobs.isEmpty }) { return true }
            usleep(1000)
        }
        return false
    }
}
