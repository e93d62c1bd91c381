/// Monotonic time as a duration since a fixed instant of this process: what `TransferContext.now` counts in.
package enum MonotonicClock {
    private static let origin = ContinuousClock.now

    /// The time now, never negative. Goes on while the machine sleeps: a stalled connection is stalled after a
    /// suspend, too.
    package static var now: Duration {
        // The origin first: it is made when it is first asked for, and made after the time it would be later than it.
        origin.duration(to: .now)
    }
}
