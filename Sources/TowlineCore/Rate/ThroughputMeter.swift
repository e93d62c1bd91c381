/// A throughput over some time, and how evenly the bytes came.
struct ThroughputMeter: Hashable, Sendable {
    /// What was measured so far.
    struct Reading: Hashable, Sendable {
        /// How long.
        var length: Duration
        /// Everything that came.
        var bytes: Int64
        /// The standard error of the rate, as a share of it, squared.
        var squaredError: Double
        /// Bytes per second.
        var rate: Double { Double(bytes) / max(length.seconds, 1e-9) }
        /// The mean says little: the next moments may bring much more, or much less.
        var isUneven: Bool { squaredError > 0.2 * 0.2 }
        /// The mean can be compared with another.
        var isEven: Bool { squaredError < 0.05 * 0.05 }
    }

    /// How long one sample takes.
    static let sampleLength = Duration.milliseconds(15)

    private var start: Duration?
    private var sampleStart = Duration.zero
    private var sampleBytes: Int64 = 0
    private var end = Duration.zero
    private var bytes: Int64 = 0
    private var count = 0.0
    private var sum = 0.0
    private var squares = 0.0

    /// When the sample that is being taken is over; `nil` before the first.
    var nextSample: Duration? { start.map { _ in sampleStart + Self.sampleLength } }

    /// Adds the bytes that came since the last call; the first call begins the measurement.
    ///
    /// - Returns: whether a sample ended, and so `reading` changed.
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

    /// `nil` before the first sample has ended.
    var reading: Reading? {
        guard let start, count > 0 else { return nil }
        let mean = sum / count
        let variance = max(0, squares / count - mean * mean)
        let error = count > 1 && mean > 0 ? variance / (count - 1) / (mean * mean) : 1
        return Reading(length: end - start, bytes: bytes, squaredError: error)
    }
}
