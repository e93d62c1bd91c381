/// How many connections pay off (DESIGN.md §5): one doubling at a time while the throughput of the whole grows by at
/// least a tenth; the last step is taken back if it does not.
package struct ConnectionBudget: Hashable, Sendable {
    /// Connections to use now.
    package private(set) var target: Int
    /// Most connections ever.
    package private(set) var ceiling: Int
    private let wanted: Int
    private let isFixed: Bool
    private var recovery: Duration?
    private var recoverAt: Duration?
    private var baseline: Double?
    private var windowStart: Duration?
    private var windowBytes: Int64 = 0
    private var previous: Int
    private var isSettled: Bool

    /// - Parameters:
    ///   - requested: what the user asked for; `nil`: find out, up to 16.
    ///   - hostCeiling: what the host is known to allow.
    package init(requested: Int?, hostCeiling: Int?) {
        wanted = min(max(requested ?? 16, 1), 128)
        ceiling = min(wanted, hostCeiling ?? wanted)
        isFixed = requested != nil
        target = requested == nil ? 1 : ceiling
        previous = 1
        isSettled = requested != nil
    }

    /// How long one step is measured.
    static let window = Duration.milliseconds(250)

    /// Feeds the bytes that came since the last call, over all connections; called a few times a second while
    /// `active` connections bring bytes.
    package mutating func measure(_ bytes: Int64, active: Int, now: Duration) {
        if bytes > 0 { recover(now) }
        guard !isSettled, active >= target else {
            // Connections that are still being opened would spoil the measurement.
            windowStart = nil
            windowBytes = 0
            return
        }
        guard let start = windowStart else {
            windowStart = now
            windowBytes = 0
            return
        }
        windowBytes += bytes
        guard now - start >= Self.window else { return }
        step(rate: Double(windowBytes) / (now - start).seconds)
        windowStart = nil
        windowBytes = 0
    }

    private mutating func step(rate: Double) {
        if let baseline, rate < baseline * 1.1 {
            // The step did not pay: take it back and stay.
            target = previous
            isSettled = true
            return
        }
        baseline = rate
        previous = target
        target = min(target * 2, ceiling)
        isSettled = target == previous
    }

    /// The host asked for less, or refused a connection while `working` others brought bytes.
    ///
    /// - Parameter recovery: after this time one more is tried; a refusal may have been a passing one. `nil`: never.
    package mutating func lower(to working: Int, now: Duration, recovery: Duration? = .seconds(20)) {
        ceiling = max(1, min(ceiling, working))
        target = min(target, ceiling)
        previous = min(previous, target)
        isSettled = true
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
