/// A rate smoothed over the last seconds: an exponentially weighted mean over time, not over samples, so that it
/// does not depend on how often it is fed.
package struct ThroughputEstimator: Hashable, Sendable {
    private let timeConstant: Double
    private var weight = 0.0
    private var mean = 0.0
    private var last: Duration?

    /// - Parameter timeConstant: how far back it looks.
    package init(timeConstant: Duration = .seconds(3)) { self.timeConstant = timeConstant.seconds }

    /// Bytes per second; `nil` before the first half second of samples.
    package var rate: Double? { weight < 0.15 ? nil : mean / weight }

    /// Adds the bytes that came since the last call.
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

    /// Forgets everything: after a pause the old rate says nothing.
    package mutating func reset() { self = ThroughputEstimator(timeConstant: .seconds(timeConstant)) }

    /// e to the power of a number that is not positive, by its series: the standard library has none.
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
