import Synchronization

/// The places that the transfers of this process use, each with its source. Locks on disk separate processes. This
/// board distinguishes two downloads of one process that want one name from two processes with one download.
final class PlaceBoard: Sendable {
    private let users = Mutex<[Place: String]>([:])

    /// Returns the source of the transfer that uses a place; `nil` if no transfer does.
    func user(of place: Place) -> String? { users.withLock { $0[place] } }

    /// Takes a place if no transfer uses it.
    ///
    /// - Returns: `true` if the place was free. One of several concurrent calls succeeds.
    func take(_ place: Place, by source: String) -> Bool {
        users.withLock { users in
            guard let other = users.updateValue(source, forKey: place) else { return true }
            users[place] = other
            return false
        }
    }

    /// Takes a place whose lock on disk the caller holds.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place] = source } }

    /// Releases a place.
    func leave(_ place: Place) { users.withLock { $0[place] = nil } }
}
