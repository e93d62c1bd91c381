/// The syntax of a host: a DNS name, an IPv4 address or an IPv6 address in brackets.
///
/// Narrower than RFC 3986 §3.2.2: no percent-encoding and no sub-delimiters. No reachable host needs them, and some
/// programs interpret each of them differently.
enum HostSyntax {
    /// Returns the host in ASCII and lower case, with an unchanged IPv6 zone (interface name); `nil` if the bytes are
    /// not a valid host.
    static func normalized(_ bytes: ArraySlice<UInt8>) -> String? {
        // Longer names do not exist; they overflowed a buffer in a proxy client (CVE-2023-38545).
        guard bytes.count <= longest else { return nil }
        if bytes.first == 0x5B {
            guard bytes.last == 0x5D else { return nil }
            let content = bytes.dropFirst().dropLast()
            let address = content.prefix { $0 != 0x25 }
            guard isIPv6Address(address) else { return nil }
            let lower = ASCII.lowercased(String(decoding: address, as: UTF8.self))
            guard address.endIndex < content.endIndex else { return "[\(lower)]" }
            // The name of an interface is case-sensitive.
            return zone(content[address.endIndex...]).map { "[\(lower)%25\($0)]" }
        }
        if let name = plainName(bytes) { return name }
        guard let text = String(validating: bytes, as: UTF8.self), let name = InternationalName.ascii(text),
            name.utf8.count <= longest
        else { return nil }
        return name
    }

    /// Returns the name of the zone (network interface) of an IPv6 address, `nil` if it is invalid: `%25eth0` (RFC
    /// 6874), or `%eth0` as ping(8) and other programs write it.
    private static func zone(_ bytes: ArraySlice<UInt8>) -> String? {
        let escaped = bytes.starts(with: [0x25, 0x32, 0x35]) && bytes.count > 3
        let zone = bytes.dropFirst(escaped ? 3 : 1)
        // The kernel's names have at most 15 bytes (IFNAMSIZ).
        guard (1...15).contains(zone.count),
            zone.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || [0x2D, 0x2E, 0x5F].contains($0) })
        else { return nil }
        return String(decoding: zone, as: UTF8.self)
    }

    /// Returns the host without its IPv6 zone (interface name). A server knows its address only without a zone.
    static func withoutZone(_ host: String) -> String {
        host.firstRange(of: "%25").map { host[..<$0.lowerBound] + "]" } ?? host
    }

    /// The maximum length of a host in bytes: 253 characters and the dot of the root (RFC 1035 §2.3.4).
    static let longest = 254

    /// Returns a host name of ASCII letters, digits, `-`, `.` and `_` in lower case; `nil` if the bytes may be another
    /// kind of host, which the slower full parser checks.
    private static func plainName(_ bytes: ArraySlice<UInt8>) -> String? {
        // A dot must not be first or follow another dot.
        var previous: UInt8 = 0x2E
        for byte in bytes {
            switch byte {
            case 0x2E where previous != 0x2E: break
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: break
            default: return nil
            }
            previous = byte
        }
        return bytes.isEmpty ? nil : ASCII.lowercased(String(decoding: bytes, as: UTF8.self))
    }

    /// Returns whether a text is a host name or an address, with or without a port (RFC 9110 §7.2).
    static func isHostAndPort(_ bytes: ArraySlice<UInt8>) -> Bool {
        let colon = bytes.first == 0x5B ? bytes.firstIndex(of: 0x5D).map { $0 + 1 } : bytes.firstIndex(of: 0x3A)
        let port = bytes[(colon ?? bytes.endIndex)...]
        guard port.isEmpty || port.first == 0x3A && port.dropFirst().allSatisfy(ASCII.isDigit) else { return false }
        return normalized(bytes[..<port.startIndex]) != nil
    }

    /// Returns the error message for bytes that are not a host.
    static func problem(_ bytes: ArraySlice<UInt8>) -> String {
        if bytes.isEmpty { return "the URL must have a host name after http:// or https://" }
        if bytes.count > longest { return "the host name in the URL must have at most 253 characters" }
        guard bytes.first == 0x5B else {
            return "the host name in the URL must contain only letters, digits, '-', '_' and single dots"
        }
        return bytes.last == 0x5D
            ? "the text between [ and ] in the URL must be a valid IPv6 address"
            : "the IPv6 address in the URL must end with ]"
    }

    /// Returns whether the bytes are an `IPv6address` (RFC 3986 §3.2.2), which may end in a dotted IPv4 address.
    private static func isIPv6Address(_ bytes: ArraySlice<UInt8>) -> Bool {
        var groups = 0
        var compressed = false
        var rest = bytes
        if rest.starts(with: [0x3A, 0x3A]) {
            compressed = true
            rest = rest.dropFirst(2)
            if rest.isEmpty { return true }
        }
        while true {
            let group = rest.prefix { $0 != 0x3A }
            if group.contains(0x2E) {
                guard group.endIndex == rest.endIndex, isIPv4Address(group) else { return false }
                groups += 2
                break
            }
            guard (1...4).contains(group.count), group.allSatisfy({ ASCII.hexadecimalValue($0) != nil }) else {
                return false
            }
            groups += 1
            rest = rest[group.endIndex...]
            if rest.isEmpty { break }
            rest = rest.dropFirst()
            if rest.first == 0x3A {
                guard !compressed else { return false }
                compressed = true
                rest = rest.dropFirst()
                if rest.isEmpty { break }
            }
        }
        return compressed ? groups <= 7 : groups == 8
    }

    private static func isIPv4Address(_ bytes: ArraySlice<UInt8>) -> Bool {
        let parts = bytes.split(separator: 0x2E, omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                guard part.count <= 3, let value = ASCII.number(part) else { return false }
                return value <= 255 && (part.count == 1 || part.first != 0x30)
            }
    }
}
