/// Computes CRC-32C checksums (Castagnoli), with the reflected polynomial 0x82F63B78 (RFC 3720 appendix B.4).
///
/// This code is for short texts, such as names and URLs. `TowlineDisk` computes the checksums of whole files.
package enum CRC32C {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { crc, _ in crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
    }

    /// Returns the CRC-32C checksum of `bytes`.
    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(~0) { crc, byte in (crc >> 8) ^ table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] }
    }
}
