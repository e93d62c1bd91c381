/// The search for the number of short downloads of a batch that should run in parallel, each with its own connection,
/// for the highest number of downloads per second (docs/internals/list-concurrency.md).
///
/// If even the fastest download takes long, the search tries two doublings and measures the downloads per second. If
/// each doubling gains less than a tenth, both are undone; otherwise the limit becomes the number of downloads that the
/// measured gain requires.
package struct ConnectionSearch: Sendable {
    /// The number of short downloads of the batch that should run in parallel now.
    package private(set) var limit = Self.usual

    /// The number of parallel short downloads before a search has a result: sixteen, as many connections as one long
    /// download may have.
    package static let usual = 16
    /// The highest number of parallel downloads that the search tries, after two doublings of `usual`. Only the user
    /// can set more, because many hosts allow one client address no more.
    package static let most = 64

    /// The minimum time of the fastest measured download for its host to count as distant. For a nearer host, the
    /// number of parallel downloads is not raised.
    static let far = Duration.milliseconds(40)
    /// The number of downloads whose time is measured before the search decides whether to raise the number of parallel
    /// downloads.
    static let enough = 5
    /// The gain that needs no second measurement: the minimum ratio of the downloads per second with `most` parallel
    /// downloads to those with `usual` parallel downloads.
    static let plain = 3.0
    /// The minimum gain that keeps a raised number of parallel downloads: the ratio of the downloads per second after
    /// two doublings to those before (a tenth for each).
    static let worthwhile = 1.21
    /// The factor that increases the number of parallel downloads calculated from the measured gain, because new
    /// connections, with their small windows, were measured.
    static let margin = 1.25
    /// The first and the longest pause between the result of a search and the next search. The pause doubles with each
    /// result.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)
    /// The time before the search is repeated for a nearby host, whose number of parallel downloads was not raised.
    static let nearPause = Duration.seconds(1)

    /// The phase of the search for the number of downloads that run in parallel.
    private enum Mode: Hashable {
        /// Measures how long downloads take while `usual` of them run in parallel. `trying` follows, or `resting` for a
        /// nearby host.
        case looking
        /// Measures the downloads per second while `most` run in parallel; the estimated rate with `usual` is `before`.
        case trying(before: Double)
        /// Measures the downloads per second while `usual` run in parallel, for a comparison; with `most`, the rate was
        /// `with`.
        case comparing(with: Double)
        /// Keeps the number of parallel downloads until the given time. The search then begins again.
        case resting(until: Duration)
    }

    /// The current phase of the search: measuring, trying or resting.
    private var mode = Mode.looking
    /// The pause between the next result of a search and the search after it.
    private var pause = Self.firstPause
    /// The host whose number of parallel downloads is searched for; `nil` before the first download.
    private(set) var origin: HTTPURL.Origin?
    /// The number of consecutive downloads from hosts other than `origin`. After `usual`, a new search begins.
    private var strangers = 0
    private var steppedAt: Duration?
    /// The number of downloads measured since the search last changed its mode.
    private var count = 0
    /// The total time of the downloads measured since the search last changed its mode.
    private var taken = Duration.zero
    /// The shortest time of a download measured since the search last changed its mode.
    private var least = Duration.zero
    /// The number of downloads that are not measured after a change of mode or limit, because their connections are
    /// new, with small windows, or they began before the change.
    private var unsteady = 0
    private var beganAt = Duration.zero
    private var failedAt: Duration?
    /// The hosts that last reported overload, each with the time until which a search for the host does not begin.
    private var refusals: [HTTPURL.Origin: Duration] = [:]
    /// The maximum number of hosts whose overload is remembered.
    private static let mostRefusals = 100

    /// Creates a search without results, so that `usual` downloads run in parallel.
    package init() {}

    /// Records that a download of the batch from the host `origin` received all its bytes, `duration` after it began.
    /// The measurement may change `limit`.
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

    /// Returns whether the last `usual` downloads came from other hosts than `self.origin`, so that a new search
    /// begins.
    private mutating func isOther(_ origin: HTTPURL.Origin?) -> Bool {
        strangers = origin == self.origin ? 0 : strangers + 1
        return strangers >= Self.usual
    }

    /// Begins a new search for the host `origin`; pauses first if the host reported overload recently.
    private mutating func begin(_ origin: HTTPURL.Origin?, _ now: Duration) {
        self.origin = origin
        strangers = 0
        pause = Self.firstPause
        failedAt = nil
        let until = origin.flatMap { refusals[$0] } ?? .zero
        step(until > now ? .resting(until: until) : .looking, to: Self.usual, now)
    }

    /// Measures `duration`, the time of a download, while `usual` run in parallel. After enough, it estimates the
    /// downloads per second as the parallel downloads divided by their mean time (Little 1961), and tries more or
    /// rests.
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

    /// Returns the downloads per second since the mode or limit last changed, once enough downloads have ended; `nil`
    /// before. Parallel downloads may all end together, so the measurement takes two full rounds.
    private mutating func rate(_ now: Duration) -> Double? {
        count += 1
        if count <= unsteady { beganAt = now }
        guard count >= unsteady + 2 * limit, now > beganAt else { return nil }
        return Double(count - unsteady) / (now - beganAt).seconds
    }

    /// Returns whether a notice of a download reports a failed request. The caller then calls `failed` to lower the
    /// limit.
    package static func isFailure(_ kind: TransferNotice.Kind) -> Bool { kind == .retrying || kind == .limited }

    /// Returns whether the error of a failed download may mean one connection too many. The caller then calls `failed`
    /// to lower the limit. Some hosts respond to too many connections with 403.
    package static func isFailure(_ code: TowlineError.Code) -> Bool { code == .refusedByServer || code == .transient }

    /// Records that a request to the host `origin` failed. Too many connections may be the reason, so the limit is
    /// halved, but not below `usual`.
    package mutating func failed(at origin: HTTPURL.Origin? = nil, now: Duration) {
        guard origin == self.origin else { return }
        // Only the first of several failures within a moment counts.
        if let last = failedAt, now - last < Self.nearPause { return }
        failedAt = now
        if case .resting = mode, limit == Self.usual { return }
        rest(at: max(Self.usual, limit / 2), now)
    }

    /// Records that a host reported overload: `usual` downloads run in parallel for the next hour (`longestPause`).
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
