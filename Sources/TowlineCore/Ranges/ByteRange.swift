/// A half-open range of byte offsets, `lowerBound ..< upperBound`, in `Int64`.
///
/// Half open everywhere except on the wire, where RFC 9110 §14.1.2 counts inclusively: `bytes=0-99` is
/// `ByteRange(0, 100)`. Never negative and never reversed.
public struct ByteRange: Hashable, Sendable {
    /// The first offset inside.
    public let lowerBound: Int64
    /// The first offset after the range.
    public let upperBound: Int64

    /// - Precondition: `0 <= lowerBound <= upperBound`.
    public init(_ lowerBound: Int64, _ upperBound: Int64) {
        precondition(lowerBound >= 0 && lowerBound <= upperBound, "a byte range is never negative or reversed")
        self.lowerBound = lowerBound
        self.upperBound = upperBound
    }

    /// The number of bytes inside.
    public var count: Int64 { upperBound - lowerBound }
    /// Whether no byte is inside.
    public var isEmpty: Bool { lowerBound == upperBound }

    /// Whether every byte of `other` is inside; an empty range is inside every range.
    public func contains(_ other: ByteRange) -> Bool {
        other.isEmpty || (lowerBound <= other.lowerBound && other.upperBound <= upperBound)
    }

    /// Whether the offset is inside.
    public func contains(_ offset: Int64) -> Bool { lowerBound <= offset && offset < upperBound }

    /// Whether at least one byte is in both.
    public func overlaps(_ other: ByteRange) -> Bool {
        max(lowerBound, other.lowerBound) < min(upperBound, other.upperBound)
    }

    /// The bytes in both, `nil` if there are none.
    public func intersection(_ other: ByteRange) -> ByteRange? {
        let lower = max(lowerBound, other.lowerBound)
        let upper = min(upperBound, other.upperBound)
        return lower < upper ? ByteRange(lower, upper) : nil
    }
}

extension ByteRange: CustomStringConvertible {
    /// `[lower, upper)`, as the documents write it.
    public var description: String { "[\(lowerBound), \(upperBound))" }
}
