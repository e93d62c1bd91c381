internal import TowlineCore
internal import TowlineEngine

/// The connection pools of an event loop: few, one for each combination of connection options and sharing.
struct ConnectionPools {
    private(set) var all: [ConnectionPool] = []
    private let watch: SocketWatch
    private var lastTag: UInt32 = 0
    private var nextIdleCheck = MonotonicTime.now

    /// The time after which a pool without attempts is closed with its connections; sooner if more than 32 such pools
    /// exist.
    private static let idleLife = Duration.seconds(60)
    private static let maximumIdleCount = 32
    private static let idleCheckInterval = Duration.seconds(1)

    init(watch: SocketWatch) { self.watch = watch }

    /// Returns the connection pool whose socket events carry this number (tag); `nil` if the pool was closed.
    func pool(tagged tag: UInt32) -> ConnectionPool? { all.first { $0.tag == tag } }

    /// Returns the pool of connections with the given options and sharing. Creates the pool if it does not exist or is
    /// retired.
    mutating func pool(
        for options: ConnectionOptions, _ sharing: ConnectionSharing
    ) throws(TransportFailure) -> ConnectionPool {
        let known = all.first { !$0.isRetired && $0.sharing == sharing && $0.options == options }
        if let known { return known }
        lastTag &+= 1
        if lastTag == EventPoll.alarmTag { lastTag = 1 }
        let pool = try ConnectionPool(options: options, sharing: sharing, tag: lastTag, watch: watch)
        all.append(pool)
        return pool
    }

    /// Returns whether a pool has finished attempts to collect from libcurl, so that the event loop must not wait for
    /// an event.
    var mustRun: Bool { all.contains { $0.isTouched } }

    /// The time at which the timer of a pool expires or a pool must be closed; `never` if no timer runs and no pool
    /// must be closed.
    var nextTime: MonotonicTime {
        var next = MonotonicTime.never
        for pool in all {
            next = min(next, pool.timer)
            if let end = Self.endOfLife(of: pool) { next = min(next, max(nextIdleCheck, end)) }
        }
        return next
    }

    /// Closes the pools that had no attempts for long, and the oldest ones of too many pools without attempts.
    mutating func closeIdle(at now: MonotonicTime) {
        // Not with every turn: a turn can be as frequent as incoming bytes.
        guard now >= nextIdleCheck else { return }
        nextIdleCheck = now.advanced(by: Self.idleCheckInterval)
        var idle = all.compactMap { pool in pool.idleSince.map { (pool: pool, since: $0) } }
        idle.sort { $0.since < $1.since }
        let surplus = idle.count - Self.maximumIdleCount
        for (index, entry) in idle.enumerated()
        where index < surplus || Self.endOfLife(of: entry.pool).map({ $0 <= now }) == true { close(entry.pool) }
    }

    /// Returns the time at which a pool without attempts is closed: immediately if it is retired, else after 60
    /// seconds. Returns `nil` if attempts run.
    private static func endOfLife(of pool: ConnectionPool) -> MonotonicTime? {
        pool.idleSince.map { pool.isRetired ? $0 : $0.advanced(by: idleLife) }
    }

    /// Closes a pool with its connections. Its attempts must have ended.
    mutating func close(_ pool: ConnectionPool) { all.removeAll { $0 === pool } }

    mutating func closeAll() { all.removeAll() }
}
