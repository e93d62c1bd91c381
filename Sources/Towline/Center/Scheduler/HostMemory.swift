import Foundation
import Synchronization
import TowlineCore
import TowlineEngine

/// The learned connection numbers of a host, as stored in the registry, the database of all downloads.
struct HostKnowledge: Hashable, Codable {
    /// The maximum number of connections that the host allows; `nil` if no limit is known.
    var connections: Int?
    /// The number of connections after which further connections did not increase the rate; `nil` if unknown.
    var usual: Int?
    /// The time when the numbers were learned, in milliseconds since 1970.
    var learnedAt: Int64

    /// Returns whether the numbers were learned at most one hour before `now`, in milliseconds since 1970. A time in
    /// the future, after a clock was set back, is not valid.
    func isFresh(now: Int64) -> Bool {
        (0...HostBoard.ceilingLife.components.seconds * 1000).contains(now - learnedAt)
    }
}

/// Stores the learned connection numbers of hosts in the registry, so that the next launch begins with them.
final class HostMemory: Sendable {
    private let registry: any Registry
    private let board: HostBoard
    private let failures: RegistryFailures
    /// The connection numbers of hosts as last written to the registry, so that only changes are written.
    private let stored = Mutex<[HTTPURL.Origin: HostBoard.Knowledge]>([:])

    init(registry: any Registry, board: HostBoard, failures: RegistryFailures) {
        self.registry = registry
        self.board = board
        self.failures = failures
    }

    /// Loads the connection numbers of hosts that earlier processes learned and stored in the registry. Called at
    /// launch.
    func recall() async throws(TowlineError) {
        let now = WallClock.milliseconds
        for (name, text) in try await registry.hostKnowledge() {
            guard let known = try? JSONDecoder().decode(HostKnowledge.self, from: Data(text.utf8)),
                known.isFresh(now: now), let origin = try? HTTPURL(parsing: name).origin
            else { continue }
            if let count = known.connections, count > 0 { board.record(.connections(count), of: origin) }
            if let count = known.usual, count > 0 { board.record(.paysOff(count), of: origin) }
        }
        stored.withLock { $0 = board.knowledge }
    }

    /// Writes the connection numbers of hosts that changed since the last write to the registry. Called after each
    /// transfer.
    func remember() async {
        for (origin, host) in changes() {
            let known = HostKnowledge(
                connections: host.ceiling, usual: host.usual, learnedAt: WallClock.milliseconds)
            guard let data = try? JSONEncoder().encode(known) else { continue }
            do throws(TowlineError) {
                try await registry.setHostKnowledge(String(decoding: data, as: UTF8.self), for: origin.description)
            } catch {
                failures.report(error)
            }
        }
    }

    /// Returns the learned connection numbers that changed since the last call, by host.
    private func changes() -> [HTTPURL.Origin: HostBoard.Knowledge] {
        stored.withLock { stored in
            let hosts = board.knowledge
            guard hosts != stored else { return [:] }
            defer { stored = hosts }
            return hosts.filter { stored[$0.key] != $0.value }
        }
    }
}
