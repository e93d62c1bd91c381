/// A set of byte offsets kept as sorted, disjoint, non-touching, non-empty ranges.
///
/// Insertion and removal cost O(log n + k) for k ranges touched; a download rarely has more than a few dozen.
public struct ByteRangeSet: Hashable, Sendable {
    /// The ranges: ascending, with at least one missing byte between any two.
    public private(set) var ranges: [ByteRange] = []

    /// The empty set.
    public init() {}

    /// The set of all bytes that lie in any of `ranges`, which may overlap and come in any order.
    public init(_ ranges: some Sequence<ByteRange>) {
        for range in ranges { insert(range) }
    }

    /// The number of bytes inside.
    public var count: Int64 { ranges.reduce(0) { $0 + $1.count } }
    /// Whether no byte is inside.
    public var isEmpty: Bool { ranges.isEmpty }

    /// Index of the first range whose upper bound is at least `offset`.
    private func firstIndex(reaching offset: Int64) -> Int {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Adds every byte of `range`; bytes already inside stay.
    public mutating func insert(_ range: ByteRange) {
        guard !range.isEmpty else { return }
        let first = firstIndex(reaching: range.lowerBound)
        var last = first
        var lower = range.lowerBound
        var upper = range.upperBound
        while last < ranges.count, ranges[last].lowerBound <= range.upperBound {
            lower = min(lower, ranges[last].lowerBound)
            upper = max(upper, ranges[last].upperBound)
            last += 1
        }
        ranges.replaceSubrange(first..<last, with: CollectionOfOne(ByteRange(lower, upper)))
    }

    /// Takes every byte of `range` out; bytes that were not inside are no error.
    public mutating func remove(_ range: ByteRange) {
        guard !range.isEmpty else { return }
        let first = firstIndex(reaching: range.lowerBound + 1)
        var last = first
        var rest: [ByteRange] = []
        while last < ranges.count, ranges[last].lowerBound < range.upperBound {
            let present = ranges[last]
            if present.lowerBound < range.lowerBound { rest.append(ByteRange(present.lowerBound, range.lowerBound)) }
            if present.upperBound > range.upperBound { rest.append(ByteRange(range.upperBound, present.upperBound)) }
            last += 1
        }
        ranges.replaceSubrange(first..<last, with: rest)
    }

    /// Whether every byte of `range` is inside; true for an empty range.
    public func contains(_ range: ByteRange) -> Bool {
        guard !range.isEmpty else { return true }
        let index = firstIndex(reaching: range.lowerBound + 1)
        return index < ranges.count && ranges[index].contains(range)
    }

    /// The bytes of `range` that are not inside, ascending.
    public func gaps(in range: ByteRange) -> [ByteRange] {
        var gaps: [ByteRange] = []
        var cursor = range.lowerBound
        var index = firstIndex(reaching: range.lowerBound + 1)
        while index < ranges.count, ranges[index].lowerBound < range.upperBound {
            if ranges[index].lowerBound > cursor { gaps.append(ByteRange(cursor, ranges[index].lowerBound)) }
            cursor = max(cursor, ranges[index].upperBound)
            index += 1
        }
        if cursor < range.upperBound { gaps.append(ByteRange(cursor, range.upperBound)) }
        return gaps
    }

    /// The bytes of `range` that are inside.
    public func intersection(_ range: ByteRange) -> ByteRangeSet {
        ByteRangeSet(ranges.compactMap { $0.intersection(range) })
    }

    /// Adds every byte of `other`.
    public mutating func formUnion(_ other: ByteRangeSet) {
        for range in other.ranges { insert(range) }
    }

    /// Takes every byte of `other` out.
    public mutating func subtract(_ other: ByteRangeSet) {
        for range in other.ranges { remove(range) }
    }

    /// The range that holds `offset`, `nil` if it is not inside.
    public func range(holding offset: Int64) -> ByteRange? {
        let index = firstIndex(reaching: offset + 1)
        return index < ranges.count && ranges[index].contains(offset) ? ranges[index] : nil
    }
}
