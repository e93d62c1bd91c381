/// The monotonic time as a duration since a fixed instant of this process, as in `TransferContext.now`.
package enum MonotonicClock {
    private static let origin = ContinuousClock.now

    /// The current time, never negative. It advances while the machine sleeps, so that a stalled connection counts as
    /// stalled after a suspend, too.
    package static var now: Duration {
        // Read the origin before the time: it is created at its first use, and would otherwise be later than the time.
        origin.duration(to: .now)
    }
}
