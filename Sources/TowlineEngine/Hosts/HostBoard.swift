package import TowlineCore
import Synchronization

/// The observations about hosts that all transfers of a process or batch share: the time before which a host asked not
/// to be contacted, its connection limit, and the requests and transfers that use it now.
package final class HostBoard: Sendable {
    /// The observations about one host: the pause and limits that it asked for, the current requests and transfers, and
    /// its past responses.
    private struct Entry {
        /// The time before which the host asked not to be contacted; `nil` if it did not ask.
        var notBefore: Duration?
        /// The number of connections that the host allows, observed when it refused more; `nil` if no limit is known.
        /// It expires after `ceilingLife`.
        var ceiling: Int?
        /// The time at which `ceiling` expires, so that more connections are tried.
        var ceilingEnd = Duration.zero
        /// The number of connections beyond which more did not increase the transfer rate; `nil` if not measured yet.
        var usual: Int?
        /// The number of running requests to the host that have a connection of their own.
        var requests = 0
        /// The number of running requests to the host that are spread over several shared connections
        /// (`ConnectionSharing.several`).
        var streams = 0
        /// The number of connections to the host that are in use. Does not count the single one that requests for small
        /// files share (`ConnectionSharing.one`).
        var connections: Int { requests + min(streams, ConnectionSharing.connections) }
        /// The number of transfers that may now open connections of their own to the host (`HostBoard.admit`).
        var transfers = 0
        /// The number of transfers that receive bytes from the host now. A transfer that the host refuses waits for
        /// them.
        var working = 0
        /// The record of whether the last response bodies of the host were small, which decides whether later requests
        /// share a connection.
        var sharing = SharingPolicy()
        /// The number of downloads that the host serves at once, learned from its refusals, such as 503.
        var crowd = HostCrowd()
        /// The number of consecutive responses of the host without a checksum. After some of them, requests no longer
        /// ask for one.
        var digestless = 0
        /// The last host that this host redirected to although the target had asked for a pause; `nil` if none.
        /// `overrule` ends the pause of both.
        var ledTo: HTTPURL.Origin?

        /// Returns whether the entry has nothing to remember about the host, so that it can be removed. `keepsHistory`:
        /// `true` to also remember its past responses.
        func isEmpty(unlessKeeping keepsHistory: Bool) -> Bool {
            connections == 0 && transfers == 0 && working == 0 && notBefore == nil && ceiling == nil && usual == nil
                && !(keepsHistory && (sharing.isWorthKeeping || !crowd.isEmpty || digestless > 0 || ledTo != nil))
        }
    }

    /// The observations about a host that are stored for the next process: its connection limit and the useful number
    /// of connections.
    package struct Knowledge: Hashable, Sendable {
        /// The number of connections that the host allows, observed when it refused more; `nil` if no limit is known.
        package var ceiling: Int?
        /// The number of connections to the host beyond which more did not increase the transfer rate; `nil` if no
        /// download has measured it yet.
        package var usual: Int?
    }

    /// The time after which an observed connection limit of a host expires and more connections are tried: a host may
    /// refuse connections only for a while.
    package static let ceilingLife = Duration.seconds(3600)

    private let entries = Mutex<[HTTPURL.Origin: Entry]>([:])

    private let clock: @Sendable () -> Duration

    /// Creates a board without observations about hosts. It reads the time from `MonotonicClock`.
    package convenience init() { self.init { MonotonicClock.now } }

    /// Creates a board without observations about hosts. It reads the time from `clock`.
    package init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Records an observation of a transfer about a host, such as a pause that it asked for, a connection limit or an
    /// overload.
    package func record(_ report: HostReport, of origin: HTTPURL.Origin) {
        entries.withLock { entries in
            var entry = entries[origin] ?? Entry()
            switch report {
            case .leaveAlone(let duration): entry.notBefore = max(entry.notBefore ?? .zero, clock() + duration)
            case .connections(let count):
                let now = clock()
                let known = entry.ceilingEnd > now ? entry.ceiling : nil
                entry.ceiling = max(1, min(known ?? count, count))
                entry.ceilingEnd = now + Self.ceilingLife
            case .paysOff(let count): entry.usual = max(1, count)
            case .sharingFailed: entry.sharing.answered(.broken)
            case .overloaded: entry.crowd.refused(among: entry.transfers)
            }
            entries[origin] = entry
        }
    }

    /// The observations about hosts to store for the next process: each host with a known connection limit or a known
    /// useful number of connections.
    package var knowledge: [HTTPURL.Origin: Knowledge] {
        let now = clock()
        return entries.withLock { entries in
            var found: [HTTPURL.Origin: Knowledge] = [:]
            for (origin, entry) in entries {
                let ceiling = entry.ceilingEnd > now ? entry.ceiling : nil
                guard ceiling != nil || entry.usual != nil else { continue }
                found[origin] = Knowledge(ceiling: ceiling, usual: entry.usual)
            }
            return found
        }
    }

    /// Permits a transfer to open connections of its own to a host, and counts it, if fewer than `limit` transfers are
    /// counted and the host is not known to serve fewer. Returns whether it is permitted; call `left` when the transfer
    /// no longer needs them.
    func admit(_ origin: HTTPURL.Origin, limit: Int) -> Bool {
        func count(in entry: inout Entry) -> Bool {
            guard entry.transfers < min(limit, entry.crowd.limit ?? .max) else { return false }
            entry.transfers += 1
            return true
        }
        return entries.withLock { count(in: &$0[origin, default: Entry()]) }
    }

    /// Counts a request to a host that begins, unless it shares the single connection for small files
    /// (`ConnectionSharing.one`). Call `ended` when the request has ended.
    func began(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        entries.withLock { Self.count(1, sharing, in: &$0[origin, default: Entry()]) }
    }

    /// Removes a request that has ended from the count of running requests of its host, which `began` increased.
    func ended(_ origin: HTTPURL.Origin, _ sharing: ConnectionSharing = .none) {
        guard sharing != .one else { return }
        change(origin) { Self.count(-1, sharing, in: &$0) }
    }

    private static func count(_ number: Int, _ sharing: ConnectionSharing, in entry: inout Entry) {
        if sharing == .none { entry.requests += number } else { entry.streams += number }
    }

    /// Removes a transfer from the count of those with connections of their own to a host, which `admit` increased.
    func left(_ origin: HTTPURL.Origin) { change(origin) { $0.transfers -= 1 } }

    /// Records that a transfer now receives bytes from the host `new`, and no longer from `old`; `nil` stands for no
    /// host. If a host refuses a transfer while it sends bytes to others, the refused one waits for them.
    func works(from old: HTTPURL.Origin?, to new: HTTPURL.Origin?) {
        if let old { change(old) { $0.working -= 1 } }
        guard let new else { return }
        entries.withLock { $0[new, default: Entry()].working += 1 }
    }

    /// Returns the number of transfers that receive bytes from a host.
    func working(at origin: HTTPURL.Origin) -> Int { entries.withLock { $0[origin]?.working ?? 0 } }

    private func change(_ origin: HTTPURL.Origin, _ body: (inout Entry) -> Void) {
        entries.withLock { entries in
            guard let index = entries.index(forKey: origin) else { return }
            body(&entries.values[index])
            // Remove a host without knowledge, so that a list of a million hosts needs no memory for each.
            if entries.values[index].isEmpty(unlessKeeping: entries.count <= Self.mostKept) {
                entries.remove(at: index)
            }
        }
    }

    /// Changes the observations about a host. A host without observations is added, unless `mostKept` hosts are known.
    private func changeOrAdd(_ origin: HTTPURL.Origin, _ body: (inout Entry) -> Void) {
        entries.withLock { entries in
            if let index = entries.index(forKey: origin) {
                body(&entries.values[index])
            } else if entries.count < Self.mostKept {
                body(&entries[origin, default: Entry()])
            }
        }
    }

    /// The maximum number of hosts whose past responses are remembered while no request to them runs.
    private static let mostKept = 10_000

    /// The number of hosts that the board has observations about.
    var count: Int { entries.withLock { $0.count } }

    /// Returns the time of the board's clock before which a host asked not to be contacted, for example with
    /// Retry-After; `nil` if it did not ask. The time may be in the past.
    func notBefore(_ origin: HTTPURL.Origin) -> Duration? { state(of: origin).notBefore }

    /// Records that the host `first` redirected to the host `origin`, which had asked not to be contacted for a while.
    /// `overrule` for `first` then also ends the pause of `origin`.
    func led(from first: HTTPURL.Origin, to origin: HTTPURL.Origin) {
        if first != origin { changeOrAdd(first) { $0.ledTo = origin } }
    }

    /// Ends the pauses that a host, and the last host it redirected to, asked for, because the user wants a request to
    /// be sent now.
    package func overrule(_ origin: HTTPURL.Origin) {
        entries.withLock { entries in
            let other = entries[origin]?.ledTo
            for origin in [origin, other].compactMap(\.self) { entries[origin]?.notBefore = nil }
        }
    }

    /// Returns the observations about a host that decide how the next requests are sent. For an unknown host, returns
    /// defaults.
    func state(of origin: HTTPURL.Origin) -> HostState {
        guard let entry = entries.withLock({ $0[origin] }) else { return HostState() }
        let ceiling = entry.ceiling.flatMap { entry.ceilingEnd > clock() ? $0 : nil }
        return HostState(
            notBefore: entry.notBefore, ceiling: ceiling, usual: entry.usual, connections: entry.connections,
            sharing: entry.sharing.sharing, wantsDigest: SmallFilePolicy.wantsDigest(after: entry.digestless),
            answers: entry.crowd.answers)
    }

    /// The observations about a host that decide how the next requests to it are sent.
    struct HostState {
        /// The time before which the host asked not to be contacted; `nil` if it did not ask.
        var notBefore: Duration?
        /// The number of connections that the host allows; `nil` if no limit is known.
        var ceiling: Int?
        /// The number of connections to the host beyond which more did not increase the transfer rate; `nil` if no
        /// download has measured it yet.
        var usual: Int?
        /// The number of connections to the host that all transfers use now, without the one for small files.
        var connections = 0
        /// The use of connections that the last responses of the host suggest, without regard to its limit.
        var sharing = ConnectionSharing.none
        /// `true` if the next request for a small file also asks the server for a checksum of the file.
        var wantsDigest = true

        /// The number of responses of the host since the process began, without temporary errors.
        var answers = 0

        /// The use of connections by the next request for a small file, one of its own or a shared one, given the
        /// connection limit of the host.
        var nextSharing: ConnectionSharing { sharing.limited(ceiling: ceiling, connections: connections) }
    }

    /// Records whether the body of a response over HTTP/2 was small, and the time from its request to its head. Later
    /// requests for small files share a connection if the last bodies were small.
    func answered(_ evidence: SharingPolicy.Evidence, from origin: HTTPURL.Origin, after latency: Duration = .zero) {
        changeOrAdd(origin) { $0.sharing.answered(evidence, after: latency) }
    }

    /// Records that a host closed the connection of one of several simultaneous downloads before it responded, which
    /// may lower the number of downloads that it is known to serve at once.
    ///
    /// - Returns: `false` if the host has never responded, or no other download is admitted; the refusal then does not
    ///   count.
    func refused(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[origin], entry.transfers > 1, entry.crowd.answers > 0 else { return false }
            entries[origin]?.crowd.refused(among: entry.transfers)
            return true
        }
    }

    /// Records that a host left one of several simultaneous downloads waiting while it responded to others, which
    /// lowers the number of downloads that it is known to serve at once.
    func kept(_ origin: HTTPURL.Origin) { change(origin) { $0.crowd.kept(among: $0.transfers) } }

    /// Returns the number of responses of a host since the process began, without temporary errors.
    func answers(of origin: HTTPURL.Origin) -> Int { entries.withLock { $0[origin]?.crowd.answers ?? 0 } }

    /// Returns whether a host already has as many transfers with connections of their own as it is known to serve at
    /// once. `false` if no such limit is known.
    func isFull(_ origin: HTTPURL.Origin) -> Bool {
        entries.withLock { entries in
            guard let entry = entries[origin], let limit = entry.crowd.limit else { return false }
            return entry.transfers >= limit
        }
    }

    /// Records a response of a host, and whether it had a checksum. Temporary errors such as 503 do not count as
    /// responses.
    func answered(_ verdict: ResponseVerdict, from origin: HTTPURL.Origin) {
        if case .transient = verdict {} else { change(origin) { $0.crowd.answered() } }
        guard let hasDigest = SmallFilePolicy.hasDigest(verdict) else { return }
        if hasDigest {
            entries.withLock { $0[origin]?.digestless = 0 }
        } else {
            changeOrAdd(origin) { $0.digestless &+= 1 }
        }
    }

    /// Returns the time until a host may be contacted again, as the host asked; `nil` if it may be contacted now.
    package func wait(of origin: HTTPURL.Origin) -> Duration? {
        notBefore(origin).map { $0 - clock() }.flatMap { $0 > .zero ? $0 : nil }
    }

    /// Returns the number of connections that a host allows, observed when it refused more; `nil` if no limit is known.
    package func ceiling(_ origin: HTTPURL.Origin) -> Int? { state(of: origin).ceiling }
}
