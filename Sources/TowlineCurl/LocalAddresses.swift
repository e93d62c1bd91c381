import Glibc
internal import TowlineCore

/// The addresses of this machine's network interfaces.
enum LocalAddresses {
    /// Returns the addresses as they are now: interfaces come and go, and each call costs some microseconds.
    ///
    /// If the kernel cannot list them (getifaddrs(3)), the result is empty.
    static func current() -> [PublicAddress.Local] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var addresses: [PublicAddress.Local] = []
        var next = list
        while let entry = next?.pointee {
            if let bytes = bytes(entry.ifa_addr) {
                let mask = bytes.count == 4 ? nil : self.bytes(entry.ifa_netmask)
                let prefix = (mask ?? []).reduce(0) { $0 + $1.nonzeroBitCount }
                addresses.append(PublicAddress.Local(bytes: bytes, prefix: mask == nil ? bytes.count * 8 : prefix))
            }
            next = entry.ifa_next
        }
        return addresses
    }

    /// The bytes of an IPv4 or IPv6 address, in network order.
    private static func bytes(_ address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET: return Array(UnsafeRawBufferPointer(start: raw + 4, count: 4))
        case AF_INET6: return Array(UnsafeRawBufferPointer(start: raw + 8, count: 16))
        default: return nil
        }
    }
}
