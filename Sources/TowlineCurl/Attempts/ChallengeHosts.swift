import Synchronization
internal import TowlineCore

/// The servers (scheme, host and port) that asked for Digest authentication (RFC 7616). Once recorded, a server gets no
/// password before it asks with a 401 response. Shared by all threads of a `CurlTransport`.
final class ChallengeHosts: Sendable {
    private let origins = Mutex<Set<HTTPURL.Origin>>([])
    /// `true` while no server is recorded, which is the usual case: requests then take no lock.
    private let isEmpty = Atomic<Bool>(true)

    /// Returns whether a server has asked for Digest authentication. It then gets no password before it sends a 401
    /// response.
    func contains(_ origin: HTTPURL.Origin) -> Bool {
        !isEmpty.load(ordering: .acquiring) && origins.withLock { $0.contains(origin) }
    }

    /// Records that a server asks for Digest authentication, so that later requests wait for its 401 response.
    func add(_ origin: HTTPURL.Origin) {
        origins.withLock { _ = $0.insert(origin) }
        isEmpty.store(false, ordering: .releasing)
    }
}
