import CCurl
import CTowline
import Glibc
internal import TowlineCore

/// A check whether a text is a numeric IP address, which needs no DNS lookup.
package enum NumericAddress {
    /// Returns whether a text is an IPv4 or IPv6 address without brackets and zone.
    package static func isValid(_ text: String) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 16)
        return inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, text, &bytes) == 1
    }
}

/// The IP addresses of this machine, which downloads that may use only public addresses must not connect to.
enum LocalAddresses {
    /// Returns the current addresses of the network interfaces. Read for each use, because interfaces can change at any
    /// time; a call costs some microseconds.
    ///
    /// Returns `nil` if the kernel cannot list them (getifaddrs(3)); the caller must then treat all addresses as local.
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

    /// Returns whether the kernel delivers packets for an address to this machine, even if no interface has the address
    /// (`local` routes). An address that the kernel cannot judge counts as local.
    ///
    /// - Parameter bytes: the address, 4 or 16 bytes in network order.
    static func isLocal(_ bytes: [UInt8]) -> Bool {
        switch bytes.count {
        case 4: towline_is_delivered_here(AF_INET, bytes) != 0
        // An IPv4 address in IPv6 form (RFC 4291 §2.5.5.2).
        case 16 where bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]): isLocal(Array(bytes[12...]))
        case 16: towline_is_delivered_here(AF_INET6, bytes) != 0
        default: true
        }
    }

    /// Returns the bytes of an IPv4 or IPv6 address, in network order; `nil` for other families.
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
