import Synchronization

/// The destinations (directory and file name) that the transfers of this process use, each with the URL of its
/// download. Locks on disk separate processes only, and do not show which URL uses a name.
final class PlaceBoard: Sendable {
    private let users = Mutex<[Place: String]>([:])

    /// Returns the URL of the transfer of this process that writes to a directory and file name; `nil` if no transfer
    /// does.
    func user(of place: Place) -> String? { users.withLock { $0[place] } }

    /// Records that the transfer of the URL `source` uses a directory and file name, if no transfer uses them.
    ///
    /// - Returns: `true` if the place was free. One of several concurrent calls succeeds.
    func take(_ place: Place, by source: String) -> Bool {
        users.withLock { users in
            guard let other = users.updateValue(source, forKey: place) else { return true }
            users[place] = other
            return false
        }
    }

    /// Records that the transfer of the URL `source` uses a directory and file name, whatever was recorded before. The
    /// caller has locked the files on disk.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place] = source } }

    /// Removes the record that a transfer uses a directory and file name, so that another transfer can use them.
    func leave(_ place: Place) { users.withLock { $0[place] = nil } }
}
