/// A checksum: an algorithm and the expected value of a file.
public struct Checksum: Hashable, Sendable {
    /// The supported checksum algorithms.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        /// MD5, RFC 1321. Detects accidental damage, not deliberate changes.
        case md5
        /// SHA-1, FIPS 180-4. Detects accidental damage, not deliberate changes.
        case sha1
        /// SHA-256, FIPS 180-4.
        case sha256
        /// SHA-512, FIPS 180-4.
        case sha512
        /// CRC-32C (Castagnoli), RFC 3720 appendix B.4: four bytes, most significant byte first.
        case crc32c

        /// The length in bytes of a checksum of this algorithm.
        public var byteCount: Int {
            switch self {
            case .md5: 16
            case .sha1: 20
            case .sha256: 32
            case .sha512: 64
            case .crc32c: 4
            }
        }

        /// The rank of the algorithm by resistance to forgery, used to prefer one checksum: a higher number is
        /// stronger.
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

    /// `true` if other bytes with this checksum are easy to construct (CRC-32C), so that a match does not prove that
    /// the bytes are genuine.
    package var isForgeable: Bool { algorithm == .crc32c }

    /// The algorithm that computes the checksum.
    public let algorithm: Algorithm
    /// The expected value: `algorithm.byteCount` bytes.
    public let value: [UInt8]

    /// Creates a checksum. Returns `nil` if the length of `value` is not `algorithm.byteCount`.
    public init?(algorithm: Algorithm, value: [UInt8]) {
        guard value.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.value = value
    }
}
