import Synchronization

/// Which places the transfers of this process are at, and for which source. The locks on disk keep processes
/// apart; this tells two downloads of one process that want one name from two processes at one download.
final class PlaceBoard: Sendable {
    private let users = Mutex<[Place: String]>([:])

    /// Who is at a place.
    func user(of place: Place) -> String? { users.withLock { $0[place] } }

    /// Takes a place that nobody is at.
    ///
    /// - Returns: whether it was free. Of several that come at once one gets it.
    func take(_ place: Place, by source: String) -> Bool {
        users.withLock { users in
            guard let other = users.updateValue(source, forKey: place) else { return true }
            users[place] = other
            return false
        }
    }

    /// Takes a place whose lock on disk one has.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place] = source } }

    /// Leaves a place.
    func leave(_ place: Place) { users.withLock { $0[place] = nil } }
}
