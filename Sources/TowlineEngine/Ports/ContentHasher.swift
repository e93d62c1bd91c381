internal import TowlineCore

/// A hasher of a message's content as it passes, for `Content-Digest` (RFC 9530 §2).
package protocol ContentHasher: AnyObject {
    /// Adds the next bytes.
    func update(_ bytes: UnsafeRawBufferPointer)
    /// Returns whether the hash of all added bytes equals the expected value.
    func matches() -> Bool
}
