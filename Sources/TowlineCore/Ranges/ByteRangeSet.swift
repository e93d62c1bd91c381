/// A set of byte offsets, stored as sorted, disjoint, non-adjacent, non-empty ranges.
///
/// Insertion and removal take O(log n + k) time for k affected ranges. The set of a download rarely has more than a few
/// dozen ranges.
public struct ByteRangeSet: Hashable, Sendable {
    /// The ranges in ascending order, with at least one missing byte between any two.
    public private(set) var ranges: [ByteRange] = []

    /// Creates an empty set.
    public init() {}

    /// Creates a set of all bytes in `ranges`. The ranges may overlap and may be in any order.
    public init(_ ranges: some Sequence<ByteRange>) {
        for range in ranges { insert(range) }
    }

    /// The number of bytes in the set.
    public var count: Int64 { ranges.reduce(0) { $0 + $1.count } }
    /// `true` if the set contains no bytes.
    public var isEmpty: Bool { ranges.isEmpty }

    /// Returns the index in `ranges` of the first range whose upper bound is at least `offset`; `ranges.count` if no
    /// range reaches the offset.
    private func firstIndex(reaching offset: Int64) -> Int {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Adds every byte of `range`. Bytes that are already in the set stay in it.
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

    /// Removes every byte of `range`. Bytes that are not in the set are ignored.
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

    /// Returns whether the set contains every byte of `range`. The result is `true` for an empty range.
    public func contains(_ range: ByteRange) -> Bool {
        guard !range.isEmpty else { return true }
        let index = firstIndex(reaching: range.lowerBound + 1)
        return index < ranges.count && ranges[index].contains(range)
    }

    /// Returns the parts of `range` that are not in the set, in ascending order; empty if the set contains the range.
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

    /// Returns the bytes of `range` that are in the set.
    public func intersection(_ range: ByteRange) -> ByteRangeSet {
        ByteRangeSet(ranges.compactMap { $0.intersection(range) })
    }

    /// Adds every byte of `other`.
    public mutating func formUnion(_ other: ByteRangeSet) {
        for range in other.ranges { insert(range) }
    }

    /// Removes every byte of `other`.
    public mutating func subtract(_ other: ByteRangeSet) {
        for range in other.ranges { remove(range) }
    }

    /// Returns the range that contains `offset`, or `nil` if the set does not contain the offset.
    public func range(holding offset: Int64) -> ByteRange? {
        let index = firstIndex(reaching: offset + 1)
        return index < ranges.count && ranges[index].contains(offset) ? ranges[index] : nil
    }
}
