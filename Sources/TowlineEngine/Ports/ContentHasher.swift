internal import TowlineCore

/// Computes a checksum of the content of a response as it arrives and compares it with an expected value, such as that
/// of the field `Content-Digest` (RFC 9530 §2).
package protocol ContentHasher: AnyObject {
    /// Adds the next bytes of the content to the checksum computation.
    func update(_ bytes: UnsafeRawBufferPointer)
    /// Returns whether the checksum of all added bytes equals the expected value.
    func matches() -> Bool
}
