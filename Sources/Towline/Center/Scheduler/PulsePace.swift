/// The pace of the reports about running downloads: the interval between two snapshots, and between two writes of the
/// progress to the registry.
struct PulsePace {
    /// The maximum number of snapshots per second that are delivered to all readers together, because each delivery
    /// costs some microseconds. At a higher number, the interval between snapshots grows.
    private static let deliveriesPerSecond = 10_000.0
    private static let longestInterval = Duration.seconds(5)
    /// The interval between two writes of the progress to the registry. The journals contain the exact progress.
    private static let progressInterval = Duration.seconds(5)

    private let shortest: Duration
    /// The monotonic time of the last write of the progress.
    private var written: Duration
    /// The number of snapshots that were delivered to readers by the last report of all running downloads, which
    /// decides the next interval.
    var deliveries = 0

    /// Creates the pace of the reports; the first interval begins at `now`.
    ///
    /// - Parameter shortest: the shortest interval between two snapshots.
    init(shortest: Duration, now: Duration) { (self.shortest, written) = (shortest, now) }

    /// The interval until the next report about running downloads. It grows with the number of readers and downloads,
    /// because receiving bytes has priority over reports.
    var interval: Duration {
        min(max(shortest, .seconds(Double(deliveries) / Self.deliveriesPerSecond)), Self.longestInterval)
    }

    /// Returns whether the byte counts of running downloads must be written to the registry now. If so, begins the next
    /// interval between two writes.
    mutating func isProgressDue(now: Duration) -> Bool {
        guard now - written >= Self.progressInterval else { return false }
        written = now
        return true
    }
}
