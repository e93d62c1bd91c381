/// The interval of the ticks with which a transfer checks its rate, stalls and checkpoints while no other event occurs.
package enum TickPolicy {
    /// The delay before the first tick, which comes after one to two of these. Most small files are complete by then.
    package static let grace = Duration.milliseconds(50)

    /// The delay for a transfer that is a single request until then: the server is far away or slow, and its details
    /// are not needed sooner.
    package static let patience = Duration.milliseconds(500)

    /// The minimum number of missing bytes for ticks to start at once: the first bytes already show how many
    /// connections pay off.
    static let long: Int64 = 8 << 20

    /// Returns the interval: 100 ms for up to a hundred transfers; for more, 1 ms per transfer, but at most a second.
    ///
    /// - Parameters:
    ///   - running: the number of transfers that run.
    ///   - endsSoon: several connections are about to finish: four times as many ticks, if few transfers run.
    ///   - isHashedFast: fast bytes are hashed as they arrive: ten times as many, because each tick allows more
    ///     hashing.
    package static func interval(running: Int, endsSoon: Bool = false, isHashedFast: Bool = false) -> Duration {
        if isHashedFast, running <= 100 { return .milliseconds(10) }
        if endsSoon, running <= 100 { return .milliseconds(25) }
        return .milliseconds(min(max(running, 100), 1000))
    }

    /// The number of seconds before its end in which a download has frequent ticks.
    package static let end = 0.3
}
