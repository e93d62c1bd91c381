internal import TowlineCore
import Synchronization

/// The destinations (directory and file name) that the transfers of this process use, each with the URL of its
/// download. Locks on disk separate processes only, and do not show which URL uses a name.
///
/// A batch also remembers the destinations of its earlier downloads: whatever may be overwritten, it never replaces one
/// of its own files with that of another URL.
final class PlaceBoard: Sendable {
    /// The maximum number of destinations that are remembered. After a forgotten one, only the locks on disk count.
    private static let most = 100_000

    private let remembers: Bool
    /// The URL of each destination. Both are hashes: a batch may have millions of files.
    private let users = Mutex<[Int: Int]>([:])

    init(remembersEarlier remembers: Bool = false) { self.remembers = remembers }

    /// Returns whether a directory and file name is the destination of another URL than `source`; `nil`: of any URL.
    func isTaken(_ place: Place, besides source: String?) -> Bool {
        users.withLock { users in users[place.hashValue].map { $0 != source?.hashValue } ?? false }
    }

    /// Records that the transfer of the URL `source` uses a directory and file name, if no transfer uses them.
    ///
    /// - Returns: `true` if the place was free. One of several concurrent calls succeeds, unless a batch repeats a URL.
    func take(_ place: Place, by source: String) -> Bool {
        users.withLock { users in
            let (key, source) = (place.hashValue, source.hashValue)
            guard users[key] == nil || remembers && users[key] == source else { return false }
            if users.count >= Self.most { users = [:] }
            users[key] = source
            return true
        }
    }

    /// Records that the transfer of the URL `source` uses a directory and file name, whatever was recorded before. The
    /// caller has locked the files on disk.
    func occupy(_ place: Place, by source: String) { users.withLock { $0[place.hashValue] = source.hashValue } }

    /// Records that the transfer no longer uses a directory and file name. Under the policy `rename` another URL may use
    /// it next, because its file gets a number.
    func leave(_ place: Place, _ policy: ExistingPolicy) {
        if !remembers || policy == .rename { users.withLock { $0[place.hashValue] = nil } }
    }
}
