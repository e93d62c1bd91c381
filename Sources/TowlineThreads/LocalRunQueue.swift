import CTowline

/// The jobs that a thread with a loop of its own runs to completion itself, instead of handing them to a `ThreadExecutor`'s
/// threads: tasks that go on because of what it has just found out. No other thread is woken for them, and what they touch is
/// in this one's cache already. They must be short: meanwhile its loop waits, and nobody else takes them.
///
/// Belongs to the thread that made it, and is used and dropped there; nothing here is locked.
package final class LocalRunQueue {
    /// Whose thread it is.
    private let owner: AnyObject
    private var jobs: [ThreadExecutor.Job] = []
    /// Whose jobs they are.
    private var executor: ThreadExecutor?
    /// Index of the next one.
    private var next = 0
    private var isKeeping = false
    private var isRunning = false

    /// So many jobs run before the loop has its turn again.
    private static let mostAtOnce = 256

    /// For the calling thread, which has none.
    package init(of owner: AnyObject) {
        self.owner = owner
        towline_set_thread_local(Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { towline_set_thread_local(nil) }

    private static var current: LocalRunQueue? {
        towline_thread_local().map { Unmanaged<LocalRunQueue>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether the calling thread is that owner's.
    package static func isOwned(by owner: AnyObject) -> Bool { current?.owner === owner }

    /// Whether that owner's thread calls, from a job that `run` runs.
    package static func isRunning(of owner: AnyObject) -> Bool {
        guard let current else { return false }
        return current.owner === owner && current.isRunning
    }

    /// Takes a job that became ready on the calling thread, if that keeps them at the moment.
    static func keep(_ job: UnownedJob, for executor: ThreadExecutor) -> Bool {
        guard let queue = current, queue.isKeeping else { return false }
        queue.jobs.append((job, executor.asUnownedTaskExecutor()))
        queue.executor = executor
        return true
    }

    /// Calls `body`; jobs of a `ThreadExecutor` that become ready meanwhile on the calling thread, if it keeps none for itself,
    /// are handed over together: who runs them is woken once instead of for each. Of one executor.
    package static func together(_ body: () -> Void) {
        guard current == nil else { return body() }
        let queue = LocalRunQueue(of: Collector())
        queue.keeping(body)
        queue.executor?.add(queue.jobs)
    }

    /// Owns what is collected on a thread that runs nothing itself.
    private final class Collector {}

    /// Calls `body`; jobs of a `ThreadExecutor` that become ready meanwhile wait for `run`.
    package func keeping(_ body: () -> Void) {
        let kept = isKeeping
        isKeeping = true
        defer { isKeeping = kept }
        body()
    }

    /// Whether no job waits.
    package var isEmpty: Bool { jobs.isEmpty }

    /// Runs the jobs that wait and those that become ready by that, but not for ever: some may be left.
    ///
    /// - Returns: whether it ran any.
    package func run() -> Bool {
        guard !jobs.isEmpty else { return false }
        isRunning = true
        defer { isRunning = false }
        keeping {
            for _ in 0..<Self.mostAtOnce {
                guard next < jobs.count else { break }
                let (job, executor) = jobs[next]
                next += 1
                job.runSynchronously(on: executor)
            }
        }
        if next == jobs.count { jobs.removeAll(keepingCapacity: true) } else { jobs.removeFirst(next) }
        next = 0
        return true
    }
}
