/// Whether requests to a host share a connection, each as a stream of its own (RFC 9113 §5).
///
/// Segments of a long file gain nothing by that: one connection is one window, and each loss holds up all. What a small
/// file costs is mostly its connection, a handshake and the wait for it. So a host whose last answers over HTTP/2 were
/// small is asked for the next over one that is shared. Whatever turns out to be long after all ends its stream and is
/// asked for once more over a connection of its own, no more than `smallLimit` having been asked for; each such mistake makes the next guess take twice as much to go by.
package struct SharingPolicy: Hashable, Sendable {
    /// How an answer's body looked.
    package enum Answer: Hashable, Sendable {
        /// All of it came, and it was small.
        case small
        /// It is long, or nobody knows.
        case long
        /// Nothing came, or not all.
        case broken
    }

    /// So long is a small file at most.
    package static let smallLimit: Int64 = 64 << 10

    private static let firstRun = 2
    private static let longestRun = 64

    /// Small answers in a row.
    private var small = 0
    /// So many are needed.
    private var needed = Self.firstRun

    /// Nothing is known.
    package init() {}

    /// Whether it says more than that nothing is known.
    package var isWorthKeeping: Bool { shares || needed > Self.firstRun }

    /// Whether the next requests share.
    package var shares: Bool { small >= needed }

    /// An answer came over HTTP/2, or was given up there.
    package mutating func answered(_ answer: Answer) {
        switch answer {
        case .small:
            small += 1
            guard small >= max(needed, Self.longestRun) else { break }
            // So many in a row, and an old mistake counts half.
            needed = max(needed / 2, Self.firstRun)
            small = needed
        case .long, .broken:
            if shares { needed = min(needed * 2, Self.longestRun) }
            small = 0
        }
    }
}
