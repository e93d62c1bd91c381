import Glibc
import Synchronization
import TestServers
import Testing
import TowlineThreads

@Suite("The thread executor")
struct ThreadExecutorTests {
    private final class Seen: Sendable {
        let threads = Mutex<Set<UInt>>([])
        let order = Mutex<[Int]>([])
        let directories = Mutex<Set<String>>([])
        let isOver = Atomic<Bool>(false)

        let runs = Atomic<Int>(0)
        let running = Atomic<Int>(0)
        let mostRunning = Atomic<Int>(0)

        func noteThread() {
            _ = threads.withLock { $0.insert(ThreadTrace.current) }
            runs.add(1, ordering: .relaxed)
        }
        func note(_ number: Int) { order.withLock { $0.append(number) } }
    }

    @Test func allJobsRunOnTheServingThreadAndItsFewHelpers() async throws {
        let first = Seen()
        let executor = await ThreadExecutor.served { first.noteThread() }
        let serving = try #require(first.threads.withLock { $0.first })
        let seen = Seen()
        // Repeats until the serving thread has run a job: on a busy machine, its helper may run all jobs.
        for round in 1...1000 {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask(executorPreference: executor) {
                        seen.noteThread()
                        await Task.yield()
                        seen.noteThread()
                    }
                }
            }
            #expect(seen.runs.load(ordering: .relaxed) == round * 400)
            if round >= 10, seen.threads.withLock({ $0.contains(serving) }) { break }
        }
        #expect(seen.threads.withLock { $0.contains(serving) && $0.count <= 4 })
    }

    /// At most four threads run jobs that block, for example on a disk, regardless of the number of jobs.
    @Test func jobsThatWaitHaveFourThreads() async {
        let executor = await ThreadExecutor.served()
        let seen = Seen()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask(executorPreference: executor) {
                    seen.mostRunning.max(seen.running.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                    usleep(20_000)
                    seen.running.subtract(1, ordering: .relaxed)
                }
                // Adds more jobs while earlier jobs block.
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(seen.mostRunning.load(ordering: .relaxed) == 4)
    }

    @Test func aJobThatWaitsHoldsNoOther() async {
        let executor = await ThreadExecutor.served()
        let isReleased = AutoResetEvent()
        let seen = Seen()
        let waiting = Task(executorPreference: executor) {
            seen.running.add(1, ordering: .relaxed)
            return isReleased.wait(milliseconds: 20_000)
        }
        while seen.running.load(ordering: .relaxed) == 0 { await Task.yield() }
        let other = Task(executorPreference: executor) { isReleased.set() }
        await other.value
        #expect(await waiting.value, "the second job ended the wait of the first")
    }

    /// Jobs that were queued before a job blocked run on another thread, even if no further job is added.
    @Test func whatWaitsBehindAJobThatWaitsIsDone() async {
        let executor = await ThreadExecutor.served()
        let isReleased = AutoResetEvent()
        let isHeld = Task(executorPreference: executor) {
            // Both tasks are queued behind the current job.
            let waiting = Task(executorPreference: executor) { isReleased.wait(milliseconds: 20_000) }
            let other = Task(executorPreference: executor) { isReleased.set() }
            return (waiting, other)
        }
        let (waiting, other) = await isHeld.value
        await other.value
        #expect(await waiting.value, "the second ended the wait of the first")
    }

    @Test func timersComeInTheirTimeAlsoBesideJobs() async {
        let executor = await ThreadExecutor.served()
        let began = ContinuousClock.now
        let seen = Seen()
        let busy = Task(executorPreference: executor) {
            while !seen.isOver.load(ordering: .relaxed) { await Task.yield() }
        }
        await withCheckedContinuation { continuation in
            // The delays differ so much that the second timer is always due first.
            executor.after(.milliseconds(500)) {
                seen.note(500)
                continuation.resume()
            }
            executor.after(.milliseconds(20)) { seen.note(20) }
        }
        seen.isOver.store(true, ordering: .relaxed)
        await busy.value
        #expect(seen.order.withLock { $0 } == [20, 500])
        #expect(ContinuousClock.now - began >= .milliseconds(500))
        // The timer also works on an idle executor.
        let idle = ContinuousClock.now
        await withCheckedContinuation { continuation in executor.after(.milliseconds(30)) { continuation.resume() } }
        #expect(ContinuousClock.now - idle >= .milliseconds(30))
    }

    /// While a job occupies the thread that waited for the timers, another thread waits for the timers.
    @Test func timersComeInTheirTimeBesideALongJob() async {
        let executor = await ThreadExecutor.served()
        for _ in 0..<20 {
            let isReleased = AutoResetEvent()
            executor.after(.milliseconds(5)) { Task(executorPreference: executor) { usleep(100_000) } }
            executor.after(.milliseconds(15)) { isReleased.set() }
            #expect(await Task(executorPreference: executor) { isReleased.wait(milliseconds: 900) }.value)
        }
    }

    /// Helpers end when they have nothing to do. A job that then takes the only thread does not keep timers waiting.
    @Test func timersComeInTheirTimeBesideAJobOfTheOnlyThread() async throws {
        let executor = await ThreadExecutor.served()
        // A helper ends after a second without work.
        try await Task.sleep(for: .milliseconds(2500))
        let isReleased = AutoResetEvent()
        executor.after(.milliseconds(600)) { isReleased.set() }
        // The thread waits for the timer now.
        try await Task.sleep(for: .milliseconds(200))
        #expect(await Task(executorPreference: executor) { isReleased.wait(milliseconds: 3000) }.value)
    }

    /// A timer wakes only one of the waiting threads.
    @Test func aTimerWakesOneThread() async throws {
        let executor = await ThreadExecutor.served()
        let seen = Seen()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<40 {
                group.addTask(executorPreference: executor) {
                    _ = seen.directories.withLock { $0.insert(Self.threadDirectory) }
                    usleep(10_000)
                }
                // Adds more jobs while earlier jobs block.
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        let ids = seen.directories.withLock { $0 }
        #expect(ids.count > 2)
        let (count, before) = (200, Self.waits(of: ids))
        await withCheckedContinuation { continuation in
            for number in 1...count {
                executor.after(.milliseconds(2 * number)) { if number == count { continuation.resume() } }
            }
        }
        let waits = Self.waits(of: ids) - before
        #expect(waits > count / 4 && waits < count * 3 / 2, "\(waits)")
    }

    /// The directory of the calling thread below /proc: `PID/task/NUMBER`.
    private static var threadDirectory: String {
        var bytes = [Int8](repeating: 0, count: 64)
        readlink("/proc/thread-self", &bytes, bytes.count - 1)
        return String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Returns the number of waits of these threads so far.
    private static func waits(of threads: Set<String>) -> Int {
        threads.reduce(0) { sum, thread in
            guard let file = fopen("/proc/\(thread)/status", "r") else { return sum }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let text = String(decoding: bytes[..<fread(&bytes, 1, bytes.count, file)], as: UTF8.self)
            let line = text.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
            return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
        }
    }
}
