/// The content of a running transfer, for readers.
package struct TransferContent: Hashable, Sendable {
    /// The generation of the bytes. All bytes of one generation belong to one file; the next generation may have
    /// different bytes at the same offsets.
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
