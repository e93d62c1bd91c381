/// What a transfer has to read while it runs.
package struct TransferContent: Hashable, Sendable {
    /// Bytes of one generation belong to one file; the next one's may be others at the same offsets.
    package var generation: Int
    /// Size of the whole, once known.
    package var completeLength: Int64?
    /// What is there.
    package var written: ByteRangeSet
    /// What the server vouches for every byte by, if it does.
    package var strongValidator: String?
    /// An answer came, or bytes are there from before: what is known of the length will hardly change.
    package var isBegun: Bool
}
