internal import TowlineCore

/// Hashes the content of a response as it arrives and compares the hash with an expected value, such as that of
/// `Content-Digest` (RFC 9530 §2).
package protocol ContentHasher: AnyObject {
    /// Adds the next bytes of the content to the hash.
    func update(_ bytes: UnsafeRawBufferPointer)
    /// Returns whether the hash of all added bytes equals the expected value.
    func matches() -> Bool
}
