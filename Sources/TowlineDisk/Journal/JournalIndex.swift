import Synchronization
internal import TowlineCore

/// An index of the unfinished downloads in a directory (docs/internals/directory-index.md). Downloads of this process
/// are added immediately; those of other processes appear after the next reading. A name from the index is a hint: the
/// caller must check the file.
final class JournalIndex: Sendable {
    /// The unfinished downloads that were found when the directory was read.
    struct Listing: Sendable {
        /// The source URL, as `LinkIdentity.group`, and the final name of each unfinished download that has a journal in
        /// the directory.
        var journals: [(group: String, name: String)] = []
        /// The final names of all files that have a part file or a journal in the directory.
        var leftovers: Set<String> = []
    }

    /// The unfinished downloads in the directory at its last reading, and when and how quickly it was read.
    private struct Snapshot {
        var names: [String: Set<String>] = [:]
        /// The final names of files that had a part file or a journal at the last reading; `nil` if the directory could
        /// not be read.
        var leftovers: Set<String>?
        var readAt: ContinuousClock.Instant?
        var cost = Duration.zero
    }

    /// The minimum time between two readings of the directory.
    static let shortestLife = Duration.seconds(1)
    /// The time before the directory is read again, as a multiple of the duration of the last reading.
    static let lifeInReadings = 50

    private let state = Mutex(Snapshot())
    /// The record of the last sync of the directory by this process, which avoids unneeded syncs.
    let sync = DirectorySync()

    /// Returns the final names of unfinished downloads whose URL has the `LinkIdentity.group`, sorted. Reads the
    /// directory first if the last reading is too old.
    ///
    /// - Parameter read: reads the directory; returns `nil` on failure. Called under a lock.
    func names(of group: String, read: () -> Listing?) -> [String] {
        state.withLock { state in
            let now = ContinuousClock.now
            let life = max(Self.shortestLife, state.cost * Self.lifeInReadings)
            if state.readAt.map({ now - $0 > life }) ?? true {
                state.names = [:]
                let listing = read()
                for (group, name) in listing?.journals ?? [] { state.names[group, default: []].insert(name) }
                state.leftovers = listing?.leftovers
                state.readAt = now
                state.cost = ContinuousClock.now - now
            }
            // Most directories have no unfinished downloads.
            return state.names.isEmpty ? [] : state.names[group, default: []].sorted()
        }
    }

    /// Returns whether a part file or a journal of the file with this final name may have existed when the directory
    /// was last read; `true` if it could not be read.
    func mayHoldLeftover(of name: String) -> Bool { state.withLock { $0.leftovers?.contains(name) ?? true } }

    /// Records that this process started a download with the final name `name`. `group`: the `LinkIdentity.group` of its
    /// URL.
    func add(_ group: String, _ name: String) {
        state.withLock { state in _ = state.names[group, default: []].insert(name) }
    }
}
