/// The rates and times that a transfer has measured, with which it divides ranges, detects stalls and estimates the
/// remaining time.
struct TransferPace: Sendable {
    /// The number of received bytes, including bytes that were requested again for comparison.
    var receivedBytes: Int64 = 0
    var estimator = ThroughputEstimator()
    var remainingTime = RemainingTimeEstimator()
    /// The typical rate of a connection of this download in bytes per second; `nil` before the first attempt ended.
    var typicalRate: Double?
    /// The shortest time from a request of the transfer to its response, in seconds; `nil` before the first response.
    var roundTrip: Double?
    /// `true` once a response has completed. Responses that began at the same time may then end soon as well.
    var hasCompleted = false
    /// The time when an attempt last wrote a byte, was held back by a rate limit, or began while no other attempt ran.
    var lastWrittenAt = Duration.zero
    /// The time when bytes last arrived; `nil` before the first byte and once all bytes are written.
    var lastReceivedAt: Duration?
    /// The time when the user's rate limit last delayed bytes; `nil` if it never did.
    var lastHeldBackAt: Duration?
}
