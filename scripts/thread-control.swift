// What `scripts/torture threads` tries its sanitizer on: a mutex that threads wait for, which must pass, and, with
// -D RACE, a count beside it that nothing guards, which must not.
import Dispatch
import Glibc
import Synchronization

/// `guarded` is behind its lock; `bare` is the race.
final class Counts: @unchecked Sendable {
    private let guarded = Mutex(0)
    private var bare = 0

    func add() {
        for _ in 0..<1000 {
            #if RACE
                bare += 1
            #endif
            guarded.withLock { count in
                count += 1
                // Holds the lock for so long that the other thread has to wait.
                if count % 100 == 0 { usleep(1000) }
            }
        }
    }
}

let counts = Counts()
DispatchQueue.concurrentPerform(iterations: 2) { _ in counts.add() }
