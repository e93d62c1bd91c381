import Foundation
import TowlineCore
import TowlineEngine

/// What is known of a host, as the registry keeps it.
struct HostKnowledge: Hashable, Codable {
    /// The connections that it allows, where it showed a limit.
    var connections: Int?
    /// The connections that paid off.
    var usual: Int?
    /// When it showed that, in milliseconds since 1970.
    var learnedAt: Int64

    /// A clock that was set back makes it old as well.
    func isFresh(now: Int64) -> Bool {
        (0...HostBoard.ceilingLife.components.seconds * 1000).contains(now - learnedAt)
    }
}

/// What hosts allow, from one launch to the next.
extension DownloadCenter {
    /// Takes over what earlier processes found out.
    func recallHosts() async throws(TowlineError) {
        let now = WallClock.milliseconds
        for (name, text) in try await registry.hostKnowledge() {
            guard let known = try? JSONDecoder().decode(HostKnowledge.self, from: Data(text.utf8)),
                known.isFresh(now: now), let origin = try? HTTPURL(parsing: name).origin
            else { continue }
            if let count = known.connections, count > 0 { services.board.record(.connections(count), of: origin) }
            if let count = known.usual, count > 0 { services.board.record(.paysOff(count), of: origin) }
        }
        knownHosts = services.board.knowledge
    }

    /// Writes down what transfers found out.
    func rememberHosts() async {
        let hosts = services.board.knowledge
        guard hosts != knownHosts else { return }
        let news = hosts.filter { knownHosts[$0.key] != $0.value }
        knownHosts = hosts
        for (origin, host) in news {
            let known = HostKnowledge(
                connections: host.ceiling, usual: host.usual, learnedAt: WallClock.milliseconds)
            guard let data = try? JSONEncoder().encode(known) else { continue }
            do throws(TowlineError) {
                try await registry.setHostKnowledge(String(decoding: data, as: UTF8.self), for: origin.description)
            } catch {
                registryFailed(error)
            }
        }
    }
}
