import Synchronization
internal import TowlineCore

/// Which unfinished downloads lie in a directory, by where they came from.
///
/// A batch of a million files asks for each of them; reading the directory each time would cost more than everything
/// else. What this process begins is entered at once; what others began is seen at the next reading, which comes after
/// a while that grows with what it takes. A name found here is a hint: whoever uses it looks at the file itself.
final class JournalIndex: Sendable {
    private struct State {
        var names: [String: Set<String>] = [:]
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
    /// - Parameter read: gives all of the directory's pairs of source and name. Called under a lock.
    func names(of source: String, read: () -> [(source: String, name: String)]) -> [String] {
        state.withLock { state in
            let now = ContinuousClock.now
            let life = max(Self.shortestLife, state.cost * Self.lifeInReadings)
            if state.readAt.map({ now - $0 > life }) ?? true {
                state.names = [:]
                for (source, name) in read() { state.names[source, default: []].insert(name) }
                state.readAt = now
                state.cost = ContinuousClock.now - now
            }
            return state.names[source, default: []].sorted()
        }
    }

    /// This process began a download.
    func add(_ source: String, _ name: String) {
        state.withLock { state in _ = state.names[source, default: []].insert(name) }
    }
}
