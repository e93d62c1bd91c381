import Synchronization
internal import GRDB

/// Writes that wait for the next transaction. Those that come while one is being committed share the next: a sync
/// costs the same for one change as for a hundred.
final class CommitQueue: Sendable {
    /// One caller's write.
    struct Write: Sendable {
        /// Gets a transaction of its own, because it is long.
        ///
        /// In a savepoint SQLite keeps what each page was before, and goes through all of that at the end of each
        /// statement: the time would grow with the square of the length.
        let isAlone: Bool
        /// Does it; the result is what tells the caller, once it is durable.
        let perform: @Sendable (Database) throws -> @Sendable () -> Void
        /// Tells the caller that it did not happen.
        let fail: @Sendable (any Error) -> Void
    }

    private struct State {
        var waiting: [Write] = []
        var isRunning = false
    }

    /// As many share a transaction at most.
    private static let most = 256
    private let state = Mutex(State())

    /// Adds one.
    /// - Returns: whether somebody has to be asked to `take`.
    func add(_ write: Write) -> Bool {
        state.withLock { state in
            state.waiting.append(write)
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// The next ones; none: it is over until `add` asks again.
    func take() -> [Write] {
        state.withLock { state in
            let shared = state.waiting.prefix(CommitQueue.most).prefix { !$0.isAlone }
            let next = Array(shared.isEmpty ? state.waiting.prefix(1) : shared)
            state.waiting.removeFirst(next.count)
            state.isRunning = !next.isEmpty
            return next
        }
    }

    /// Performs all in one transaction. Each succeeds or fails by itself; what this throws, all fail with.
    static func commit(_ writes: [Write], to queue: DatabaseQueue) throws -> [@Sendable () -> Void] {
        var ends: [@Sendable () -> Void] = []
        try queue.inTransaction(.immediate) { database in
            ends.removeAll()
            if writes.count == 1 {
                ends.append(try writes[0].perform(database))
                return .commit
            }
            for write in writes {
                do {
                    try database.inSavepoint {
                        ends.append(try write.perform(database))
                        return .commit
                    }
                } catch let error where database.isInsideTransaction && !RegistryFailure.isOfDatabase(error) {
                    ends.append { write.fail(error) }
                }
            }
            return .commit
        }
        return ends
    }
}
