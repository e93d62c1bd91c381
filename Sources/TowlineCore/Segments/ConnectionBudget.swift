/// The search for the best number of connections of a transfer (docs/internals/segments.md). The number doubles while
/// the total throughput grows by at least a tenth; a step without that gain is undone.
///
/// After a measurement that is too uneven, the next step is taken, and a later check tries a quarter fewer connections.
/// A step that did not pay off is tried again from time to time, because networks change.
package struct ConnectionBudget: Hashable, Sendable {
    /// The number of connections that the transfer should use now.
    package private(set) var target: Int
    /// The current maximum of `target`, the number of connections to use. A refused connection lowers it; it rises
    /// again, one by one, if the refusal was temporary.
    package private(set) var ceiling: Int
    /// The number of connections that the last completed search found to be the best; `nil` before the first, and
    /// always if the user set a number.
    package private(set) var finding: Int?
    private let wanted: Int
    /// `true` if the user set the number of connections, so that no search runs.
    package let isFixed: Bool
    private var recovery: Recovery?
    private var mode: Mode
    private var meter = ThroughputMeter()
    private var progress = Progress()
    /// `true` if a step (an increase of the connections) followed an uneven measurement, so that a later check must
    /// test fewer connections.
    private var isUnsure = false
    private var schedule = Schedule()
    private var rateLimit = RateLimit()
    private var host = Host()

    /// The time at which one more connection is tried after the host refused a connection, and the pause between
    /// further tries.
    private struct Recovery: Hashable {
        /// The time at which one more connection is tried after a refusal.
        var at: Duration
        /// The pause between further tries of one more connection.
        var pause: Duration
    }

    /// The bytes received since the search for the best number of connections began, and the times of its last steps.
    private struct Progress: Hashable {
        /// The number of bytes received since the search for the best number of connections began.
        var received: Int64 = 0
        /// The times of the last sample of the throughput and of the last step (a change of the number of connections).
        var measuredAt = Duration.zero, steppedAt = Duration.zero
    }

    /// The times of the next check (a test of fewer connections) and of the next search for the best number of
    /// connections.
    private struct Schedule: Hashable {
        /// The time of the next check, a test whether fewer connections are as fast.
        var checkAt = Duration.zero
        /// The time of the next search for the best number of connections; `nil` if no search is due.
        var searchAgainAt: Duration?
        /// The pause between the end of the next search and the search after it.
        var searchPause = ConnectionBudget.firstPause
    }

    /// The effect of the user's rate limit on the number of connections, which is halved while the limit delays bytes.
    private struct RateLimit: Hashable {
        /// The time since which the user's rate limit has delayed bytes in every throughput sample.
        var heldBackSince: Duration?
        /// The number of connections before it was halved because of the rate limit; `nil` if it was not halved.
        var loweredFrom: Int?
        /// The time before which the number of connections is not halved again.
        var lowerAgainAt = Duration.zero
    }

    /// The connections that the host served and refused. They give an estimate of its connection limit.
    private struct Host: Hashable {
        /// The number of connections that the host has served at the same time.
        var served = 0
        /// The times when connections were closed in the middle of a response: the host may still count them.
        var closings: [Duration] = []
        /// The number of consecutive refused connections that are attributed to recently closed ones, which the host
        /// may still count. Refusals within `moment` (half a second) count once.
        var lateRefusals = 0
        /// The time of the last refused connection that `lateRefusals` counts.
        var lateSince = Duration.zero
        /// The number of connections that worked when `lateRefusals` last counted a refusal: a temporary limit, until
        /// the host no longer counts the closed connections.
        var lateWorking = 0
    }

    /// The phase of the search for the best number of connections.
    private enum Mode: Hashable, Sendable {
        /// Adds connections step by step. `before` and `previous`: the throughput and the number of connections before
        /// the last step; `nil` before the first.
        case climbing(before: ThroughputMeter.Reading?, previous: Int)
        /// Keeps the number of connections until the next check (a test of fewer connections) or the next search for
        /// more.
        case settled
        /// Tries a quarter fewer connections than `from`, which delivered `before` bytes per second.
        case checking(before: Double, from: Int)
    }

    /// Creates the search for the best number of connections of a transfer that begins.
    ///
    /// - Parameters:
    ///   - requested: the number of connections that the user set; `nil`: search for the best number, up to `most`.
    ///   - hostCeiling: the connection limit of the host; `nil` if unknown.
    ///   - usual: the number of connections that an earlier search found for this host; `nil`: begin with one.
    package init(requested: Int?, hostCeiling: Int?, usual: Int? = nil) {
        wanted = min(max(requested ?? Self.most, 1), 128)
        ceiling = min(wanted, hostCeiling ?? wanted)
        isFixed = requested != nil
        target = isFixed ? ceiling : min(max(usual ?? 1, 1), ceiling)
        mode = isFixed ? .settled : .climbing(before: nil, previous: 1)
    }

    /// The maximum number of connections that all downloads from one host have together. Each download may have one in
    /// any case.
    package var hostShare: Int { max(wanted, Self.most) }

    /// The maximum number of connections of a transfer unless the user sets a higher one.
    static let most = 16
    /// The minimum time for measuring the throughput after a step (a change of the number of connections).
    static let window = Duration.milliseconds(60)
    /// The minimum time for measuring whether a step increases the rate, if its gain is below the clear gain of 30 %.
    static let clearWindow = Duration.milliseconds(240)
    /// The minimum number of received bytes per connection for judging a step: on a slow network, fewer bytes say
    /// little.
    static let windowShare: Int64 = 32 << 10
    /// The time after which a step is judged even with fewer bytes than `windowShare`.
    static let longestWindow = Duration.seconds(1)
    /// The minimum time of a check (a test of fewer connections), and the time after which it ends even if bytes arrive
    /// in bursts.
    static let checkWindow = Duration.milliseconds(600), longestCheckWindow = Duration.milliseconds(2400)
    /// The minimum remaining time of the download, in seconds, that makes a check (a test of fewer connections)
    /// worthwhile.
    static let worthChecking = 10.0
    /// The minimum round trip for steps that quadruple the connections: each step costs two round trips, in which only
    /// the earlier connections deliver bytes.
    static let longRoundTrip = Duration.milliseconds(40)
    /// The minimum round trip for raising the number of connections directly to `most`: the window of each new
    /// connection grows for a dozen round trips, and excess connections are closed later.
    static let farRoundTrip = Duration.milliseconds(100)
    /// The first and the longest pause between searches for the best number. The pause doubles after each search.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)

    /// The time after a connection was closed during which the host may still count it against its limit.
    static let closingLife = Duration.seconds(10)
    /// The time within which refused connections count as one refusal: connections that begin together are refused
    /// together.
    static let moment = Duration.milliseconds(500)
    /// The maximum number of consecutive refusals that are attributed to closed connections that the host still counts.
    static let mostLateRefusals = 3

    /// The time at which `measure` should be called in addition to its regular calls about every 100 ms; `nil` if no
    /// extra call is needed.
    package var wakeAt: Duration? {
        guard case .climbing = mode else { return nil }
        if let next = meter.nextSample { return next }
        // The connections of a step open soon or never.
        return progress.measuredAt - progress.steppedAt < Self.clearWindow
            ? progress.measuredAt + ThroughputMeter.sampleLength : nil
    }

    /// The progress of a transfer since the last call of `measure`, which uses it to choose the number of connections.
    package struct Sample: Hashable, Sendable {
        /// The number of bytes received since the last call of `measure`, over all connections.
        package var bytes: Int64
        /// The number of connections of the transfer that receive bytes.
        package var active: Int
        /// The number of bytes of the file still missing; `nil` if unknown.
        package var remaining: Int64?
        /// The shortest time from a request to its response; over a long round trip, steps are larger.
        package var roundTrip: Duration = .zero
        /// `true` if the user set a rate limit, so that the throughput is measured longer and steps are smaller.
        package var isLimited: Bool = false
        /// `true` if the rate limit delays bytes, so that more connections would not be faster.
        package var isHeldBack: Bool = false
    }

    /// Adds a measurement of the transfer's throughput and updates `target`, the number of connections to use. The
    /// state machine calls this a few times a second, and at `wakeAt`.
    ///
    /// - Returns: `true` if `target` has dropped and the caller must close the connections beyond it.
    package mutating func measure(_ sample: Sample, now: Duration) -> Bool {
        progress.measuredAt = now
        if sample.bytes > 0 { recover(now) }
        progress.received += sample.bytes
        if sample.isHeldBack, !isFixed { return heldBack(now) }
        rateLimit.heldBackSince = nil
        guard !isFixed, sample.active > 0, sample.active * 4 >= target * 3 else {
            // Connections that are still opening would distort the measurement; a quarter of them may never open.
            meter = ThroughputMeter()
            return false
        }
        guard meter.add(sample.bytes, now: now), let reading = meter.reading else { return false }
        switch mode {
        case .climbing(let before, let previous): return climb(reading, before, previous, sample, now)
        case .checking(let before, let from): return check(reading, before, from, sample, now)
        case .settled: return settled(reading, sample, now)
        }
    }

    /// Halves the connections after the user's rate limit delayed bytes for a second. More connections are then no
    /// faster, and closing one loses the bytes that wait in it. If half is too few, that is not tried again soon.
    /// Returns `true` if the number was halved, so that connections must be closed.
    private mutating func heldBack(_ now: Duration) -> Bool {
        meter = ThroughputMeter()
        // Later measurements are not comparable with earlier ones.
        if case .climbing = mode { mode = .climbing(before: nil, previous: target) }
        guard target > 1, now >= rateLimit.lowerAgainAt else { return false }
        guard let since = rateLimit.heldBackSince else {
            rateLimit.heldBackSince = now
            return false
        }
        guard now - since >= Self.longestWindow else { return false }
        rateLimit.heldBackSince = now
        rateLimit.loweredFrom = target
        target /= 2
        mode = .climbing(before: nil, previous: target)
        return true
    }

    private mutating func climb(
        _ reading: ThroughputMeter.Reading, _ before: ThroughputMeter.Reading?, _ previous: Int, _ sample: Sample,
        _ now: Duration
    ) -> Bool {
        // Over a long round trip, the first bytes do not predict the rate.
        if sample.roundTrip >= Self.longRoundTrip, before == nil, target == 1, !sample.isLimited {
            isUnsure = true
            return step(nil, sample, now)
        }
        guard reading.length >= Self.window,
            progress.received >= Self.windowShare * Int64(sample.active) || reading.length >= Self.longestWindow
        else { return false }
        // The first reading is the baseline.
        guard let before else {
            // A rate limit lets the first bytes pass, and a busy server pauses: the effect of the limit shows only
            // later.
            if sample.isLimited, reading.length < Self.longestWindow { return false }
            return step(reading, sample, now)
        }
        guard !before.isUneven, !reading.isUneven else {
            isUnsure = true
            return step(reading, sample, now)
        }
        if reading.rate >= before.rate * 1.3 { return step(reading, sample, now) }
        guard reading.length >= Self.clearWindow else { return false }
        if reading.rate >= before.rate * 1.1 { return step(reading, sample, now) }
        defer { settle(at: previous, now) }
        return target > previous
    }

    private mutating func step(_ reading: ThroughputMeter.Reading?, _ sample: Sample, _ now: Duration) -> Bool {
        let next = min(rateLimit.loweredFrom ?? target * factor(sample), ceiling)
        if rateLimit.loweredFrom != nil {
            rateLimit.loweredFrom = nil
            rateLimit.lowerAgainAt = now + schedule.searchPause
            schedule.searchPause = min(schedule.searchPause * 2, Self.longestPause)
        }
        guard next > target else {
            settle(at: target, now)
            return false
        }
        mode = .climbing(before: reading, previous: target)
        meter = ThroughputMeter()
        target = next
        progress.steppedAt = now
        return false
    }

    private func factor(_ sample: Sample) -> Int {
        if sample.isLimited { return 2 }
        if sample.roundTrip >= Self.farRoundTrip, target == 1 { return Self.most }
        return sample.roundTrip >= Self.longRoundTrip ? 4 : 2
    }

    private mutating func settle(at count: Int, _ now: Duration) {
        target = count
        finding = count
        mode = .settled
        meter = ThroughputMeter()
        schedule.checkAt = now + .seconds(1)
        schedule.searchAgainAt = now + schedule.searchPause
        schedule.searchPause = min(schedule.searchPause * 2, Self.longestPause)
    }

    private mutating func settled(_ reading: ThroughputMeter.Reading, _ sample: Sample, _ now: Duration) -> Bool {
        if let time = schedule.searchAgainAt, now >= time, target < ceiling {
            schedule.searchAgainAt = nil
            mode = .climbing(before: nil, previous: target)
            meter = ThroughputMeter()
            return false
        }
        guard isEnough(reading, sample) else { return false }
        meter = ThroughputMeter()
        guard isUnsure, target > 1, now >= schedule.checkAt, let remaining = sample.remaining,
            Double(remaining) > reading.rate * Self.worthChecking
        else { return false }
        mode = .checking(before: reading.rate, from: target)
        target = target * 3 / 4
        return true
    }

    private mutating func check(
        _ reading: ThroughputMeter.Reading, _ before: Double, _ from: Int, _ sample: Sample, _ now: Duration
    ) -> Bool {
        guard isEnough(reading, sample) else { return false }
        guard reading.rate >= before * 0.9 else {
            isUnsure = false
            settle(at: from, now)
            return false
        }
        settle(at: (from + 1) / 2, now)
        return true
    }

    /// Returns whether a measurement of the throughput is long and even enough to be compared with one of another
    /// number of connections.
    private func isEnough(_ reading: ThroughputMeter.Reading, _ sample: Sample) -> Bool {
        reading.length >= max(Self.checkWindow, sample.roundTrip * 2)
            && (reading.isEven || reading.length >= Self.longestCheckWindow)
    }

    /// Records that the host serves `count` connections at the same time, a lower bound for its connection limit.
    package mutating func serves(_ count: Int) {
        guard count >= host.served else { return }
        host.served = count
        host.lateRefusals = 0
    }

    /// Records that a connection was closed in the middle of a response, so that the host may still count it for a
    /// while.
    package mutating func closed(now: Duration) {
        host.closings.removeAll { now - $0 >= Self.closingLife }
        host.closings.append(now)
    }

    /// Records that the host refused a connection while `working` others received bytes, and lowers the ceiling.
    ///
    /// A host that notices a closed connection late may refuse a new one although it served as many before. The ceiling
    /// is then the number that it served, not one less with each closed connection.
    ///
    /// - Parameters:
    ///   - sentAt: the time of the refused request; `nil`: now. A connection closed later cannot be the reason.
    ///   - recovery: the time after which one more connection is tried.
    /// - Returns: the number of connections that the host allows, as far as known.
    package mutating func refused(
        beside working: Int, now: Duration, sentAt: Duration? = nil, recovery: Duration = .seconds(20)
    ) -> Int {
        host.closings.removeAll { now - $0 >= Self.closingLife }
        let closed = host.closings.count { $0 <= sentAt ?? now }
        let allowed = min(host.served, ceiling)
        let isSame = host.lateRefusals > 0 && now - host.lateSince < Self.moment
        if working < allowed, working + closed >= allowed, isSame || host.lateRefusals < Self.mostLateRefusals {
            if !isSame { (host.lateRefusals, host.lateSince) = (host.lateRefusals + 1, now) }
            host.lateWorking = max(1, working)
            lower(to: allowed, now: now, recovery: recovery)
            return allowed
        }
        (host.served, host.lateRefusals) = (working, 0)
        lower(to: working, now: now, recovery: recovery)
        return working
    }

    /// Returns the number of connections to use now: `target`, or fewer while the host refuses some because it still
    /// counts closed ones.
    package func room(now: Duration) -> Int {
        guard host.lateRefusals > 0, now - host.lateSince < .seconds(1 << (host.lateRefusals - 1)) else {
            return target
        }
        return min(target, host.lateWorking)
    }

    /// Lowers the maximum of connections (`ceiling`) to `working`: the host asked for less, or refused a connection
    /// while `working` others worked.
    ///
    /// - Parameter recovery: the time after which one connection more is tried: the refusal may be temporary. `nil`:
    ///   never.
    package mutating func lower(to working: Int, now: Duration, recovery: Duration? = .seconds(20)) {
        ceiling = max(1, min(ceiling, working))
        target = min(target, ceiling)
        mode = .settled
        meter = ThroughputMeter()
        schedule.searchAgainAt = nil
        self.recovery = recovery.map { Recovery(at: now + $0, pause: $0) }
    }

    private mutating func recover(_ now: Duration) {
        guard let recovery, now >= recovery.at else { return }
        guard ceiling < wanted else {
            self.recovery = nil
            return
        }
        ceiling += 1
        if isFixed || target == ceiling - 1 { target = ceiling }
        self.recovery?.at = now + recovery.pause
    }
}
