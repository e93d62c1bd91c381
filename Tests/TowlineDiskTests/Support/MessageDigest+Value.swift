@testable import TowlineDisk
import TowlineCore

extension MessageDigest {
    /// Returns the digest of a few bytes.
    static func value(of bytes: [UInt8], _ algorithm: Checksum.Algorithm) -> [UInt8] {
        let digest = MessageDigest(algorithm)
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.finish(algorithm)
    }
}
