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
        case measuring
        /// How many arrive with more, where the usual number brings so many a second.
        case trying(before: Double)
        case resting(until: Duration)
    }

    private var mode = Mode.measuring
    private var pause = Self.firstPause
    private var steppedAt: Duration?
    /// Downloads that count since the last step, and what they took together.
    private var count = 0
    private var taken = Duration.zero
    private var least = Duration.zero
    private var beganAt = Duration.zero
    private var failedAt: Duration?

    /// Nothing is known.
    package init() {}

    /// A download has its bytes, so long after it began.
    package mutating func fetched(after duration: Duration, now: Duration) {
        switch mode {
        case .resting(let until):
            if now >= until { step(.measuring, to: Self.usual, now) }
        case .measuring: measure(duration, now)
        case .trying(let before):
            count += 1
            // Those of connections that are young, whose windows are small, do not count. Those that run at once may well
            // end at once: the time is that of whole rounds.
            if count <= 2 * limit { beganAt = now }
            guard count >= 4 * limit, now > beganAt else { return }
            settle(Double(2 * limit) / (now - beganAt).seconds / before, now)
        }
    }

    /// So many at once bring so many in the time that one takes (Little 1961).
    private mutating func measure(_ duration: Duration, _ now: Duration) {
        // Those that began before, with another number beside them, do not count.
        guard let steppedAt else { return step(.measuring, to: limit, now) }
        guard now - duration >= steppedAt else { return }
        least = count == 0 ? duration : min(least, duration)
        count += 1
        taken += duration
        guard count >= Self.enough else { return }
        guard least >= Self.far else { return step(.resting(until: now + Self.nearPause), to: limit, now) }
        step(.trying(before: Double(limit * count) / taken.seconds), to: Self.most, now)
    }

    /// An attempt failed and another follows: it may have been one connection too many.
    package mutating func failed(now: Duration) {
        // Of several that fail within moments the first says it all.
        if let last = failedAt, now - last < Self.nearPause { return }
        failedAt = now
        if case .resting = mode, limit == Self.usual { return }
        rest(at: max(Self.usual, limit / 2), now)
    }

    private mutating func settle(_ gain: Double, _ now: Duration) {
        let enough = (Double(Self.usual) * gain * Self.margin).rounded(.up)
        rest(at: gain < Self.worthwhile ? Self.usual : Int(min(enough, Double(Self.most))), now)
    }

    private mutating func rest(at limit: Int, _ now: Duration) {
        step(.resting(until: now + pause), to: limit, now)
        pause = min(pause * 2, Self.longestPause)
    }

    private mutating func step(_ next: Mode, to limit: Int, _ now: Duration) {
        mode = next
        self.limit = limit
        steppedAt = now
        count = 0
        taken = .zero
    }
}
