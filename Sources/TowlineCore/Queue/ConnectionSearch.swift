/// The search for the number of short downloads that pay off at once, each with its own connection (DESIGN.md §5).
///
/// Sixteen downloads keep a nearby host busy. A connection to a distant host waits most of the time, and four times as
/// many deliver up to four times the files, until the line or the host is saturated. If even the fastest download takes
/// long, the search tries two doublings and measures the downloads per second. If each doubling gains less than a
/// tenth, both are undone; otherwise the limit becomes the number that the measured gain requires. A failed attempt
/// undoes one doubling. The search is repeated after a while, because networks change.
package struct ConnectionSearch: Sendable {
    /// The number of downloads at once now.
    package private(set) var limit = Self.usual

    /// The number of connections that one long download may have.
    package static let usual = 16
    /// The number after two doublings. The user must ask for more, because many hosts allow an address no more.
    package static let most = 64

    /// The minimum time of the fastest download of a distant host.
    static let far = Duration.milliseconds(40)
    /// The number of downloads that are enough to measure the duration.
    static let enough = 5
    /// The gain that is more than chance.
    static let plain = 3.0
    /// The minimum gain that pays off for two doublings: a tenth each.
    static let worthwhile = 1.21
    /// The factor that corrects for connections that are still new when they are measured.
    static let margin = 1.25
    /// The first and the longest time before the search is repeated. The time doubles with each result.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)
    /// The time before the search is repeated for a nearby host.
    static let nearPause = Duration.seconds(1)

    private enum Mode: Hashable {
        /// Measures the time of a download with the usual number.
        case looking
        /// Measures the downloads per second with `most`; the estimate for the usual number is `before`.
        case trying(before: Double)
        /// Measures the downloads per second with the usual number; `most` reached the rate `with`.
        case comparing(with: Double)
        case resting(until: Duration)
    }

    private var mode = Mode.looking
    private var pause = Self.firstPause
    /// The host that the limit applies to, and the number of consecutive downloads from other hosts since.
    private(set) var origin: HTTPURL.Origin?
    private var strangers = 0
    private var steppedAt: Duration?
    /// The number of downloads that count since the last step, their total time and their shortest time.
    private var count = 0
    private var taken = Duration.zero
    private var least = Duration.zero
    /// The number of downloads that do not count after a step: their connections are new, with small windows, or they
    /// began before the step.
    private var unsteady = 0
    private var beganAt = Duration.zero
    private var failedAt: Duration?
    /// The last hosts that reported overload, and the time until which that counts.
    private var refusals: [HTTPURL.Origin: Duration] = [:]
    private static let mostRefusals = 100

    /// Creates a search without results.
    package init() {}

    /// Records that a download received all its bytes, `duration` after it began.
    package mutating func fetched(after duration: Duration, from origin: HTTPURL.Origin? = nil, now: Duration) {
        if steppedAt == nil || isOther(origin) { return begin(origin, now) }
        switch mode {
        case .resting(let until):
            if now >= until { step(.looking, to: Self.usual, now) }
        case .looking: look(duration, now)
        case .trying(let before):
            guard let rate = rate(now) else { return }
            // If durations differ much, the estimate from the first few is poor, so a smaller gain is measured again.
            if rate >= before * Self.plain {
                settle(rate / before, now)
            } else {
                step(.comparing(with: rate), to: Self.usual, now)
            }
        case .comparing(let most): if let rate = rate(now) { settle(most / rate, now) }
        }
    }

    /// Returns whether the last `usual` downloads came from other hosts than `self.origin`.
    private mutating func isOther(_ origin: HTTPURL.Origin?) -> Bool {
        strangers = origin == self.origin ? 0 : strangers + 1
        return strangers >= Self.usual
    }

    /// Begins the search for another host.
    private mutating func begin(_ origin: HTTPURL.Origin?, _ now: Duration) {
        self.origin = origin
        strangers = 0
        pause = Self.firstPause
        failedAt = nil
        let until = origin.flatMap { refusals[$0] } ?? .zero
        step(until > now ? .resting(until: until) : .looking, to: Self.usual, now)
    }

    /// Estimates the rate of the usual number: the downloads at once divided by the mean time of one (Little 1961).
    private mutating func look(_ duration: Duration, _ now: Duration) {
        // Downloads that began before the step ran beside another number of downloads and do not count.
        guard let steppedAt, now - duration >= steppedAt else { return }
        least = count == 0 ? duration : min(least, duration)
        count += 1
        taken += duration
        guard count >= Self.enough else { return }
        guard least >= Self.far else { return step(.resting(until: now + Self.nearPause), to: limit, now) }
        step(.trying(before: Double(limit * count) / taken.seconds), to: Self.most, now)
    }

    /// Returns the downloads per second once enough have ended, `nil` before. Downloads that run at once may end at
    /// once, so the measurement takes two full rounds.
    private mutating func rate(_ now: Duration) -> Double? {
        count += 1
        if count <= unsteady { beganAt = now }
        guard count >= unsteady + 2 * limit, now > beganAt else { return nil }
        return Double(count - unsteady) / (now - beganAt).seconds
    }

    /// Returns whether a notice reports a failed attempt.
    package static func isFailure(_ kind: TransferNotice.Kind) -> Bool { kind == .retrying || kind == .limited }

    /// Returns whether an error may mean one connection too many: some hosts respond to that with 403.
    package static func isFailure(_ code: TowlineError.Code) -> Bool { code == .refusedByServer || code == .transient }

    /// Records a failed attempt, with or without a retry: there may have been one connection too many.
    package mutating func failed(at origin: HTTPURL.Origin? = nil, now: Duration) {
        guard origin == self.origin else { return }
        // Only the first of several failures within a moment counts.
        if let last = failedAt, now - last < Self.nearPause { return }
        failedAt = now
        if case .resting = mode, limit == Self.usual { return }
        rest(at: max(Self.usual, limit / 2), now)
    }

    /// Records that a host reported overload: no additional connections are tried for `longestPause`.
    package mutating func refused(by origin: HTTPURL.Origin?, now: Duration) {
        if let origin {
            refusals[origin] = now + Self.longestPause
            let oldest = refusals.min { $0.value < $1.value }
            if refusals.count > Self.mostRefusals, let oldest { refusals[oldest.key] = nil }
        }
        if steppedAt == nil { return begin(origin, now) }
        guard origin == self.origin else { return }
        step(.resting(until: now + Self.longestPause), to: Self.usual, now)
    }

    private mutating func settle(_ gain: Double, _ now: Duration) {
        let wanted = (Double(Self.usual) * gain * Self.margin).rounded(.up)
        rest(at: gain < Self.worthwhile ? Self.usual : Int(min(wanted, Double(Self.most))), now)
    }

    private mutating func rest(at limit: Int, _ now: Duration) {
        step(.resting(until: now + pause), to: limit, now)
        pause = min(pause * 2, Self.longestPause)
    }

    private mutating func step(_ next: Mode, to limit: Int, _ now: Duration) {
        mode = next
        unsteady = limit + max(limit, self.limit)
        self.limit = limit
        steppedAt = now
        count = 0
        taken = .zero
    }
}
