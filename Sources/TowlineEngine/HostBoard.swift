package import TowlineCore
import Synchronization

/// The knowledge about hosts that all transfers of an assembly share: until when a host asked not to be contacted, and
/// how many connections it allows (DESIGN.md §5).
package final class HostBoard: Sendable {
    private struct Entry {
        var notBefore: Duration?
        var ceiling: Int?
        var ceilingEnd = Duration.zero
        var usual: Int?
        /// The number of running requests with connections of their own.
        var requests = 0
        /// The number of running requests that share several connections.
        var streams = 0
        /// The number of connections of these requests.
        var connections: Int { requests + min(streams, ConnectionSharing.connections) }
        /// The number of transfers that are admitted with connections of their own.
        var transfers = 0
        /// The number of transfers that receive bytes.
        var working = 0
        var sharing = SharingPolicy()
        var crowd = HostCrowd()
        /// The number of consecutive responses without a checksum.
        var digestless = 0
        /// The last target of a redirect that had asked not to be contacted; `nil` if none.
        var ledTo: HTTPURL.Origin?

        /// Returns whether the entry contains nothing worth keeping. `keepsHistory`: earlier responses are worth
        /// keeping.
        func isEmpty(unlessKeeping keepsHistory: Bool) -> Bool {
            connections == 0 && transfers == 0 && working == 0 && notBefore == nil && ceiling == nil && usual == nil
                && !(keepsHistory && (sharing.isWorthKeeping || !crowd.isEmpty || digestless > 0 || ledTo != nil))
        }
    }

    /// The knowledge about a host that the next process can use, too.
    package struct Knowledge: Hashable, Sendable {
        /// The number of connections that the host allows; `nil` if it has shown no limit.
        package var ceiling: Int?
        /// The number of connections that paid off; `nil` if no download has found out yet.
        package var usual: Int?
    }

    /// The time after which a connection limit expires and more connections are tried: a host may refuse one only for a
    /// while.
    package static let ceilingLife = Duration.seconds(3600)

    private let entries = Mutex(OriginTable<Entry>())

    private let clock: @Sendable () -> Duration

    /// Creates an empty board.
    package convenience init() { self.init { MonotonicClock.now } }

    /// Creates an empty board that uses `clock`.
    package init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Records a transfer's report about a host.
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

    /// The knowledge about all hosts with a known number of connections.
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

    /// Admits a transfer with connections of its own to a host, if fewer than `limit` are admitted and the host is not
    /// known to serve fewer. Returns whether it is admitted; `left` must follow then.
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

    /// Counts a request that begins, unless it shares one connection. `ended` must follow each call.
    func began(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        entries.withLock { $0.change(origin, adding: Entry()) { Self.count(1, sharing, in: &$0) } }
    }

    /// Removes a request that has ended from the count.
    func ended(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        change(origin) { Self.count(-1, sharing, in: &$0) }
    }

    private static func count(_ number: Int, _ sharing: ConnectionSharing, in entry: inout Entry) {
        if sharing == .none { entry.requests += number } else { entry.streams += number }
    }

    /// Removes an admitted transfer from the count.
    func left(_ origin: HTTPURL.Origin) { change(origin) { $0.transfers -= 1 } }

    /// Notes that a transfer receives bytes from a new host (`to`), and no longer from an old one; `nil`: from none.
    func works(from old: HTTPURL.Origin?, to new: HTTPURL.Origin?) {
        if let old { change(old) { $0.working -= 1 } }
        guard let new else { return }
        entries.withLock { $0.change(new, adding: Entry()) { $0.working += 1 } }
    }

    /// Returns the number of transfers that receive bytes from a host.
    func working(at origin: HTTPURL.Origin) -> Int { entries.withLock { $0.value(of: origin)?.working ?? 0 } }

    private func change(_ origin: HTTPURL.Origin, _ body: @Sendable (inout Entry) -> Void) {
        entries.withLock { entries in
            // Remove a host without knowledge, so that a list of a million hosts needs no memory for each.
            let keepsHistory = entries.count <= Self.mostKept
            let isEmpty = entries.change(origin) { entry in
                body(&entry)
                return entry.isEmpty(unlessKeeping: keepsHistory)
            }
            if isEmpty == true { entries.remove(origin) }
        }
    }

    /// The most hosts whose earlier responses are remembered while no request to them runs.
    private static let mostKept = 10_000

    /// The number of hosts on the board.
    var count: Int { entries.withLock { $0.count } }

    /// Returns the time until which a host asked not to be contacted; `nil` if it did not ask. The time may be in the
    /// past.
    func notBefore(_ origin: HTTPURL.Origin) -> Duration? { standing(origin).notBefore }

    /// Notes that a host redirected to a host that had asked not to be contacted.
    func led(from first: HTTPURL.Origin, to origin: HTTPURL.Origin) {
        guard first != origin else { return }
        entries.withLock { entries in
            let added = entries.count < Self.mostKept ? Entry() : nil
            entries.change(first, adding: added) { $0.ledTo = origin }
        }
    }

    /// Clears the waits that a host and its last redirect target asked for, because the user wants a request now.
    package func overrule(_ origin: HTTPURL.Origin) {
        entries.withLock { entries in
            let other = entries.value(of: origin)?.ledTo
            for origin in [origin, other].compactMap(\.self) { entries.change(origin) { $0.notBefore = nil } }
        }
    }

    /// Returns the facts about a host that decide about requests, all from one lookup.
    func standing(_ origin: HTTPURL.Origin) -> Standing {
        guard let entry = entries.withLock({ $0.value(of: origin) }) else { return Standing() }
        let ceiling = entry.ceiling.flatMap { entry.ceilingEnd > clock() ? $0 : nil }
        return Standing(
            notBefore: entry.notBefore, ceiling: ceiling, usual: entry.usual, connections: entry.connections,
            sharing: entry.sharing.sharing, wantsDigest: SmallFilePolicy.wantsDigest(after: entry.digestless),
            answers: entry.crowd.answers)
    }

    /// The facts about a host that decide about requests.
    struct Standing {
        var notBefore: Duration?
        var ceiling: Int?
        /// The connections that paid off; `nil` if no download has found out yet.
        var usual: Int?
        var connections = 0
        var sharing = ConnectionSharing.none
        /// `true` if the next request for a small file asks for a checksum, too.
        var wantsDigest = true

        /// The number of responses of the host until now.
        var answers = 0

        /// How a new request for a small file shares connections.
        var nextSharing: ConnectionSharing { sharing.limited(ceiling: ceiling, connections: connections) }
    }

    /// Records whether the body of a response over HTTP/2 was small, and the latency of its head.
    func answered(_ answer: SharingPolicy.Answer, from origin: HTTPURL.Origin, after latency: Duration = .zero) {
        entries.withLock { entries in
            let added = entries.count < Self.mostKept ? Entry() : nil
            entries.change(origin, adding: added) { $0.sharing.answered(answer, after: latency) }
        }
    }

    /// Records that a host closed the connection of one of several downloads before it responded.
    ///
    /// - Returns: `false` if the host has never responded, or no other download is admitted.
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

    /// Records that a host left one of several downloads waiting while it responded to others.
    func kept(_ origin: HTTPURL.Origin) { change(origin) { $0.crowd.kept(among: $0.transfers) } }

    /// Returns the number of responses that a host has given.
    func answers(of origin: HTTPURL.Origin) -> Int { entries.withLock { $0.value(of: origin)?.crowd.answers ?? 0 } }

    /// Returns whether a host is known to serve a limited number of downloads at a time, and that many are admitted.
    func isFull(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            guard let entry = entries.value(of: origin), let limit = entry.crowd.limit else { return false }
            return entry.transfers >= limit
        }
    }

    /// Records a response, and whether it had a checksum.
    func answered(_ verdict: ResponseVerdict, from origin: HTTPURL.Origin) {
        if case .transient = verdict {} else { change(origin) { $0.crowd.answered() } }
        guard let hasDigest = SmallFilePolicy.hasDigest(verdict) else { return }
        entries.withLock { entries in
            let added = hasDigest || entries.count >= Self.mostKept ? nil : Entry()
            entries.change(origin, adding: added) { $0.digestless = hasDigest ? 0 : $0.digestless &+ 1 }
        }
    }

    /// Returns how long a host must not be contacted; `nil` if it may be contacted now.
    package func wait(of origin: HTTPURL.Origin) -> Duration? {
        notBefore(origin).map { $0 - clock() }.flatMap { $0 > .zero ? $0 : nil }
    }

    /// Returns the number of connections that a host allows; `nil` if no limit is known.
    package func ceiling(_ origin: HTTPURL.Origin) -> Int? { standing(origin).ceiling }
}
