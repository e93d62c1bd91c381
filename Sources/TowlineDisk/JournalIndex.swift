import Synchronization
internal import TowlineCore

/// Which unfinished downloads lie in a directory, by where they came from, and which names something has there.
///
/// A batch of a million files asks for each of them; reading the directory each time would cost more than everything
/// else. What this process begins is entered at once; what others began is seen at the next reading, which comes after
/// a while that grows with what it takes. A name found here is a hint: whoever uses it looks at the file itself.
final class JournalIndex: Sendable {
    /// What a reading finds.
    struct Listing: Sendable {
        /// Of each journal where its download came from, and the file's final name.
        var journals: [(source: String, name: String)] = []
        /// The final names of all files of which anything unfinished is there.
        var leftovers: Set<String> = []
        /// Every name.
        var taken: NameFilter
    }

    private struct State {
        var names: [String: Set<String>] = [:]
        /// `nil`: the directory could not be read.
        var leftovers: Set<String>?
        /// `nil`: it could not be read.
        var taken: NameFilter?
        var readAt: ContinuousClock.Instant?
        var cost = Duration.zero
    }

    /// A reading is good for so long, at least.
    static let shortestLife = Duration.seconds(1)
    /// And for so many times what it took.
    static let lifeInReadings = 50

    private let state = Mutex(State())

    /// The names of downloads from `source`, sorted.
    ///
    /// - Parameter read: reads the directory; `nil` if that cannot be done. Called under a lock.
    func names(of source: String, read: () -> Listing?) -> [String] {
        state.withLock { state in
            let now = ContinuousClock.now
            let life = max(Self.shortestLife, state.cost * Self.lifeInReadings)
            if state.readAt.map({ now - $0 > life }) ?? true {
                state.names = [:]
                let listing = read()
                for (source, name) in listing?.journals ?? [] { state.names[source, default: []].insert(name) }
                state.leftovers = listing?.leftovers
                state.taken = listing?.taken
                state.readAt = now
                state.cost = ContinuousClock.now - now
            }
            // In most directories nothing is unfinished.
            return state.names.isEmpty ? [] : state.names[source, default: []].sorted()
        }
    }

    /// Whether something unfinished of the file may have been there at the last reading.
    func mayHoldLeftover(of name: String) -> Bool { state.withLock { $0.leftovers?.contains(name) ?? true } }

    /// Whether something may have had that name at the last reading, or was given it by this process since then.
    func mayHold(_ name: String) -> Bool { state.withLock { $0.taken?.mayContain(name) ?? true } }

    /// This process gave a file that name.
    func gave(_ name: String) {
        state.withLock { $0.taken?.insert(name) }
    }

    /// This process began a download.
    func add(_ source: String, _ name: String) {
        state.withLock { state in _ = state.names[source, default: []].insert(name) }
    }
}
