/// A test for IP addresses of the public Internet: addresses other than the special-purpose addresses of IANA's
/// registries (RFC 6890 and its updates), multicast addresses, and unallocated addresses.
package enum PublicAddress {
    /// Returns whether an address is public. For an IPv6 address that embeds an IPv4 address, the IPv4 address decides.
    ///
    /// - Parameter bytes: 4 or 16 bytes, in network order; `false` for any other number of bytes.
    package static func isPublic(_ bytes: [UInt8]) -> Bool {
        switch bytes.count {
        case 4: return !special4.contains { matches(bytes, $0.prefix, $0.bits) }
        case 16:
            for carrier in carriers where matches(bytes, carrier, 96) { return isPublic(Array(bytes[12...])) }
            // Global unicast is 2000::/3 (RFC 4291 §2.4); other addresses are special or unallocated.
            return bytes[0] & 0xE0 == 0x20 && !special6.contains { matches(bytes, $0.prefix, $0.bits) }
        default: return false
        }
    }

    /// An address of this machine, with the length of its network prefix in bits. It shows which other addresses are in
    /// the same network.
    package struct Local: Hashable, Sendable {
        /// The bytes of the address in network order: 4 for IPv4, 16 for IPv6.
        package let bytes: [UInt8]
        /// The number of leading bits that all addresses of the directly connected network have in common with this
        /// address.
        package let prefix: Int

        /// Creates an address from its bytes and the length of its prefix.
        package init(bytes: [UInt8], prefix: Int) {
            self.bytes = bytes
            self.prefix = prefix
        }
    }

    /// Returns whether an address is public and does not belong to this machine or its directly connected IPv6
    /// networks.
    ///
    /// A service on this machine may trust every client that reaches the machine's own address, and a host in the same
    /// IPv6 network is as near as a host with a private IPv4 address. IPv4 networks with public addresses are shared by
    /// strangers, so only the machine's own address counts there.
    ///
    /// - Parameters:
    ///   - bytes: 4 or 16 bytes, in network order.
    ///   - local: the addresses of this machine.
    package static func isPublic(_ bytes: [UInt8], beside local: [Local]) -> Bool {
        guard isPublic(bytes) else { return false }
        let inner = carriers.contains { bytes.count == 16 && matches(bytes, $0, 96) } ? Array(bytes[12...]) : bytes
        return !local.contains { own in
            own.bytes == inner || inner.count == 16 && own.bytes.count == 16 && matches(inner, own.bytes, own.prefix)
        }
    }

    private static func matches(_ bytes: [UInt8], _ prefix: [UInt8], _ bits: Int) -> Bool {
        for index in 0..<((bits + 7) / 8) {
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> min(8, bits - 8 * index))
            let wanted = index < prefix.count ? prefix[index] : 0
            if bytes[index] & mask != wanted & mask { return false }
        }
        return true
    }

    private static let special4: [(prefix: [UInt8], bits: Int)] = [
        ([0], 8), ([10], 8), ([100, 64], 10), ([127], 8), ([169, 254], 16), ([172, 16], 12), ([192, 0, 0], 24),
        ([192, 0, 2], 24), ([192, 88, 99], 24), ([192, 168], 16), ([198, 18], 15), ([198, 51, 100], 24),
        ([203, 0, 113], 24), ([224], 4), ([240], 4),
    ]

    private static let special6: [(prefix: [UInt8], bits: Int)] = [
        ([0x20, 0x01], 23), ([0x20, 0x01, 0x0D, 0xB8], 32), ([0x20, 0x02], 16), ([0x3F, 0xFF], 20),
    ]

    /// The IPv6 prefixes (96 bits) whose addresses embed an IPv4 address, which then decides: `::ffff:0:0/96` (RFC 4291
    /// §2.5.5.2), `64:ff9b::/96` (RFC 6052 §2.1).
    private static let carriers: [[UInt8]] = [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0, 0x64, 0xFF, 0x9B],
    ]
}
