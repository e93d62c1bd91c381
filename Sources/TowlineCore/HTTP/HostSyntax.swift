/// Which texts name a host: a DNS name, an IPv4 address or an IPv6 address in brackets.
///
/// Narrower than RFC 3986 §3.2.2: no percent-encoding and no sub-delimiters. No host that can be reached needs them,
/// and each of them has been read as something else by some program.
enum HostSyntax {
    /// The host in lower case; `nil` if it is not one.
    static func normalized(_ bytes: ArraySlice<UInt8>) -> String? {
        // Longer names do not exist, and have overflowed a buffer in a proxy client (CVE-2023-38545).
        guard bytes.count <= longest else { return nil }
        if bytes.first == 0x5B {
            guard bytes.last == 0x5D, isIPv6Address(bytes.dropFirst().dropLast()) else { return nil }
            return ASCII.lowercased(String(decoding: bytes, as: UTF8.self))
        }
        if let name = plainName(bytes) { return name }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let host = text.lowercased()
        let labels = host.utf8.split(separator: 0x2E, omittingEmptySubsequences: false)
        // One dot at the end is the root's; an empty label elsewhere names nothing.
        let named = labels.last?.isEmpty == true ? labels.dropLast() : labels[...]
        guard !named.isEmpty, !named.contains(where: \.isEmpty), host.unicodeScalars.allSatisfy(mayStandInName)
        else { return nil }
        return host
    }

    /// 253 characters and the dot of the root (RFC 1035 §2.3.4).
    static let longest = 254

    /// A name of ASCII letters, digits, `-`, `.` and `_`, as nearly all are; `nil` leaves the matter open.
    private static func plainName(_ bytes: ArraySlice<UInt8>) -> String? {
        // A dot may not come first, nor after another.
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

    /// What is wrong with what is no host.
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

    /// ASCII letters, digits, `-`, `.` and `_`; beyond ASCII the letters, marks and digits that IDNA's mapping leaves
    /// alone (RFC 5892 §2: PVALID is what NFKC and case folding do not change), so that no character can turn into
    /// `/`, `@`, `:` or `.` after this check, as `／` and `℀` would.
    private static func mayStandInName(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            let byte = UInt8(truncatingIfNeeded: scalar.value)
            return ASCII.isDigit(byte) || ASCII.isLetter(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
        }
        // RFC 5892 §2.6: sharp s and final sigma are valid although folding changes them.
        if scalar == "\u{DF}" || scalar == "\u{3C2}" { return true }
        guard !scalar.properties.changesWhenNFKCCaseFolded else { return false }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .otherLetter, .modifierLetter, .nonspacingMark, .spacingMark, .decimalNumber: return true
        default: return false
        }
    }

    /// `IPv6address` of RFC 3986 §3.2.2, dotted IPv4 at the end included. Zone identifiers are refused: they mean
    /// something on this machine alone.
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
