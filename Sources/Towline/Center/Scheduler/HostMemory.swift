import Foundation
import Synchronization
import TowlineCore
import TowlineEngine

/// The numbers of connections that a host allows and that increase its rate, as learned and stored in the registry, the
/// database of all downloads.
struct HostKnowledge: Hashable, Codable {
    /// The maximum number of connections that the host allows; `nil` if no limit is known.
    var connections: Int?
    /// The number of connections after which further connections did not increase the rate; `nil` if unknown.
    var usual: Int?
    /// The time when these numbers of connections were learned, in milliseconds since 1970.
    var learnedAt: Int64

    /// Returns whether these numbers of connections were learned at most one hour before `now`, in milliseconds since
    /// 1970. A time in the future, after a clock was set back, is not valid.
    func isFresh(now: Int64) -> Bool {
        (0...HostBoard.ceilingLife.components.seconds * 1000).contains(now - learnedAt)
    }
}

/// Stores in the registry how many connections each host allows and how many increase its rate, so that the next launch
/// begins with these numbers.
final class HostMemory: Sendable {
    private let registry: any Registry
    private let board: HostBoard
    private let failures: RegistryFailures
    private let clock: any DownloadClock
    /// The numbers of connections that hosts allow or benefit from, as last written to the registry, so that only
    /// changes are written.
    private let stored = Mutex<[HTTPURL.Origin: HostBoard.Knowledge]>([:])

    init(registry: any Registry, board: HostBoard, failures: RegistryFailures, clock: any DownloadClock) {
        self.registry = registry
        self.board = board
        self.failures = failures
        self.clock = clock
    }

    /// Loads the numbers of connections that hosts allow or benefit from, which earlier processes learned and stored in
    /// the registry. Called at launch.
    func recall() async throws(TowlineError) {
        let now = clock.milliseconds
        for (name, text) in try await registry.hostKnowledge() {
            guard let known = try? JSONDecoder().decode(HostKnowledge.self, from: Data(text.utf8)),
                known.isFresh(now: now), let origin = try? HTTPURL(parsing: name).origin
            else { continue }
            if let count = known.connections, count > 0 { board.record(.connections(count), of: origin) }
            if let count = known.usual, count > 0 { board.record(.paysOff(count), of: origin) }
        }
        stored.withLock { $0 = board.knowledge }
    }

    /// Writes to the registry the numbers of connections that hosts allow or benefit from, if they changed since the
    /// last write. Called after each transfer.
    func remember() async {
        for (origin, host) in changes() {
            let known = HostKnowledge(
                connections: host.ceiling, usual: host.usual, learnedAt: clock.milliseconds)
            guard let data = try? JSONEncoder().encode(known) else { continue }
            do throws(TowlineError) {
                try await registry.setHostKnowledge(String(decoding: data, as: UTF8.self), for: origin.description)
            } catch {
                failures.report(error)
            }
        }
    }

    /// Returns by host the numbers of connections that it allows or benefits from, if they changed since the last call.
    private func changes() -> [HTTPURL.Origin: HostBoard.Knowledge] {
        stored.withLock { stored in
            let hosts = board.knowledge
            guard hosts != stored else { return [:] }
            defer { stored = hosts }
            return hosts.filter { stored[$0.key] != $0.value }
        }
    }
}
