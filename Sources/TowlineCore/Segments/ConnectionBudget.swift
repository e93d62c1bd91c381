/// How many connections pay off (DESIGN.md §5): one doubling at a time while the throughput of the whole grows by at
/// least a tenth; the last step is taken back if it does not.
///
/// Many servers give their bytes in bursts. A few moments of that say little, and waiting for a clear answer at each
/// step would cost more than a step too many: where the measurement is too uneven to tell, the next step is taken, and
/// some time later it is tried once with a quarter less. Where a step did not pay, it is tried again now and then:
/// networks change.
package struct ConnectionBudget: Hashable, Sendable {
    /// Connections to use now.
    package private(set) var target: Int
    /// Most connections ever.
    package private(set) var ceiling: Int
    /// What a search that has ended found to pay off; `nil` until one has, and always where the user asked for a number.
    package private(set) var finding: Int?
    private let wanted: Int
    /// The user asked for this number.
    package let isFixed: Bool
    private var recovery: Duration?
    private var recoverAt: Duration?
    private var mode: Mode
    private var meter = ThroughputMeter()
    private var received: Int64 = 0
    /// A step was taken on an uneven measurement: it is to be checked.
    private var isUnsure = false
    private var checkAt = Duration.zero
    /// When the next search begins, and how long after its end the one after that.
    private var searchAgainAt: Duration?
    private var searchPause = ConnectionBudget.firstPause
    /// Since when the user's limit has held bytes back, in every sample.
    private var heldBackSince: Duration?
    /// The connections before some were taken back under a limit, and before when that is not tried again.
    private var loweredFrom: Int?
    private var lowerAgainAt = Duration.zero
    /// Connections that the host served at the same time.
    private var served = 0
    /// When connections were closed in the middle of a response: the host may still count them.
    private var closings: [Duration] = []
    /// Refusals in a row that such connections explain; those of one moment count once.
    private var lateRefusals = 0
    /// When the first of these came, and the connections that worked then, which are not exceeded for a while.
    private var lateSince = Duration.zero
    private var lateWorking = 0
    private var measuredAt = Duration.zero
    private var steppedAt = Duration.zero

    private enum Mode: Hashable, Sendable {
        /// One step after the other; the throughput before the last one, and the connections.
        case climbing(before: ThroughputMeter.Reading?, previous: Int)
        case settled
        /// With a quarter less than `from`, which brought `before`.
        case checking(before: Double, from: Int)
    }

    /// - Parameters:
    ///   - requested: what the user asked for; `nil`: find out, up to `most`.
    ///   - hostCeiling: what the host is known to allow.
    ///   - usual: what was found to pay off at this host before.
    package init(requested: Int?, hostCeiling: Int?, usual: Int? = nil) {
        wanted = min(max(requested ?? Self.most, 1), 128)
        ceiling = min(wanted, hostCeiling ?? wanted)
        isFixed = requested != nil
        target = isFixed ? ceiling : min(max(usual ?? 1, 1), ceiling)
        mode = isFixed ? .settled : .climbing(before: nil, previous: 1)
    }

    /// Most connections that all downloads of one host have together, but for one that each has in any case.
    package var hostShare: Int { max(wanted, Self.most) }

    /// More are not tried unless asked for.
    static let most = 16
    /// How long one step is measured, at least.
    static let window = Duration.milliseconds(60)
    /// How long, where the answer is not plain at once.
    static let clearWindow = Duration.milliseconds(240)
    /// Before so many bytes came for each connection a step is measured for longer: fewer say little of a slow network.
    static let windowShare: Int64 = 32 << 10
    /// The longest window, whatever came.
    static let longestWindow = Duration.seconds(1)
    /// How long a check takes, at least, and at most where bytes come in bursts.
    static let checkWindow = Duration.milliseconds(600), longestCheckWindow = Duration.milliseconds(2400)
    /// A check is worth it if the download goes on for so many seconds.
    static let worthChecking = 10.0
    /// From here on a step is two doublings: each costs two round trips, during which the connections before it are all
    /// there is.
    static let longRoundTrip = Duration.milliseconds(40)
    /// From here on the first step is all the way: windows grow from their beginning with each connection, for a dozen
    /// round trips, and what was too much is taken back by checks.
    static let farRoundTrip = Duration.milliseconds(100)
    /// How long a search that brought nothing is believed at first; twice as long after each further one.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)

    /// For this time after it was closed, a host may count a connection.
    static let closingLife = Duration.seconds(10)
    /// Connections that begin together are refused together.
    static let moment = Duration.milliseconds(500)
    /// More refusals in a row are not explained by such connections.
    static let mostLateRefusals = 3

    /// When there is something to measure next; `nil`: not by time.
    package var wakeAt: Duration? {
        guard case .climbing = mode else { return nil }
        if let next = meter.nextSample { return next }
        // The connections of a step are there in a moment, or never.
        return measuredAt - steppedAt < Self.clearWindow ? measuredAt + ThroughputMeter.sampleLength : nil
    }

    /// What is measured.
    package struct Sample: Hashable, Sendable {
        /// Bytes that came since the last call, over all connections.
        package var bytes: Int64
        /// Connections that bring bytes.
        package var active: Int
        /// What is still to come; `nil`: unknown.
        package var remaining: Int64?
        /// The least time from a request to its answer.
        package var roundTrip: Duration
        /// The user set a limit.
        package var isLimited: Bool
        /// More would come, but for that limit.
        package var isHeldBack: Bool

        /// Makes one.
        package init(
            bytes: Int64, active: Int, remaining: Int64? = nil, roundTrip: Duration = .zero, isLimited: Bool = false,
            isHeldBack: Bool = false
        ) {
            self.bytes = bytes
            self.active = active
            self.remaining = remaining
            self.roundTrip = roundTrip
            self.isLimited = isLimited
            self.isHeldBack = isHeldBack
        }
    }

    /// Takes a sample; called a few times a second, and at `wakeAt`.
    ///
    /// - Returns: whether connections are taken back: those beyond `target` are to be given up.
    package mutating func measure(_ sample: Sample, now: Duration) -> Bool {
        measuredAt = now
        if sample.bytes > 0 { recover(now) }
        received += sample.bytes
        if sample.isHeldBack, !isFixed { return heldBack(now) }
        heldBackSince = nil
        guard !isFixed, sample.active > 0, sample.active * 4 >= target * 3 else {
            // Connections that are still being opened would spoil the measurement; a quarter of them may never come.
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

    /// Where a limit of the user's decides how fast bytes come, more connections bring none; what waits in each of them
    /// is lost with it. A second is enough to see that half may do; where it did not, that is not tried again soon.
    private mutating func heldBack(_ now: Duration) -> Bool {
        meter = ThroughputMeter()
        // What is measured from here on is not compared with what was before.
        if case .climbing = mode { mode = .climbing(before: nil, previous: target) }
        guard target > 1, now >= lowerAgainAt else { return false }
        guard let since = heldBackSince else {
            heldBackSince = now
            return false
        }
        guard now - since >= Self.longestWindow else { return false }
        heldBackSince = now
        loweredFrom = target
        target /= 2
        mode = .climbing(before: nil, previous: target)
        return true
    }

    private mutating func climb(
        _ reading: ThroughputMeter.Reading, _ before: ThroughputMeter.Reading?, _ previous: Int, _ sample: Sample,
        _ now: Duration
    ) -> Bool {
        // The first bytes over a long way say nothing of those to come.
        if sample.roundTrip >= Self.longRoundTrip, before == nil, target == 1, !sample.isLimited {
            isUnsure = true
            return step(nil, sample, now)
        }
        guard reading.length >= Self.window,
            received >= Self.windowShare * Int64(sample.active) || reading.length >= Self.longestWindow
        else { return false }
        // What there is to compare with comes first.
        guard let before else {
            // A limit lets the first bytes through as they come, and a busy server pauses: whether the limit holds
            // bytes back shows later.
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
        let next = min(loweredFrom ?? target * factor(sample), ceiling)
        if loweredFrom != nil {
            loweredFrom = nil
            lowerAgainAt = now + searchPause
            searchPause = min(searchPause * 2, Self.longestPause)
        }
        guard next > target else {
            settle(at: target, now)
            return false
        }
        mode = .climbing(before: reading, previous: target)
        meter = ThroughputMeter()
        target = next
        steppedAt = now
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
        checkAt = now + .seconds(1)
        searchAgainAt = now + searchPause
        searchPause = min(searchPause * 2, Self.longestPause)
    }

    private mutating func settled(_ reading: ThroughputMeter.Reading, _ sample: Sample, _ now: Duration) -> Bool {
        if let time = searchAgainAt, now >= time, target < ceiling {
            searchAgainAt = nil
            mode = .climbing(before: nil, previous: target)
            meter = ThroughputMeter()
            return false
        }
        guard isEnough(reading, sample) else { return false }
        meter = ThroughputMeter()
        guard isUnsure, target > 1, now >= checkAt, let remaining = sample.remaining,
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

    /// Whether a rate can be compared with another.
    private func isEnough(_ reading: ThroughputMeter.Reading, _ sample: Sample) -> Bool {
        reading.length >= max(Self.checkWindow, sample.roundTrip * 2)
            && (reading.isEven || reading.length >= Self.longestCheckWindow)
    }

    /// The host serves so many connections at the same time.
    package mutating func serves(_ count: Int) {
        guard count >= served else { return }
        served = count
        lateRefusals = 0
    }

    /// A connection was closed in the middle of a response.
    package mutating func closed(now: Duration) {
        closings.removeAll { now - $0 >= Self.closingLife }
        closings.append(now)
    }

    /// The host refused a connection while `working` others received bytes.
    ///
    /// A host that notices late that a connection was closed refuses one more although it served as many before. Then
    /// the ceiling is that number, and not one less with each closed connection.
    ///
    /// - Parameter sentAt: when the refused request was sent. What was closed later cannot be the reason.
    /// - Returns: the number of connections that the host allows, as far as is known.
    package mutating func refused(
        beside working: Int, now: Duration, sentAt: Duration? = nil, recovery: Duration = .seconds(20)
    ) -> Int {
        closings.removeAll { now - $0 >= Self.closingLife }
        let closed = closings.count { $0 <= sentAt ?? now }
        let allowed = min(served, ceiling)
        let isSame = lateRefusals > 0 && now - lateSince < Self.moment
        if working < allowed, working + closed >= allowed, isSame || lateRefusals < Self.mostLateRefusals {
            if !isSame { (lateRefusals, lateSince) = (lateRefusals + 1, now) }
            lateWorking = max(1, working)
            lower(to: allowed, now: now, recovery: recovery)
            return allowed
        }
        (served, lateRefusals) = (working, 0)
        lower(to: working, now: now, recovery: recovery)
        return working
    }

    /// Connections to use now, without those that the host would refuse because it counts closed ones.
    package func room(now: Duration) -> Int {
        guard lateRefusals > 0, now - lateSince < .seconds(1 << (lateRefusals - 1)) else { return target }
        return min(target, lateWorking)
    }

    /// The host asked for less, or refused a connection while `working` others received bytes.
    ///
    /// - Parameter recovery: after this time one more is tried; a refusal may have been a passing one. `nil`: never.
    package mutating func lower(to working: Int, now: Duration, recovery: Duration? = .seconds(20)) {
        ceiling = max(1, min(ceiling, working))
        target = min(target, ceiling)
        mode = .settled
        meter = ThroughputMeter()
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
