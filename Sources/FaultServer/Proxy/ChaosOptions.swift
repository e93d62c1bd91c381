/// What a ``ChaosProxy`` does to the connections that go through it.
package struct ChaosOptions: Sendable {
    /// When a connection is reset.
    package enum Reset: Sendable {
        /// Never.
        case never
        /// After that many bytes towards the client, on each connection.
        case after(Int64)
        /// After a number of bytes towards the client drawn anew for each connection, evenly from the range, by a
        /// generator with that seed: the same seed gives the same numbers in the order of the connections.
        case random(ClosedRange<Int64>, seed: UInt64)
    }

    /// How long each byte is under way, in each direction.
    package var latency: Duration = .zero
    /// Bytes per second towards the client, for each connection; `nil` for no limit.
    package var rate: Int64?
    /// The longest write towards the client; 1 gives segments of one byte.
    package var writeLength: Int?
    /// When connections are reset.
    package var reset = Reset.never
    /// How many connections the reset is for; later ones are left alone.
    package var resets = Int.max

    /// A proxy that only forwards.
    package init() {}
}

/// Numbers that a seed determines.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Mixer.mix(state)
    }
}
