/// The monotonic clock of this process. A time is the duration since a fixed instant, as in `TransferContext.now`.
package enum MonotonicClock {
    private static let origin = ContinuousClock.now

    /// The current time, never negative. The clock advances while the machine sleeps, so that a stalled connection
    /// counts as stalled after a suspend, too.
    package static var now: Duration {
        // Read the origin before the time: it is created at its first use, and would otherwise be later than the time.
        origin.duration(to: .now)
    }
}
