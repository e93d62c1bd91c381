import Glibc
import Synchronization

/// A task executor that runs jobs on the thread that calls `run`, on a second thread while more than one job waits, and
/// on more threads if these block on a disk. Short timers run on the same threads. A thread with a `LocalRunQueue` runs
/// the jobs that it keeps.
///
/// Intended for programs with many short tasks: the threads of the Swift runtime, including a clock thread, are never
/// started. The guarantees of actors do not depend on the thread that runs a job.
package final class ThreadExecutor: TaskExecutor {
    private struct Timer {
        let due: ContinuousClock.Instant
        let body: @Sendable () -> Void
    }

    /// A job and the executor that it runs on.
    typealias Job = (job: UnownedJob, executor: UnownedTaskExecutor)

    /// The jobs and timers that have not started, and the threads that run them.
    private struct Schedule {
        var jobs: [Job] = []
        /// The index of the next job.
        var next = 0
        /// The timers. The last one is due first.
        var timers: [Timer] = []
        /// The events of the threads that wait for work.
        var parked: [AutoResetEvent] = []
        /// `true` if the first parked thread waits for the next timer. Only one thread waits for timers, so that a
        /// timer wakes only one thread.
        var isTimed = false
        var threads = 0
        /// The thread that called `run` and never ends.
        var first: pthread_t?
        /// The time when the last job started or a thread was woken to start one.
        var lastBegun = ContinuousClock.now

        /// Removes and returns the event of a parked thread; `nil` if no thread is parked. The thread that waits for
        /// timers is returned last.
        mutating func unpark() -> AutoResetEvent? {
            let event = parked.popLast()
            if parked.isEmpty { isTimed = false }
            return event
        }

        mutating func unpark(at index: Int) -> AutoResetEvent {
            if index == 0 { isTimed = false }
            return parked.remove(at: index)
        }
    }

    /// The action for a new job, which is performed after the lock is released: none, wake a thread, or start a thread.
    private enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    private enum Work {
        case job(Job)
        case timer(@Sendable () -> Void)
        /// A wait of at most this number of milliseconds.
        case rest(Int)
    }

    /// The number of threads that work if enough jobs wait and no job blocks.
    private static let usualThreads = 2
    /// The time after which another thread helps, if no job has started since.
    private static let patience = Duration.milliseconds(5)
    private static let mostThreads = 4
    /// The time in milliseconds after which a helper thread without work ends, and the first thread checks for work.
    private static let idleLife = 1000

    private let state = Mutex(Schedule())

    /// Creates an executor without threads. `run` adds the first thread.
    package init() {}

    /// Starts a task and runs jobs on the calling thread for ever.
    package func run(_ body: @escaping @Sendable () async -> Void) -> Never {
        state.withLock { state in
            state.threads += 1
            state.first = pthread_self()
        }
        Task.detached(executorPreference: self) { await body() }
        let event = AutoResetEvent()
        while true { _ = work(event, stays: true) }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard !LocalRunQueue.keep(job, for: self) else { return }
        add(CollectionOfOne((job, asUnownedTaskExecutor())))
    }

    /// Adds jobs and wakes at most one thread, which wakes the next one if more jobs wait (`take`).
    func add(_ jobs: some Collection<Job>) {
        let call = state.withLock { state in
            state.jobs += jobs
            return whoHears(&state)
        }
        perform(call)
    }

    /// Runs `body` after a delay, or later if all threads are busy then. `body` must be short.
    package func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        let timer = Timer(due: .now.advanced(by: delay), body: body)
        let event: AutoResetEvent? = state.withLock { state in
            let index = state.timers.lastIndex { $0.due >= timer.due }.map { $0 + 1 } ?? 0
            state.timers.insert(timer, at: index)
            // Only the timer that is due next shortens the wait of a thread.
            guard index == state.timers.count - 1, !state.parked.isEmpty else { return nil }
            return state.isTimed ? state.unpark(at: 0) : state.unpark()
        }
        event?.set()
    }

    private func perform(_ call: Call) {
        switch call {
        case .nobody: break
        case .wake(let event): event.set()
        case .thread:
            guard !WorkThread.tryStart({ self.help() }) else { break }
            let event = state.withLock { state in
                state.threads -= 1
                // Another thread may have relied on the new thread meanwhile.
                return state.next < state.jobs.count ? state.unpark() : nil
            }
            event?.set()
        }
    }

    /// Returns the action for a waiting job: none, wake a parked thread, or start another thread.
    private func whoHears(_ state: inout Schedule) -> Call {
        let active = state.threads - state.parked.count
        let isStuck = state.lastBegun.duration(to: .now) > Self.patience
        // The first thread runs the jobs that its own job added when that job ends, usually at once.
        let isOwn = state.first.map { pthread_equal($0, pthread_self()) != 0 } ?? false
        guard active == 0 || isStuck || active < Self.usualThreads && !isOwn else { return .nobody }
        return another(&state)
    }

    private func another(_ state: inout Schedule) -> Call {
        if let event = state.unpark() {
            state.lastBegun = .now
            return .wake(event)
        }
        guard (1..<Self.mostThreads).contains(state.threads) else { return .nobody }
        state.threads += 1
        state.lastBegun = .now
        return .thread
    }

    /// Runs jobs and timers until none is ready, then waits once for more.
    ///
    /// - Returns: `false` if no work arrived for `idleLife` and the thread must end. Never `false` if `stays` is
    ///   `true`.
    private func work(_ event: AutoResetEvent, stays: Bool) -> Bool {
        while true {
            let (work, call) = take(parking: event)
            perform(call)
            switch work {
            case .job(let (job, executor)): job.runSynchronously(on: executor)
            case .timer(let body): body()
            case .rest(let milliseconds):
                let isWoken = event.wait(milliseconds: milliseconds)
                return state.withLock { state in
                    // A thread that is still parked was not woken by another thread.
                    guard let index = state.parked.firstIndex(where: { $0 === event }) else { return true }
                    _ = state.unpark(at: index)
                    if stays || isWoken || !state.timers.isEmpty || state.next < state.jobs.count { return true }
                    state.threads -= 1
                    return false
                }
            }
        }
    }

    private func help() {
        let event = AutoResetEvent()
        while work(event, stays: false) {}
    }

    /// Returns the next work, and the thread to wake for the remaining work, because the job may block on a disk.
    private func take(parking event: AutoResetEvent) -> (Work, Call) {
        state.withLock { state in
            if let next = state.timers.last, next.due <= .now {
                state.timers.removeLast()
                return (.timer(next.body), .nobody)
            }
            guard state.next < state.jobs.count else {
                state.jobs.removeAll(keepingCapacity: state.jobs.count < 1024)
                state.next = 0
                guard !state.isTimed, let due = state.timers.last?.due else {
                    state.parked.append(event)
                    return (.rest(Self.idleLife), .nobody)
                }
                state.parked.insert(event, at: 0)
                state.isTimed = true
                let rest = Int(ContinuousClock.now.duration(to: due) / .milliseconds(1)) + 1
                return (.rest(max(0, rest)), .nobody)
            }
            if state.next >= 1024, state.next * 2 >= state.jobs.count {
                state.jobs.removeFirst(state.next)
                state.next = 0
            }
            let job = state.jobs[state.next]
            state.next += 1
            state.lastBegun = .now
            let isAlone = state.threads - state.parked.count < Self.usualThreads
            let leavesMore = state.next < state.jobs.count
            if leavesMore && isAlone { return (.job(job), another(&state)) }
            // This thread may have waited for timers, and the job may take long. Another thread takes over the timers.
            guard !state.isTimed, !state.timers.isEmpty else { return (.job(job), .nobody) }
            if let event = state.unpark() { return (.job(job), .wake(event)) }
            return (.job(job), state.threads < Self.usualThreads ? another(&state) : .nobody)
        }
    }
}
