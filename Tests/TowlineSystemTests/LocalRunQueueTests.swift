import Glibc
import TestServers
import Testing
import TowlineThreads

@Suite("Tasks that resume on the thread that made them ready")
struct LocalRunQueueTests {
    /// Runs `body` on a separate thread with a queue.
    private static func onThread<Value: Sendable>(_ body: @escaping @Sendable (LocalRunQueue) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            WorkThread.start {
                let owner = ThreadTrace()
                let queue = LocalRunQueue(of: owner)
                continuation.resume(returning: withExtendedLifetime(owner) { body(queue) })
            }
        }
    }

    /// Starts a task that waits for a signal and then records its thread `steps` times.
    private static func waiting(
        on executor: any TaskExecutor, _ trace: ThreadTrace, steps: Int = 1
    ) async -> (Task<Void, Never>, AsyncStream<Void>.Continuation) {
        let (isReached, reached) = AsyncStream<Void>.makeStream()
        let (signals, signal) = AsyncStream<Void>.makeStream()
        let task = Task(executorPreference: executor) {
            var iterator = signals.makeAsyncIterator()
            reached.finish()
            await iterator.next()
            for step in 0..<steps {
                if step > 0 { await Task.yield() }
                trace.note()
            }
        }
        for await _ in isReached {}
        // Gives the task time to reach its wait, which cannot be observed.
        try? await Task.sleep(for: .milliseconds(50))
        return (task, signal)
    }

    @Test func whatGoesOnInsideIsRunThereAndWhatGoesOnOutsideIsNot() async {
        let executor = await ThreadExecutor.served()
        let (inner, outer) = (ThreadTrace(), ThreadTrace())
        let (first, insideSignal) = await Self.waiting(on: executor, inner, steps: 3)
        let (second, outsideSignal) = await Self.waiting(on: executor, outer)
        let (thread, before, after) = await Self.onThread { queue in
            queue.keeping { insideSignal.yield() }
            let before = (queue.isEmpty, inner.threads.count)
            outsideSignal.yield()
            let hasRun = queue.run()
            return (ThreadTrace.current, before, (hasRun, queue.isEmpty, queue.run()))
        }
        await first.value
        await second.value
        #expect(before.0 == false && before.1 == 0, "the job waits for `run`")
        #expect(after.0 && after.1 && !after.2, "one call ran all jobs, including jobs that became ready meanwhile")
        #expect(inner.threads == [thread, thread, thread])
        #expect(outer.threads.count == 1 && outer.threads[0] != thread)
    }

    /// Tasks that a thread makes ready in `together` start only after the closure has returned.
    @Test func togetherNoneGoesOnBeforeAllMay() async {
        let executor = await ThreadExecutor.served()
        let traces = (0..<3).map { _ in ThreadTrace() }
        var tasks: [(task: Task<Void, Never>, signal: AsyncStream<Void>.Continuation)] = []
        for trace in traces { tasks.append(await Self.waiting(on: executor, trace)) }
        let signals = tasks.map(\.signal)
        let (thread, before) = await withCheckedContinuation { continuation in
            WorkThread.start {
                var before: [Int] = []
                LocalRunQueue.together {
                    for signal in signals { signal.yield() }
                    // A thread that was woken for the first task would have run by now.
                    usleep(50_000)
                    before = traces.map(\.threads.count)
                }
                continuation.resume(returning: (ThreadTrace.current, before))
            }
        }
        #expect(before == [0, 0, 0])
        for task in tasks { await task.task.value }
        #expect(traces.allSatisfy { $0.threads.count == 1 && $0.threads[0] != thread })
    }

    /// A task that yields repeatedly does not block the event loop.
    @Test func aRunEnds() async {
        let executor = await ThreadExecutor.served()
        let trace = ThreadTrace()
        let (task, signal) = await Self.waiting(on: executor, trace, steps: 1000)
        let counts = await Self.onThread { queue in
            queue.keeping { signal.yield() }
            var counts: [Int] = []
            while !queue.isEmpty {
                _ = queue.run()
                counts.append(trace.threads.count)
            }
            return counts
        }
        await task.value
        #expect(counts.count >= 3 && counts.last == 1000, "\(counts)")
        #expect(Set(trace.threads).count == 1)
    }

    @Test func aThreadKnowsWhoseItIs() async {
        let other = ThreadTrace()
        let known = await withCheckedContinuation { continuation in
            WorkThread.start {
                let owner = ThreadTrace()
                let before = LocalRunQueue.isOwned(by: owner)
                let during = withExtendedLifetime(LocalRunQueue(of: owner)) { _ in
                    (LocalRunQueue.isOwned(by: owner), LocalRunQueue.isOwned(by: other))
                }
                continuation.resume(returning: [before, during.0, during.1, LocalRunQueue.isOwned(by: owner)])
            }
        }
        #expect(known == [false, true, false, false], "before, with a queue, for another owner, after its release")
    }
}
