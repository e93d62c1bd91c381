/// Random secrets of 256 bits, as 64 hexadecimal digits: the access token and the sessions.
enum Secret {
    /// Returns a new secret from the random number generator of the system.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Returns whether a text consists of `count` lowercase hexadecimal digits.
    static func isValid(_ text: some StringProtocol, count: Int = 64) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy { isHexadecimal($0) }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}
