import Glibc
import Synchronization
internal import TowlineCore

/// Syncs one directory, which makes the names in it durable, unless no name changed since its last sync here. The
/// files of a list that are already finished thus need one sync of their directory, and not one each.
final class DirectorySync: Sendable {
    /// The change time that the directory had before its last sync: while it is unchanged, no sync is needed. `nil` if
    /// the next sync is needed in any case.
    private let synced = Mutex<Duration?>(nil)

    /// Makes the names in `folder` durable that exist at the time of the call. Throws if the sync fails.
    func synchronize(_ folder: Folder) throws(TowlineError) {
        // The lock is held during the sync: a caller that waits for it then probably needs no sync of its own.
        let result = synced.withLock { synced in
            Result { () throws(TowlineError) in
                let changed = try folder.descriptor.status().changed
                guard changed != synced else { return }
                synced = nil
                try folder.descriptor.synchronizeAll()
                if folder.isLocal, Self.isPast(changed) { synced = changed }
            }
        }
        try result.get()
    }

    /// Returns whether any later change of a directory has another change time than `changed`. An unchanged time then
    /// proves that no name has changed, and no sync is needed.
    ///
    /// The kernel takes change times from a clock that advances in steps of up to 10 ms, and some file systems store
    /// hundredths of a second, so that a change right after another one may have the same time. File systems that store
    /// whole seconds are never trusted.
    private static func isPast(_ changed: Duration) -> Bool {
        var now = timespec()
        guard changed.components.attoseconds != 0, clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 else { return false }
        return changed + .milliseconds(100) < .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
    }
}
