/// How many short downloads at once pay off, each with a connection of its own (DESIGN.md §5).
///
/// A host that is near is kept busy by sixteen. From far away each connection waits for most of its time, and four times as
/// many bring up to four times the files: until the line is full, or the host. So where even the quickest takes long,
/// how many arrive in a second is measured, and once more with two doublings. If those bring less than a tenth each, they
/// are taken back; otherwise as many stay as bring what was measured. A failed attempt takes back one doubling. After a
/// while it begins anew: networks change.
package struct ConnectionSearch: Sendable {
    /// So many now.
    package private(set) var limit = Self.usual

    /// As many as one long download may have.
    package static let usual = 16
    /// Two doublings. More is for those who ask for it: many hosts allow an address no more.
    package static let most = 64

    /// Even the quickest takes so long: it waits for the way.
    static let far = Duration.milliseconds(40)
    /// Two doublings paid off if each brought a tenth.
    static let worthwhile = 1.21
    /// Some of the connections are still young when they are measured.
    static let margin = 1.25
    /// How long a finding is believed at first; twice as long after each further one.
    static let firstPause = Duration.seconds(15), longestPause = Duration.seconds(3600)
    /// How long one of a host that is near.
    static let nearPause = Duration.seconds(1)

    private enum Mode: Hashable {
        /// What the usual number brings.
        case measuring
        /// What more bring, where the usual number brought so many a second.
        case trying(before: Double)
        case resting(until: Duration)
    }

    private var mode = Mode.measuring
    private var pause = Self.firstPause
    /// Downloads that have ended since the last step.
    private var count = 0
    /// So many of them are not counted.
    private var unsteady = Self.usual
    private var beganAt = Duration.zero
    private var least: Duration?
    private var failedAt: Duration?

    /// Nothing is known.
    package init() {}

    /// A download has its bytes, so long after it began.
    package mutating func fetched(after duration: Duration, now: Duration) {
        if case .resting(let until) = mode {
            guard now >= until else { return }
            step(.measuring, to: Self.usual)
        }
        count += 1
        guard count > unsteady else {
            beganAt = now
            return
        }
        least = min(least ?? duration, duration)
        guard count >= unsteady + window, now > beganAt else { return }
        let rate = Double(count - unsteady) / (now - beganAt).seconds
        switch mode {
        case .measuring:
            guard (least ?? .zero) >= Self.far else { return step(.resting(until: now + Self.nearPause), to: limit) }
            step(.trying(before: rate), to: Self.most)
        case .trying(let before): settle(rate / before, now)
        case .resting: break
        }
    }

    /// So many downloads are measured: those that run at once may well end at once, and the time is that of whole rounds.
    private var window: Int { mode == .measuring ? limit : 2 * limit }

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
        step(.resting(until: now + pause), to: limit)
        pause = min(pause * 2, Self.longestPause)
    }

    private mutating func step(_ next: Mode, to limit: Int) {
        mode = next
        // Those that began before the step, and those of connections that are young, whose windows are small.
        unsteady = max(self.limit + limit, 2 * limit)
        self.limit = limit
        count = 0
        least = nil
    }
}
