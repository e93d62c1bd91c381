package import TowlineCore
import Synchronization

/// What all downloads of a process know of a host: until when it wants to be left alone, and how many connections
/// it allows (DESIGN.md §5). Shared by every transfer of an assembly.
package final class HostBoard: Sendable {
    private struct Entry {
        var notBefore: Duration?
        var ceiling: Int?
        var ceilingEnd = Duration.zero
        var usual: Int?
        /// Requests under way, each with a connection of its own.
        var requests = 0
        /// Those that share several.
        var streams = 0
        /// Their connections.
        var connections: Int { requests + min(streams, ConnectionSharing.connections) }
        /// Transfers that may have connections of their own.
        var transfers = 0
        var sharing = SharingPolicy()
    }

    /// What is worth knowing in the next process, too.
    package struct Knowledge: Hashable, Sendable {
        /// Connections that the host allows, where it showed a limit.
        package var ceiling: Int?
        /// Connections that paid off.
        package var usual: Int?
    }

    /// A host that refused a connection in a bad hour is not spared for ever: after this time it is tried again.
    package static let ceilingLife = Duration.seconds(3600)

    private let entries = Mutex<[HTTPURL.Origin: Entry]>([:])

    private let clock: @Sendable () -> Duration

    /// An empty board.
    package convenience init() { self.init { MonotonicClock.now } }

    init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Writes down what a transfer found out.
    package func record(_ report: HostReport, of origin: HTTPURL.Origin) {
        entries.withLock { entries in
            var entry = entries[origin] ?? Entry()
            switch report {
            case .leaveAlone(let duration):
                entry.notBefore = max(entry.notBefore ?? .zero, clock() + duration)
            case .connections(let count):
                let now = clock()
                let known = entry.ceilingEnd > now ? entry.ceiling : nil
                entry.ceiling = max(1, min(known ?? count, count))
                entry.ceilingEnd = now + Self.ceilingLife
            case .paysOff(let count): entry.usual = max(1, count)
            case .sharingFailed: entry.sharing.answered(.broken)
            }
            entries[origin] = entry
        }
    }

    /// What is known of hosts, of all of which something is.
    package var knowledge: [HTTPURL.Origin: Knowledge] {
        let now = clock()
        return entries.withLock { entries in
            entries.compactMapValues { entry in
                let ceiling = entry.ceilingEnd > now ? entry.ceiling : nil
                guard ceiling != nil || entry.usual != nil else { return nil }
                return Knowledge(ceiling: ceiling, usual: entry.usual)
            }
        }
    }

    /// A transfer wants connections of its own, which no more than `limit` may have at one time. If it may, `left` follows.
    func admit(_ origin: HTTPURL.Origin, limit: Int) -> Bool {
        entries.withLock { entries in
            guard entries[origin]?.transfers ?? 0 < limit else { return false }
            entries[origin, default: Entry()].transfers += 1
            return true
        }
    }

    /// A request begins. Each is followed by `ended`.
    func began(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        entries.withLock { Self.count(1, sharing, in: &$0[origin, default: Entry()]) }
    }

    /// A request is over.
    func ended(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        change(origin) { Self.count(-1, sharing, in: &$0) }
    }

    private static func count(_ number: Int, _ sharing: ConnectionSharing, in entry: inout Entry) {
        if sharing == .none { entry.requests += number } else { entry.streams += number }
    }

    /// A transfer is over that was admitted.
    func left(_ origin: HTTPURL.Origin) { change(origin) { $0.transfers -= 1 } }

    private func change(_ origin: HTTPURL.Origin, _ body: (inout Entry) -> Void) {
        entries.withLock { entries in
            guard var entry = entries[origin] else { return }
            body(&entry)
            // A list of a million hosts leaves nothing behind of those that said nothing.
            let isEmpty =
                entry.connections == 0 && entry.transfers == 0 && entry.notBefore == nil && entry.ceiling == nil
                && entry.usual == nil
                && (!entry.sharing.isWorthKeeping || entries.count > Self.mostSharing)
            entries[origin] = isEmpty ? nil : entry
        }
    }

    /// Of so many hosts at most it is known how long their answers are while nobody asks them.
    private static let mostSharing = 10_000

    /// Until when the host wants to be left alone.
    func notBefore(_ origin: HTTPURL.Origin) -> Duration? { standing(origin).notBefore }

    /// Somebody wants it asked now: what it said of later counts no more.
    package func overrule(_ origin: HTTPURL.Origin) { entries.withLock { $0[origin]?.notBefore = nil } }

    /// What decides at a host, looked up together.
    func standing(_ origin: HTTPURL.Origin) -> Standing {
        guard let entry = entries.withLock({ $0[origin] }) else { return Standing() }
        let ceiling = entry.ceiling.flatMap { entry.ceilingEnd > clock() ? $0 : nil }
        return Standing(
            notBefore: entry.notBefore, ceiling: ceiling, usual: entry.usual, connections: entry.connections,
            sharing: entry.sharing.sharing)
    }

    /// What decides at a host.
    struct Standing {
        var notBefore: Duration?
        var ceiling: Int?
        /// The connections that paid off; `nil` if no download has found out yet.
        var usual: Int?
        var connections = 0
        var sharing = ConnectionSharing.none
    }

    /// How an answer over HTTP/2 looked, and what it took to begin.
    func answered(_ answer: SharingPolicy.Answer, from origin: HTTPURL.Origin, after latency: Duration = .zero) {
        entries.withLock { $0[origin, default: Entry()].sharing.answered(answer, after: latency) }
    }

    /// How long it still wants to be left alone; `nil` if it does not.
    package func wait(of origin: HTTPURL.Origin) -> Duration? {
        notBefore(origin).map { $0 - clock() }.flatMap { $0 > .zero ? $0 : nil }
    }

    /// The connections it allows, where that is known.
    package func ceiling(_ origin: HTTPURL.Origin) -> Int? { standing(origin).ceiling }
}
