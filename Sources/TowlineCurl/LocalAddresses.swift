import CCurl
import Glibc
internal import TowlineCore

/// The addresses of this machine's network interfaces.
enum LocalAddresses {
    /// Returns the addresses as they are now: interfaces come and go, and each call costs some microseconds.
    ///
    /// `nil` if the kernel cannot list them (getifaddrs(3)): then no address is known to be elsewhere.
    static func current() -> [PublicAddress.Local]? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
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

    /// Returns whether the kernel delivers packets for an address to this machine, also where no interface has the address
    /// (`local` routes). If the kernel cannot tell, the address counts as local.
    static func isLocal(_ address: UnsafeRawBufferPointer, _ family: Int32) -> Bool {
        var copy = sockaddr_storage()
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0, address.count <= MemoryLayout<sockaddr_storage>.size else { return true }
        defer { close(descriptor) }
        return withUnsafeMutableBytes(of: &copy) { bytes in
            bytes.copyMemory(from: address)
            // The port, in both families: any.
            bytes.storeBytes(of: 0, toByteOffset: 2, as: UInt16.self)
            guard let start = bytes.baseAddress else { return true }
            // Only an address of this machine can be bound (bind(2), EADDRNOTAVAIL).
            let code = bind(descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count))
            return code == 0 || errno != EADDRNOTAVAIL
        }
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
