import Synchronization

/// The destinations (directory and name) that the transfers of this process use, each with the URL of its download.
/// Locks on disk separate processes. Within a process, this board also shows whether the same URL or another one has a
/// name.
final class PlaceBoard: Sendable {
    private let users = Mutex<[Place: String]>([:])

    /// Returns the URL of the transfer that uses a place; `nil` if no transfer does.
    func user(of place: Place) -> String? { users.withLock { $0[place] } }

    /// Enters the URL `source` for a place if no transfer uses the place.
    ///
    /// - Returns: `true` if the place was free. One of several concurrent calls succeeds.
    func take(_ place: Place, by source: String) -> Bool {
        users.withLock { users in
            guard let other = users.updateValue(source, forKey: place) else { return true }
            users[place] = other
            return false
        }
    }

    /// Enters the URL `source` for a place whose lock on disk the caller holds, whatever was entered before.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place] = source } }

    /// Removes the entry of a place whose transfer has ended, so that another transfer can use the place.
    func leave(_ place: Place) { users.withLock { $0[place] = nil } }
}
