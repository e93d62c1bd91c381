/// The options of a ``ShapingProxy``: the delay, the limits and the faults of the simulated network.
///
/// Connections are numbered from 1 in the order of acceptance.
package struct ShapingOptions: Sendable {
    /// The port to listen on; 0 lets the system choose.
    package var port: UInt16 = 0
    /// The round-trip delay in nanoseconds: half in each direction, and a full one before the first byte, for the
    /// handshake.
    package var delay: Int64 = 0
    /// The maximum bytes per second towards the client, for each connection; `nil` for no limit.
    package var rate: Int64?
    /// The maximum bytes per second towards clients for all connections together, which share it fairly; `nil` for no
    /// limit.
    package var totalRate: Int64?
    /// The maximum bytes in flight per connection; an acknowledgement takes a round trip. With a delay the window
    /// limits a connection to `window / delay`. A window below the default also limits the kernel's send buffer for the
    /// client.
    package var window = defaultWindow
    static let defaultWindow = 4 << 20
    /// `true` if the window begins with ten packets and grows with each acknowledgement, like TCP's.
    package var slowStart = false
    /// The slower connections: the share of ``rate`` by connection number.
    package var slow: [Int: Double] = [:]
    /// The stalling connections: the number of bytes towards the client before the stall, by connection number.
    package var stalled: [Int: Int64] = [:]
    /// The range of a random number of bytes towards the client after which each connection is reset; `nil` for no
    /// resets.
    package var resetAfter: ClosedRange<Int64>?
    /// The number of connections, counted from the first, that are reset.
    package var resets = Int.max
    /// The seed of the random numbers: the n-th connection gets the same number in every run with the same seed.
    package var seed: UInt64 = 1
    /// The number of bytes towards clients after which the listener is closed and the connections are reset; `nil` for
    /// never.
    package var diesAfter: Int64?

    /// Creates options for a proxy that only forwards.
    package init() {}

    /// Returns the maximum bytes per second of a connection; `nil` for no limit.
    func rate(of number: Int) -> Int64? {
        guard let rate else { return nil }
        return max(1, Int64(Double(rate) * (slow[number] ?? 1)))
    }

    /// Returns the number of bytes towards the client after which a connection is reset; `nil` for no reset.
    package func reset(of number: Int) -> Int64? {
        guard let range = resetAfter, number <= resets else { return nil }
        var generator = NumberedGenerator(state: seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15)
        return Int64.random(in: range, using: &generator)
    }
}

/// The counters of a ``ShapingProxy``.
package struct ShapingStatistics: Sendable, Equatable {
    /// The number of accepted connections.
    package var accepted = 0
    /// The number of open connections.
    package var open = 0
    /// The maximum number of connections that were open at the same time.
    package var mostOpen = 0
    /// The number of connections that were reset by `resetAfter`.
    package var resets = 0
    /// The number of bytes written to clients' sockets.
    package var bytes: Int64 = 0
}

/// The SplitMix64 generator.
private struct NumberedGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
