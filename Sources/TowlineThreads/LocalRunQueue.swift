import CTowline

/// A queue of jobs that a thread with an event loop runs itself, instead of the threads of a `ThreadExecutor`.
///
/// The jobs are tasks that an event of this loop made ready. No other thread is woken for them, and their data is
/// already in the cache of this thread. The jobs must be short, because the loop waits and no other thread runs them.
///
/// Belongs to the thread that created it, and is used and released only on that thread, without a lock.
package final class LocalRunQueue {
    /// The object that the thread works for.
    private let owner: AnyObject
    private var jobs: [ThreadExecutor.Job] = []
    /// The executor of the jobs; `nil` before the first job.
    private var executor: ThreadExecutor?
    /// The index of the next job.
    private var next = 0
    private var isKeeping = false
    private var isRunning = false

    /// The maximum number of jobs in one call of `run`, so that the loop can handle events in between.
    private static let mostAtOnce = 256

    /// Creates the queue of the calling thread, which must not have a queue yet.
    package init(of owner: AnyObject) {
        self.owner = owner
        towline_set_thread_local(Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { towline_set_thread_local(nil) }

    private static var current: LocalRunQueue? {
        towline_thread_local().map { Unmanaged<LocalRunQueue>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Returns whether the calling thread belongs to this owner.
    package static func isOwned(by owner: AnyObject) -> Bool { current?.owner === owner }

    /// Returns whether the calling thread belongs to this owner and currently runs a job in `run`.
    package static func isRunning(of owner: AnyObject) -> Bool {
        guard let current else { return false }
        return current.owner === owner && current.isRunning
    }

    /// Adds a job that became ready on the calling thread, if this thread currently keeps jobs.
    /// Returns whether the job was added.
    static func keep(_ job: UnownedJob, for executor: ThreadExecutor) -> Bool {
        guard let queue = current, queue.isKeeping else { return false }
        queue.jobs.append((job, executor.asUnownedTaskExecutor()))
        queue.executor = executor
        return true
    }

    /// Calls `body` and then adds the jobs that became ready on the calling thread to their `ThreadExecutor` together,
    /// so that its threads are woken once. The jobs must have the same executor. A thread with a queue only calls
    /// `body`.
    package static func together(_ body: () -> Void) {
        guard current == nil else { return body() }
        let queue = LocalRunQueue(of: Collector())
        queue.keeping(body)
        queue.executor?.add(queue.jobs)
    }

    /// The owner of the temporary queue of a thread that runs no jobs itself.
    private final class Collector {}

    /// Calls `body`. Jobs of a `ThreadExecutor` that become ready during the call are kept for `run`.
    package func keeping(_ body: () -> Void) {
        let kept = isKeeping
        isKeeping = true
        defer { isKeeping = kept }
        body()
    }

    /// Returns whether no job waits.
    package var isEmpty: Bool { jobs.isEmpty }

    /// Runs the waiting jobs and the jobs that become ready during the call, at most 256. More jobs may be left.
    ///
    /// - Returns: whether a job ran.
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
