/// A download rate smoothed over the last seconds: an exponentially weighted mean over time, not over samples, so that
/// it does not depend on the number of samples.
package struct ThroughputEstimator: Hashable, Sendable {
    private let timeConstant: Double
    private var weight = 0.0
    private var mean = 0.0
    private var last: Duration?

    /// Creates an estimator of the download rate without measurements.
    ///
    /// - Parameter timeConstant: the time after which the weight of a sample drops to 1/e.
    package init(timeConstant: Duration = .seconds(3)) { self.timeConstant = timeConstant.seconds }

    /// The rate in bytes per second; `nil` until the samples cover a sixth of the time constant (half a second by
    /// default).
    package var rate: Double? { weight < 0.15 ? nil : mean / weight }

    /// Adds the bytes received since the last call. The first call starts the measurement.
    package mutating func add(_ bytes: Int64, now: Duration) {
        guard let last else {
            self.last = now
            return
        }
        let elapsed = (now - last).seconds
        guard elapsed > 0 else { return }
        let decay = exponential(-elapsed / timeConstant)
        mean = mean * decay + Double(bytes) / elapsed * (1 - decay)
        weight = weight * decay + (1 - decay)
        self.last = now
    }

    /// Discards all samples of the rate, because the rate before a pause of the download is meaningless afterwards.
    package mutating func reset() { self = ThroughputEstimator(timeConstant: .seconds(timeConstant)) }

    /// Returns e to the power of `exponent`, which is not positive, for the weight of older samples. Uses the power
    /// series, because the standard library has no such function.
    private func exponential(_ exponent: Double) -> Double {
        guard exponent > -20 else { return 0 }
        // e^x = (e^(x/32))^32; for |x/32| < 1 six terms are exact to 1e-6.
        let part = exponent / 32
        var term = 1.0
        var sum = 1.0
        for index in 1...7 {
            term *= part / Double(index)
            sum += term
        }
        return (0..<5).reduce(sum) { power, _ in power * power }
    }
}
