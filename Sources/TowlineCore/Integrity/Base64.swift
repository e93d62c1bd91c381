/// A strict decoder for base 64 (RFC 4648 §4): padding is required, other characters are refused, and padding bits are
/// zero.
package enum Base64 {
    /// Returns the bytes that `text` encodes; `nil` if the text is not in canonical form.
    package static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        let padding = text.suffix(2).reduce(0) { $0 + ($1 == 0x3D ? 1 : 0) }
        guard text.count % 4 == 0 else { return nil }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count / 4 * 3)
        var bits: UInt32 = 0
        var bitCount: UInt32 = 0
        for byte in text.dropLast(padding) {
            guard let value = value(of: byte) else { return nil }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                decoded.append(UInt8(truncatingIfNeeded: bits >> bitCount))
            }
        }
        return bits & ((1 << bitCount) - 1) == 0 ? decoded : nil
    }

    private static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case 0x41...0x5A: byte - 0x41
        case 0x61...0x7A: byte - 0x61 + 26
        case 0x30...0x39: byte - 0x30 + 52
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
