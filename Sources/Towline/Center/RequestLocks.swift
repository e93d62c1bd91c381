import Synchronization
import TowlineCore

/// Locks, one for each download, that prevent two changes of the same request from overwriting each other. Waiting
/// callers get a lock in the order of their `acquire` calls.
final class RequestLocks: Sendable {
    /// The callers that wait for the lock of a download, for each download whose lock is held.
    private let waiting = Mutex<[DownloadID: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits until no other caller holds the lock of the download. The caller must then call `release`.
    func acquire(_ id: DownloadID) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[id] != nil else {
                    waiting[id] = []
                    return true
                }
                waiting[id]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    /// Releases the lock of a download. The first waiting caller gets the lock.
    func release(_ id: DownloadID) {
        waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard waiting[id]?.isEmpty == false else {
                waiting[id] = nil
                return nil
            }
            return waiting[id]?.removeFirst()
        }?.resume()
    }
}
