/// Conversion between bytes and pairs of hexadecimal digits.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Returns two lower-case digits for each byte.
    package static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Returns the bytes of the digits, in either case; `nil` for an odd number of digits or any other character.
    package static func decoded(_ text: some StringProtocol) -> [UInt8]? {
        var decoded: [UInt8] = []
        var bytes = text.utf8.makeIterator()
        while let first = bytes.next() {
            guard let high = ASCII.hexadecimalValue(first), let low = bytes.next().flatMap(ASCII.hexadecimalValue)
            else { return nil }
            decoded.append(high << 4 | low)
        }
        return decoded
    }
}
