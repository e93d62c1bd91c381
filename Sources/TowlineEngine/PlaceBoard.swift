import Synchronization

/// Which places the transfers of this process are at, and for which source. The locks on disk keep processes
/// apart; this tells two downloads of one process that want one name from two processes at one download.
final class PlaceBoard: Sendable {
    private let users = Mutex<[Place: String]>([:])

    /// Who is at a place.
    func user(of place: Place) -> String? { users.withLock { $0[place] } }

    /// Takes a place.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place] = source } }

    /// Leaves a place.
    func leave(_ place: Place) { users.withLock { $0[place] = nil } }
}
