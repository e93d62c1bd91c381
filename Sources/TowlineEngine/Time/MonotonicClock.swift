/// The monotonic clock of this process, which never goes backwards. A time is the duration since a fixed moment.
package enum MonotonicClock {
    private static let origin = ContinuousClock.now

    /// The current time of the clock, never negative. It advances while the machine sleeps, so that a connection
    /// without bytes counts as stalled after a suspend, too.
    package static var now: Duration {
        // Read the origin before the time: it is created at its first use, and would otherwise be later than the time.
        origin.duration(to: .now)
    }
}
