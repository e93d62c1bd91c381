/// Monotonic time as a duration since a fixed instant of this process: what `TransferContext.now` counts in.
package enum MonotonicClock {
    private static let origin = ContinuousClock.now

    /// The time now. Goes on while the machine sleeps: a stalled connection is stalled after a suspend, too.
    package static var now: Duration { ContinuousClock.now - origin }
}
