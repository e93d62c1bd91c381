/// A half-open range of byte offsets: `lowerBound ..< upperBound`.
///
/// HTTP counts inclusively (RFC 9110 §14.1.2): `bytes=0-99` is `ByteRange(0, 100)`. A range is never negative and its
/// upper bound is never below its lower bound.
public struct ByteRange: Hashable, Sendable {
    /// The first offset in the range.
    public let lowerBound: Int64
    /// The first offset after the range.
    public let upperBound: Int64

    /// Creates a range.
    ///
    /// - Precondition: `0 <= lowerBound <= upperBound`.
    public init(_ lowerBound: Int64, _ upperBound: Int64) {
        precondition(lowerBound >= 0 && lowerBound <= upperBound, "invalid byte range \(lowerBound)..<\(upperBound)")
        self.lowerBound = lowerBound
        self.upperBound = upperBound
    }

    /// The number of bytes in the range.
    public var count: Int64 { upperBound - lowerBound }
    /// `true` if the range contains no bytes.
    public var isEmpty: Bool { lowerBound == upperBound }

    /// Returns whether the range contains every byte of `other`. An empty range is contained in every range.
    public func contains(_ other: ByteRange) -> Bool {
        other.isEmpty || (lowerBound <= other.lowerBound && other.upperBound <= upperBound)
    }

    /// Returns whether the range contains the offset.
    public func contains(_ offset: Int64) -> Bool { lowerBound <= offset && offset < upperBound }

    /// Returns whether the two ranges have at least one byte in common.
    public func overlaps(_ other: ByteRange) -> Bool {
        max(lowerBound, other.lowerBound) < min(upperBound, other.upperBound)
    }

    /// Returns the bytes that both ranges contain, or `nil` if they have no byte in common.
    public func intersection(_ other: ByteRange) -> ByteRange? {
        let lower = max(lowerBound, other.lowerBound)
        let upper = min(upperBound, other.upperBound)
        return lower < upper ? ByteRange(lower, upper) : nil
    }
}

extension ByteRange: CustomStringConvertible {
    /// The range in the notation `[lower, upper)`.
    public var description: String { "[\(lowerBound), \(upperBound))" }
}
