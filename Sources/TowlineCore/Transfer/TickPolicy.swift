/// The interval of ticks: timer events with which a transfer checks its rate, stalls and checkpoints while no other
/// event occurs.
package enum TickPolicy {
    /// The delay of a transfer's first tick, and the interval of the shared timer that starts it. The tick comes after
    /// one to two of these intervals. Most small files are complete by then.
    package static let grace = Duration.milliseconds(50)

    /// The time without an event after which a transfer that is a single request so far (`SmallFilePolicy`) gets a
    /// state machine and ticks: the server is far away or slow, and its details are not needed sooner.
    package static let patience = Duration.milliseconds(500)

    /// The minimum number of missing bytes for ticks to start with the response, without the first delay: the first
    /// bytes already show how many connections pay off.
    static let long: Int64 = 8 << 20

    /// Returns the interval: 100 ms for up to a hundred transfers; for more, 1 ms per transfer, but at most a second.
    ///
    /// - Parameters:
    ///   - running: the number of transfers of the process that run.
    ///   - endsSoon: `true` if several connections are about to finish: four times as many ticks, if few transfers run.
    ///   - isHashedFast: `true` if fast bytes are hashed as they arrive: ten times as many ticks, because each tick
    ///     allows more hashing.
    package static func interval(running: Int, endsSoon: Bool = false, isHashedFast: Bool = false) -> Duration {
        if isHashedFast, running <= 100 { return .milliseconds(10) }
        if endsSoon, running <= 100 { return .milliseconds(25) }
        return .milliseconds(min(max(running, 100), 1000))
    }

    /// The remaining time in seconds of a download below which ticks are frequent (`interval`, `endsSoon`).
    package static let end = 0.3
}
