import Synchronization
internal import GRDB

/// A queue of writes that wait for the next transaction. Writes that arrive during a commit share the next
/// transaction, because a sync costs the same for one change as for a hundred.
final class CommitQueue: Sendable {
    struct Write: Sendable {
        /// `true` for a long write, which gets its own transaction.
        ///
        /// In a savepoint SQLite keeps the old content of each page, and scans all of it at the end of each
        /// statement: the time would grow with the square of the length.
        let isAlone: Bool
        /// Performs the write. The returned function reports success to the caller, and is called once the write is
        /// durable.
        let perform: @Sendable (Database) throws -> @Sendable () -> Void
        /// Reports to the caller that the write failed.
        let fail: @Sendable (any Error) -> Void
    }

    /// The writes that no consumer has taken, and whether a consumer runs.
    private struct Pending {
        var waiting: [Write] = []
        var isRunning = false
    }

    /// The maximum number of writes in a transaction.
    private static let most = 256
    private let state = Mutex(Pending())

    /// Adds a write.
    /// - Returns: `true` if the caller must start a consumer, which calls `take` until the queue is empty.
    func add(_ write: Write) -> Bool {
        state.withLock { state in
            state.waiting.append(write)
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Takes the writes of the next transaction. If the result is empty, the consumer ends; `add` requests another one.
    func take() -> [Write] {
        state.withLock { state in
            let shared = state.waiting.prefix(CommitQueue.most).prefix { !$0.isAlone }
            let next = Array(shared.isEmpty ? state.waiting.prefix(1) : shared)
            state.waiting.removeFirst(next.count)
            state.isRunning = !next.isEmpty
            return next
        }
    }

    /// Performs writes in one transaction. Each write succeeds or fails separately; an error thrown here fails all of
    /// them.
    /// - Returns: The functions that report the outcomes to the callers.
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
