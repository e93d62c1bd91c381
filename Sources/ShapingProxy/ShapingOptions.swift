/// What a ``ShapingProxy`` makes of the loopback: a network with delay and limits, and what goes wrong in it.
///
/// Connections are numbered from 1 in the order in which they are accepted.
package struct ShapingOptions: Sendable {
    /// The port to listen at; 0 lets the system choose.
    package var port: UInt16 = 0
    /// The round-trip delay in nanoseconds: half of it in each direction, and a whole one before the first byte, which
    /// is what a handshake takes.
    package var delay: Int64 = 0
    /// Bytes per second towards the client, for each connection; `nil` for no limit.
    package var rate: Int64?
    /// Bytes per second towards clients, for all connections together: a link that all share fairly.
    package var totalRate: Int64?
    /// How many bytes of one connection may be under way and not yet acknowledged, which takes a round trip. With a
    /// delay it limits a connection to `window / delay`. A smaller window than the default also limits what the kernel
    /// holds for the client.
    package var window = defaultWindow
    static let defaultWindow = 4 << 20
    /// Whether the window begins with ten packets and grows by what is acknowledged, as that of TCP does.
    package var slowStart = false
    /// Connections that are slower: their number, and the share of ``rate`` they get.
    package var slow: [Int: Double] = [:]
    /// Connections that fall silent: their number, and after how many bytes towards the client.
    package var stalled: [Int: Int64] = [:]
    /// Connections are reset after a number of bytes towards the client drawn evenly from this range, anew for each.
    package var resetAfter: ClosedRange<Int64>?
    /// How many connections, the first ones, are reset.
    package var resets = Int.max
    /// What determines the numbers drawn: the n-th connection gets the same one in every run with the same seed.
    package var seed: UInt64 = 1
    /// After so many bytes towards clients nothing answers any more: the listener is closed, connections are reset.
    package var diesAfter: Int64?

    /// A proxy that only forwards.
    package init() {}

    /// The rate of a connection.
    func rate(of number: Int) -> Int64? {
        guard let rate else { return nil }
        return max(1, Int64(Double(rate) * (slow[number] ?? 1)))
    }

    /// After how many bytes towards the client a connection is reset; `nil` if it is not.
    package func reset(of number: Int) -> Int64? {
        guard let range = resetAfter, number <= resets else { return nil }
        var generator = NumberedGenerator(state: seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15)
        return Int64.random(in: range, using: &generator)
    }
}

/// What a ``ShapingProxy`` has seen.
package struct ShapingStatistics: Sendable, Equatable {
    /// How many connections were accepted.
    package var accepted = 0
    /// How many are open.
    package var open = 0
    /// How many were open at one time.
    package var mostOpen = 0
    /// How many the options had reset.
    package var resets = 0
    /// Bytes handed to clients' sockets.
    package var bytes: Int64 = 0
}

/// SplitMix64.
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
