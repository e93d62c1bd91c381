internal import TowlineCore

/// Hashes a message's content while it passes, for `Content-Digest` (RFC 9530 §2).
package protocol ContentHasher: AnyObject {
    /// Takes the next bytes.
    func update(_ bytes: UnsafeRawBufferPointer)
    /// Whether everything that was taken hashes to the expected value.
    func matches() -> Bool
}
