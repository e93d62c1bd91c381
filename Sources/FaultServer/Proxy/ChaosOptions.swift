/// The faults that a ``ChaosProxy`` adds to its connections.
package struct ChaosOptions: Sendable {
    /// The rule for resets of connections.
    package enum Reset: Sendable {
        /// No resets.
        case never
        /// After this number of bytes towards the client, on each connection.
        case after(Int64)
        /// After a random number of bytes towards the client, drawn from the range for each connection. The same seed
        /// gives the same numbers in the order of the connections.
        case random(ClosedRange<Int64>, seed: UInt64)
    }

    /// The delay of each byte, in each direction.
    package var latency: Duration = .zero
    /// The maximum bytes per second towards the client, for each connection; `nil` for no limit.
    package var rate: Int64?
    /// The maximum bytes of a write towards the client; 1 gives TCP segments of one byte, `nil` means no limit.
    package var writeLength: Int?
    /// The rule for resets of connections.
    package var reset = Reset.never
    /// The number of connections, counted from the first, that the rule applies to.
    package var resets = Int.max

    /// Creates options for a proxy that only forwards.
    package init() {}
}

/// A generator of random numbers from a seed.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// Creates a generator; equal seeds give equal numbers.
    package init(seed: UInt64) { state = seed }

    /// Returns the next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Mixer.mix(state)
    }
}
