import Glibc
import Synchronization

/// Runs tasks on the thread that serves it, and on a second one while there is more than one job to do; on more where these
/// wait for a disk. Timers of a moment come from the same threads. A thread that keeps jobs for itself (`LocalRunQueue`)
/// runs those.
///
/// For a program whose tasks are many and short: the runtime's own threads, a clock's among them, are not even started.
/// Actors keep what they promise: who runs a job does not matter to them.
package final class ThreadExecutor: TaskExecutor {
    private struct Timer {
        let due: ContinuousClock.Instant
        let body: @Sendable () -> Void
    }

    /// What is to run, and as whose.
    typealias Job = (job: UnownedJob, executor: UnownedTaskExecutor)

    private struct State {
        var jobs: [Job] = []
        /// Index of the next one.
        var next = 0
        /// The last one is due first.
        var timers: [Timer] = []
        /// Threads that wait for something to do.
        var parked: [AutoResetEvent] = []
        /// The first parked thread waits for the next timer. If all waited, each timer would wake all of them.
        var isTimed = false
        var threads = 0
        /// The one that stays.
        var first: pthread_t?
        /// When the last job was begun, or somebody was called to begin one.
        var lastBegun = ContinuousClock.now

        /// Returns a thread to wake, the one that waits for timers last.
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

    /// Who has to hear of a new job, once the lock is free again.
    private enum Call {
        case nobody
        case wake(AutoResetEvent)
        case thread
    }

    /// What there is for a thread.
    private enum Work {
        case job(Job)
        case timer(@Sendable () -> Void)
        /// Nothing, for so many milliseconds.
        case rest(Int)
    }

    /// So many threads work as long as there is enough to do.
    private static let usualThreads = 2
    /// Where all of them are at jobs that take longer than this, more help.
    private static let patience = Duration.milliseconds(5)
    private static let mostThreads = 4
    /// A helper that had nothing to do for so many milliseconds ends; the first thread looks again.
    private static let idleLife = 1000

    private let state = Mutex(State())

    /// An executor that nobody serves yet.
    package init() {}

    /// Begins a task and serves from the calling thread, for ever.
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

    /// Hands jobs over, and calls one thread for them: where there are more it calls the next (`take`).
    func add(_ jobs: some Collection<Job>) {
        let call = state.withLock { state in
            state.jobs += jobs
            return whoHears(&state)
        }
        perform(call)
    }

    /// Runs `body` after a delay, or as soon as a job that is under way then has ended; it must not take long.
    package func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        let timer = Timer(due: .now.advanced(by: delay), body: body)
        let event: AutoResetEvent? = state.withLock { state in
            let index = state.timers.lastIndex { $0.due >= timer.due }.map { $0 + 1 } ?? 0
            state.timers.insert(timer, at: index)
            // Only the timer that is due next changes how long a thread may wait.
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
                // Meanwhile somebody may have relied on it.
                return state.next < state.jobs.count ? state.unpark() : nil
            }
            event?.set()
        }
    }

    /// Whether a job that waits is to have another thread, and which.
    private func whoHears(_ state: inout State) -> Call {
        let active = state.threads - state.parked.count
        let isStuck = state.lastBegun.duration(to: .now) > Self.patience
        // What a job brings itself it will see to when it ends, as a rule at once.
        let isOwn = state.first.map { pthread_equal($0, pthread_self()) != 0 } ?? false
        guard active == 0 || isStuck || active < Self.usualThreads && !isOwn else { return .nobody }
        return another(&state)
    }

    private func another(_ state: inout State) -> Call {
        if let event = state.unpark() {
            state.lastBegun = .now
            return .wake(event)
        }
        guard (1..<Self.mostThreads).contains(state.threads) else { return .nobody }
        state.threads += 1
        state.lastBegun = .now
        return .thread
    }

    /// Does what there is, and waits for more.
    ///
    /// - Returns: `false` if nothing came for long, and the thread ends, being counted no more; never where it `stays`.
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
                    // Among the parked still: nobody woke it.
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

    /// The next thing to do, and who is to do what it leaves behind: the job may wait for a disk.
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
            // This thread may have waited for timers, and the job may take long.
            guard !state.isTimed, !state.timers.isEmpty else { return (.job(job), .nobody) }
            if let event = state.unpark() { return (.job(job), .wake(event)) }
            return (.job(job), state.threads < Self.usualThreads ? another(&state) : .nobody)
        }
    }
}
