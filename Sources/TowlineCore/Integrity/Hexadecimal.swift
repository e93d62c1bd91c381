/// Bytes as pairs of hexadecimal digits.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Lower-case digits, two a byte.
    package static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The bytes that the digits spell, in either case; `nil` for an odd number of them and for anything else.
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
