import Synchronization
internal import TowlineCore

/// The hosts that have asked for Digest authentication: they are sent no password before they ask. Shared by the
/// threads of a transport.
final class ChallengeHosts: Sendable {
    private let origins = Mutex<Set<HTTPURL.Origin>>([])
    /// No host is in it, as nearly always: no lock is taken for each request.
    private let isEmpty = Atomic<Bool>(true)

    /// Returns whether a host has asked for Digest.
    func contains(_ origin: HTTPURL.Origin) -> Bool {
        !isEmpty.load(ordering: .acquiring) && origins.withLock { $0.contains(origin) }
    }

    /// Notes that a host asks for Digest.
    func add(_ origin: HTTPURL.Origin) {
        origins.withLock { _ = $0.insert(origin) }
        isEmpty.store(false, ordering: .releasing)
    }
}
