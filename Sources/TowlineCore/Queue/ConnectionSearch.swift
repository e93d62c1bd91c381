/// How many short downloads at once pay off, each with a connection of its own (DESIGN.md §5).
///
/// A host that is near is kept busy by sixteen. From far away each connection waits for most of its time, and four times as
/// many bring up to four times the files: until the line is full, or the host. So where even the quickest takes long, two
/// doublings are tried, and how many arrive in a second is measured. If they bring less than a tenth each, they are taken
/// back; otherwise as many stay as bring what was measured. A failed attempt takes back one doubling. After a while it
/// begins anew: networks change.
package struct ConnectionSearch: Sendable {
    /// So many now.
    package private(set) var limit = Self.usual

    /// As many as one long download may have.
    package static let usual = 16
    /// Two doublings. More is for those who ask for it: many hosts allow an address no more.
    package static let most = 64

    /// Even the quickest takes so long: it waits for the way.
    static let far = Duration.milliseconds(40)
    /// So many tell how long one takes.
    static let enough = 5
    /// Three times as many are more than chance.
    static let plain = 3.0
    /// Two doublings paid off if each brought a tenth.
    static let worthwhile = 1.21
    /// Some of the connections are still young when they are measured.
    static let margin = 1.25
    /// How long a finding is believed at first; twice as long after each further one.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)
    /// How long one of a host that is near.
    static let nearPause = Duration.seconds(1)

    private enum Mode: Hashable {
        /// How long a download takes with the usual number.
        case looking
        /// How many arrive with more, where the usual number seems to bring so many a second.
        case trying(before: Double)
        /// How many the usual number does bring, where more bring so many.
        case comparing(with: Double)
        case resting(until: Duration)
    }

    private var mode = Mode.looking
    private var pause = Self.firstPause
    /// The host that most of the last ones are of, for which the limit is; and how many of others came since.
    private(set) var origin: HTTPURL.Origin?
    private var strangers = 0
    private var steppedAt: Duration?
    /// Downloads that count since the last step, and what they took together.
    private var count = 0
    private var taken = Duration.zero
    private var least = Duration.zero
    /// So many do not count after a step: those of connections that are young, whose windows are small, and of the number before.
    private var unsteady = 0
    private var beganAt = Duration.zero
    private var failedAt: Duration?
    /// The last hosts that said that it is too much, until when that counts.
    private var refusals: [HTTPURL.Origin: Duration] = [:]
    private static let mostRefusals = 100

    /// Nothing is known.
    package init() {}

    /// A download has its bytes, so long after it began.
    package mutating func fetched(after duration: Duration, from origin: HTTPURL.Origin? = nil, now: Duration) {
        if steppedAt == nil || isOther(origin) { return begin(origin, now) }
        switch mode {
        case .resting(let until):
            if now >= until { step(.looking, to: Self.usual, now) }
        case .looking: look(duration, now)
        case .trying(let before):
            guard let rate = rate(now) else { return }
            // What the first few took says too little of how long they take where some take much longer than others.
            if rate >= before * Self.plain {
                settle(rate / before, now)
            } else {
                step(.comparing(with: rate), to: Self.usual, now)
            }
        case .comparing(let most): if let rate = rate(now) { settle(most / rate, now) }
        }
    }

    /// Whether a host other than the one that this is about comes again and again instead.
    private mutating func isOther(_ origin: HTTPURL.Origin?) -> Bool {
        strangers = origin == self.origin ? 0 : strangers + 1
        return strangers >= Self.usual
    }

    /// From here on it is about that host, of which nothing is known.
    private mutating func begin(_ origin: HTTPURL.Origin?, _ now: Duration) {
        self.origin = origin
        strangers = 0
        pause = Self.firstPause
        failedAt = nil
        let until = origin.flatMap { refusals[$0] } ?? .zero
        step(until > now ? .resting(until: until) : .looking, to: Self.usual, now)
    }

    /// So many at once bring so many in the time that one takes (Little 1961).
    private mutating func look(_ duration: Duration, _ now: Duration) {
        // Those that began before, with another number beside them, do not count.
        guard let steppedAt, now - duration >= steppedAt else { return }
        least = count == 0 ? duration : min(least, duration)
        count += 1
        taken += duration
        guard count >= Self.enough else { return }
        guard least >= Self.far else { return step(.resting(until: now + Self.nearPause), to: limit, now) }
        step(.trying(before: Double(limit * count) / taken.seconds), to: Self.most, now)
    }

    /// How many arrive in a second, once enough have. Those that run at once may well end at once: the time is that of two
    /// whole rounds.
    private mutating func rate(_ now: Duration) -> Double? {
        count += 1
        if count <= unsteady { beganAt = now }
        guard count >= unsteady + 2 * limit, now > beganAt else { return nil }
        return Double(count - unsteady) / (now - beganAt).seconds
    }

    /// Whether a notice tells of an attempt that failed.
    package static func isFailure(_ kind: TransferNotice.Kind) -> Bool { kind == .retrying || kind == .limited }

    /// Whether a download that ended so may have been one connection too many: some hosts say that with a 403.
    package static func isFailure(_ code: TowlineError.Code) -> Bool { code == .refusedByServer || code == .transient }

    /// An attempt failed and another follows, or none: it may have been one connection too many.
    package mutating func failed(at origin: HTTPURL.Origin? = nil, now: Duration) {
        guard origin == self.origin else { return }
        // Of several that fail within moments the first says it all.
        if let last = failedAt, now - last < Self.nearPause { return }
        failedAt = now
        if case .resting = mode, limit == Self.usual { return }
        rest(at: max(Self.usual, limit / 2), now)
    }

    /// The host says that it is asked for too much: for as long as such a word counts no more are tried.
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
