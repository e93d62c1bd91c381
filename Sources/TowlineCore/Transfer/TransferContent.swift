/// The readable bytes of a running transfer, for readers of the incomplete file.
package struct TransferContent: Hashable, Sendable {
    /// The generation, a number that increases when bytes may have changed. All bytes with one number belong to one
    /// version of the file; the next number may mean different bytes at the same offsets.
    package var generation: Int
    /// The complete length in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The bytes that are written.
    package var written: ByteRangeSet
    /// The strong validator that the server sent for the file; `nil` if it sent no strong validator.
    package var strongValidator: String?
    /// `true` if a response arrived or bytes of an earlier transfer exist: the length is unlikely to change.
    package var isBegun: Bool
}
