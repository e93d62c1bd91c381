/// A measurement of the throughput over some time, and of how evenly the bytes arrived. `ConnectionBudget` uses it to
/// compare the throughput with different numbers of connections.
struct ThroughputMeter: Hashable, Sendable {
    /// The result of the throughput measurement so far.
    struct Reading: Hashable, Sendable {
        /// The duration of the throughput measurement.
        var length: Duration
        /// The number of bytes received during the measurement.
        var bytes: Int64
        /// The square of the relative standard error of the measured rate, which shows how evenly the bytes arrived.
        var squaredError: Double
        /// The measured rate in bytes per second.
        var rate: Double { Double(bytes) / max(length.seconds, 1e-9) }
        /// `true` if the standard error exceeds a fifth of the rate. The rate may soon be much higher or lower, so that
        /// a comparison with it is uncertain.
        var isUneven: Bool { squaredError > 0.2 * 0.2 }
        /// `true` if the standard error is below a twentieth of the rate, so that the rate can be compared with the
        /// rate of another measurement.
        var isEven: Bool { squaredError < 0.05 * 0.05 }
    }

    /// The minimum duration of one sample, a part of the measurement with its own rate.
    static let sampleLength = Duration.milliseconds(15)

    private var start: Duration?
    private var sampleStart = Duration.zero
    private var sampleBytes: Int64 = 0
    private var end = Duration.zero
    private var bytes: Int64 = 0
    private var count = 0.0
    private var sum = 0.0
    private var squares = 0.0

    /// The earliest time at which the current sample can end, so that the caller can call `add` then; `nil` before the
    /// first call of `add`.
    var nextSample: Duration? { start.map { _ in sampleStart + Self.sampleLength } }

    /// Adds the bytes received since the last call. The first call begins the measurement.
    ///
    /// - Returns: `true` if a sample ended, so that `reading` changed.
    mutating func add(_ bytes: Int64, now: Duration) -> Bool {
        guard start != nil else {
            start = now
            sampleStart = now
            return false
        }
        sampleBytes += bytes
        let length = now - sampleStart
        guard length >= Self.sampleLength else { return false }
        let rate = Double(sampleBytes) / length.seconds
        count += 1
        sum += rate
        squares += rate * rate
        self.bytes += sampleBytes
        sampleBytes = 0
        sampleStart = now
        end = now
        return true
    }

    /// The result of the measurement so far; `nil` before the first sample has ended.
    var reading: Reading? {
        guard let start, count > 0 else { return nil }
        let mean = sum / count
        let variance = max(0, squares / count - mean * mean)
        let error = count > 1 && mean > 0 ? variance / (count - 1) / (mean * mean) : 1
        return Reading(length: end - start, bytes: bytes, squaredError: error)
    }
}
