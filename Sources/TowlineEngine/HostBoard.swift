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
        /// Those that get bytes.
        var working = 0
        var sharing = SharingPolicy()
        var crowd = HostCrowd()
        /// Files in a row that it gave without a checksum.
        var digestless = 0
        /// The host that it led to last and that wanted to be left alone.
        var ledTo: HTTPURL.Origin?

        /// Whether it says nothing.
        func isEmpty(unlessKeeping keepsHistory: Bool) -> Bool {
            connections == 0 && transfers == 0 && working == 0 && notBefore == nil && ceiling == nil && usual == nil
                && !(keepsHistory && (sharing.isWorthKeeping || !crowd.isEmpty || digestless > 0 || ledTo != nil))
        }
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

    private let entries = Mutex(OriginTable<Entry>())

    private let clock: @Sendable () -> Duration

    /// An empty board.
    package convenience init() { self.init { MonotonicClock.now } }

    /// An empty board whose time is that of `clock`.
    package init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Writes down what a transfer found out.
    package func record(_ report: HostReport, of origin: HTTPURL.Origin) {
        entries.withLock { entries in
            entries.change(origin, adding: Entry()) { entry in
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
                case .overloaded: entry.crowd.refused(among: entry.transfers)
                }
            }
        }
    }

    /// What is known of hosts, of all of which something is.
    package var knowledge: [HTTPURL.Origin: Knowledge] {
        let now = clock()
        return entries.withLock { entries in
            var found: [HTTPURL.Origin: Knowledge] = [:]
            for (origin, entry) in entries.all {
                let ceiling = entry.ceilingEnd > now ? entry.ceiling : nil
                guard ceiling != nil || entry.usual != nil else { continue }
                found[origin] = Knowledge(ceiling: ceiling, usual: entry.usual)
            }
            return found
        }
    }

    /// A transfer wants connections of its own, which no more than `limit` may have at one time. If it may, `left` follows.
    func admit(_ origin: HTTPURL.Origin, limit: Int) -> Bool {
        entries.withLock { entries in
            let isAdmitted = entries.change(origin, adding: limit > 0 ? Entry() : nil) { entry in
                guard entry.transfers < min(limit, entry.crowd.limit ?? .max) else { return false }
                entry.transfers += 1
                return true
            }
            return isAdmitted ?? false
        }
    }

    /// A request begins. Each is followed by `ended`.
    func began(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        entries.withLock { $0.change(origin, adding: Entry()) { Self.count(1, sharing, in: &$0) } }
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

    /// A transfer gets bytes from one host (`to`), and no more from another.
    func works(from old: HTTPURL.Origin?, to new: HTTPURL.Origin?) {
        if let old { change(old) { $0.working -= 1 } }
        guard let new else { return }
        entries.withLock { $0.change(new, adding: Entry()) { $0.working += 1 } }
    }

    /// How many transfers get bytes from it.
    func working(at origin: HTTPURL.Origin) -> Int { entries.withLock { $0.value(of: origin)?.working ?? 0 } }

    private func change(_ origin: HTTPURL.Origin, _ body: @Sendable (inout Entry) -> Void) {
        entries.withLock { entries in
            // A list of a million hosts leaves nothing behind of those that said nothing.
            let keepsHistory = entries.count <= Self.mostKept
            let isEmpty = entries.change(origin) { entry in
                body(&entry)
                return entry.isEmpty(unlessKeeping: keepsHistory)
            }
            if isEmpty == true { entries.remove(origin) }
        }
    }

    /// Of so many hosts at most it is known how their answers were while nobody asks them.
    private static let mostKept = 10_000

    /// Of how many something is known.
    var count: Int { entries.withLock { $0.count } }

    /// Until when the host wants to be left alone.
    func notBefore(_ origin: HTTPURL.Origin) -> Duration? { standing(origin).notBefore }

    /// A host led to one that wants to be left alone.
    func led(from first: HTTPURL.Origin, to origin: HTTPURL.Origin) {
        guard first != origin else { return }
        entries.withLock { entries in
            let added = entries.count < Self.mostKept ? Entry() : nil
            entries.change(first, adding: added) { $0.ledTo = origin }
        }
    }

    /// Somebody wants it asked now: what it said of later counts no more, nor what the host said that it leads to.
    package func overrule(_ origin: HTTPURL.Origin) {
        entries.withLock { entries in
            let other = entries.value(of: origin)?.ledTo
            for origin in [origin, other].compactMap(\.self) { entries.change(origin) { $0.notBefore = nil } }
        }
    }

    /// What decides at a host, looked up together.
    func standing(_ origin: HTTPURL.Origin) -> Standing {
        guard let entry = entries.withLock({ $0.value(of: origin) }) else { return Standing() }
        let ceiling = entry.ceiling.flatMap { entry.ceilingEnd > clock() ? $0 : nil }
        return Standing(
            notBefore: entry.notBefore, ceiling: ceiling, usual: entry.usual, connections: entry.connections,
            sharing: entry.sharing.sharing, wantsDigest: SmallFilePolicy.wantsDigest(after: entry.digestless),
            answers: entry.crowd.answers)
    }

    /// What decides at a host.
    struct Standing {
        var notBefore: Duration?
        var ceiling: Int?
        /// The connections that paid off; `nil` if no download has found out yet.
        var usual: Int?
        var connections = 0
        var sharing = ConnectionSharing.none
        /// Whether the next small file is asked for with its checksum.
        var wantsDigest = true

        /// The answers of the host until now.
        var answers = 0

        /// How a small file that has no request there yet would share.
        var nextSharing: ConnectionSharing { sharing.limited(ceiling: ceiling, connections: connections) }
    }

    /// How an answer over HTTP/2 looked, and what it took to begin.
    func answered(_ answer: SharingPolicy.Answer, from origin: HTTPURL.Origin, after latency: Duration = .zero) {
        entries.withLock { entries in
            let added = entries.count < Self.mostKept ? Entry() : nil
            entries.change(origin, adding: added) { $0.sharing.answered(answer, after: latency) }
        }
    }

    /// A host closed the connection of one of several downloads before it answered.
    ///
    /// - Returns: `false`: the host never answered, or there is no other download.
    func refused(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            let counts = entries.change(origin) { entry in
                guard entry.transfers > 1, entry.crowd.answers > 0 else { return false }
                entry.crowd.refused(among: entry.transfers)
                return true
            }
            return counts ?? false
        }
    }

    /// A host left one of several downloads waiting while it answered others.
    func kept(_ origin: HTTPURL.Origin) { change(origin) { $0.crowd.kept(among: $0.transfers) } }

    /// How many answers a host gave.
    func answers(of origin: HTTPURL.Origin) -> Int { entries.withLock { $0.value(of: origin)?.crowd.answers ?? 0 } }

    /// Returns whether a host serves only a few downloads at a time and has as many now.
    func isFull(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            guard let entry = entries.value(of: origin), let limit = entry.crowd.limit else { return false }
            return entry.transfers >= limit
        }
    }

    /// What an answer was, with a checksum or without.
    func answered(_ verdict: ResponseVerdict, from origin: HTTPURL.Origin) {
        if case .transient = verdict {} else { change(origin) { $0.crowd.answered() } }
        guard let hasDigest = SmallFilePolicy.hasDigest(verdict) else { return }
        entries.withLock { entries in
            let added = hasDigest || entries.count >= Self.mostKept ? nil : Entry()
            entries.change(origin, adding: added) { $0.digestless = hasDigest ? 0 : $0.digestless &+ 1 }
        }
    }

    /// How long it still wants to be left alone; `nil` if it does not.
    package func wait(of origin: HTTPURL.Origin) -> Duration? {
        notBefore(origin).map { $0 - clock() }.flatMap { $0 > .zero ? $0 : nil }
    }

    /// The connections it allows, where that is known.
    package func ceiling(_ origin: HTTPURL.Origin) -> Int? { standing(origin).ceiling }
}
