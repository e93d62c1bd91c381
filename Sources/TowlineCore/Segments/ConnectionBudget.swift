/// How many connections pay off (DESIGN.md §5): one doubling at a time while the throughput of the whole grows by at
/// least a tenth; the last step is taken back if it does not. Later one more step is tried now and then: networks
/// change, and one measurement may have been unlucky.
package struct ConnectionBudget: Hashable, Sendable {
    /// Connections to use now.
    package private(set) var target: Int
    /// Most connections ever.
    package private(set) var ceiling: Int
    /// What a search that has ended found to pay off; `nil` until one has, and always where the user asked for a number.
    package private(set) var finding: Int?
    private let wanted: Int
    private let isFixed: Bool
    private var recovery: Duration?
    private var recoverAt: Duration?
    private var search: Search
    /// When the next search begins, and how long after its end the one after that.
    private var searchAgainAt: Duration?
    private var searchPause = ConnectionBudget.firstPause

    /// What is being measured.
    private struct Search: Hashable, Sendable {
        var isOver: Bool
        /// The throughput before the last step.
        var baseline: Double?
        /// Connections before the last step.
        var previous: Int
        var windowStart: Duration?
        var windowBytes: Int64 = 0
    }

    /// - Parameters:
    ///   - requested: what the user asked for; `nil`: find out, up to 16.
    ///   - hostCeiling: what the host is known to allow.
    ///   - usual: what was found to pay off at this host before.
    package init(requested: Int?, hostCeiling: Int?, usual: Int? = nil) {
        wanted = min(max(requested ?? 16, 1), 128)
        ceiling = min(wanted, hostCeiling ?? wanted)
        isFixed = requested != nil
        target = isFixed ? ceiling : min(max(usual ?? 1, 1), ceiling)
        search = Search(isOver: isFixed, previous: 1)
    }

    /// How long one step is measured, at least; where a round trip takes longer, so long.
    static let window = Duration.milliseconds(100)
    /// A window is long enough with that many bytes for each connection: fewer say little of a slow network.
    static let windowShare: Int64 = 32 << 10
    /// The longest window, whatever came.
    static let longestWindow = Duration.seconds(1)
    /// From here on a step is two doublings: each costs two round trips, during which the connections before it are all
    /// there is.
    static let longRoundTrip = Duration.milliseconds(40)
    /// How long a search that brought nothing is believed at first; twice as long after each further one.
    static let firstPause = Duration.seconds(15)

    /// When there is something to measure next; `nil`: not by time.
    package var wakeAt: Duration? { search.isOver ? nil : search.windowStart.map { $0 + Self.window } }

    /// Feeds the bytes that came since the last call, over all connections; called a few times a second while
    /// `active` connections bring bytes.
    ///
    /// - Returns: whether the last step is taken back: connections beyond `target` are to be given up.
    package mutating func measure(_ bytes: Int64, active: Int, roundTrip: Duration = .zero, now: Duration) -> Bool {
        if bytes > 0 { recover(now) }
        if search.isOver { searchAgain(now) }
        // Connections that are still being opened would spoil the measurement; a quarter of them may never come.
        guard !search.isOver, active > 0, active * 4 >= target * 3 else {
            search.windowStart = nil
            search.windowBytes = 0
            return false
        }
        guard let start = search.windowStart else {
            search.windowStart = now
            search.windowBytes = 0
            return false
        }
        search.windowBytes += bytes
        let length = now - start
        guard length >= max(Self.window, min(roundTrip, Self.longestWindow)),
            search.windowBytes >= Self.windowShare * Int64(active) || length >= Self.longestWindow
        else { return false }
        let rate = Double(search.windowBytes) / length.seconds
        search.windowStart = nil
        search.windowBytes = 0
        return step(rate: rate, factor: roundTrip >= Self.longRoundTrip ? 4 : 2, now: now)
    }

    private mutating func step(rate: Double, factor: Int, now: Duration) -> Bool {
        if let baseline = search.baseline, rate < baseline * 1.1 {
            let surplus = target > search.previous
            target = search.previous
            end(now)
            return surplus
        }
        search.baseline = rate
        search.previous = target
        target = min(target * factor, ceiling)
        if target == search.previous { end(now) }
        return false
    }

    private mutating func end(_ now: Duration) {
        search.isOver = true
        finding = target
        searchAgainAt = now + searchPause
        searchPause = searchPause * 2
    }

    private mutating func searchAgain(_ now: Duration) {
        guard let time = searchAgainAt, now >= time, target < ceiling else { return }
        searchAgainAt = nil
        search = Search(isOver: false, previous: target)
    }

    /// The host asked for less, or refused a connection while `working` others brought bytes.
    ///
    /// - Parameter recovery: after this time one more is tried; a refusal may have been a passing one. `nil`: never.
    package mutating func lower(to working: Int, now: Duration, recovery: Duration? = .seconds(20)) {
        ceiling = max(1, min(ceiling, working))
        target = min(target, ceiling)
        search.previous = min(search.previous, target)
        search.isOver = true
        searchAgainAt = nil
        self.recovery = recovery
        recoverAt = recovery.map { now + $0 }
    }

    private mutating func recover(_ now: Duration) {
        guard let recovery, let time = recoverAt, now >= time else { return }
        guard ceiling < wanted else {
            recoverAt = nil
            return
        }
        ceiling += 1
        if isFixed || target == ceiling - 1 { target = ceiling }
        recoverAt = now + recovery
    }
}
