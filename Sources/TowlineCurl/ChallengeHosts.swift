import Synchronization
internal import TowlineCore

/// The hosts that asked for Digest authentication. Towline sends them no password before they ask. Shared by the
/// threads of a transport.
final class ChallengeHosts: Sendable {
    private let origins = Mutex<Set<HTTPURL.Origin>>([])
    /// `true` while the set is empty, which is the usual case: requests then take no lock.
    private let isEmpty = Atomic<Bool>(true)

    /// Returns whether a host has asked for Digest authentication.
    func contains(_ origin: HTTPURL.Origin) -> Bool {
        !isEmpty.load(ordering: .acquiring) && origins.withLock { $0.contains(origin) }
    }

    /// Records that a host asks for Digest authentication.
    func add(_ origin: HTTPURL.Origin) {
        origins.withLock { _ = $0.insert(origin) }
        isEmpty.store(false, ordering: .releasing)
    }
}
