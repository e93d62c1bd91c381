/// An algorithm and the value it must give.
public struct Checksum: Hashable, Sendable {
    /// The algorithms that can be verified.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        /// MD5, RFC 1321. Guards against accidents only.
        case md5
        /// SHA-1, FIPS 180-4. Guards against accidents only.
        case sha1
        /// SHA-256, FIPS 180-4.
        case sha256
        /// SHA-512, FIPS 180-4.
        case sha512
        /// CRC-32C (Castagnoli), RFC 3720 appendix B.4; four bytes, most significant first.
        case crc32c

        /// The length of a value in bytes.
        public var byteCount: Int {
            switch self {
            case .md5: 16
            case .sha1: 20
            case .sha256: 32
            case .sha512: 64
            case .crc32c: 4
            }
        }

        /// How much a match proves: higher is stronger.
        public var strength: Int {
            switch self {
            case .crc32c: 0
            case .md5: 1
            case .sha1: 2
            case .sha256: 3
            case .sha512: 4
            }
        }
    }

    /// The algorithm.
    public let algorithm: Algorithm
    /// The expected value, `algorithm.byteCount` bytes.
    public let value: [UInt8]

    /// `nil` if the value's length is not the algorithm's.
    public init?(algorithm: Algorithm, value: [UInt8]) {
        guard value.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.value = value
    }
}
