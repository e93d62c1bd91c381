import TowlineCore

/// The byte ranges of a download: the downloaded ranges, and the segments that connections are receiving.
public struct DownloadSegments: Hashable, Sendable {
    /// A byte range that one connection is receiving.
    public struct Segment: Hashable, Sendable {
        /// The assigned bytes. While the length is unknown, the range ends at the current position.
        public let range: Range<Int64>
        /// The offset of the next byte, within the range or at its end.
        public let position: Int64
        /// The rate in bytes per second, once known.
        public let rate: Double?
    }

    /// The size of the file in bytes, once known.
    public let completeLength: Int64?
    /// The downloaded byte ranges, in ascending order and not adjacent.
    public let written: [Range<Int64>]
    /// The active segments, in the order of their requests; empty while the download does not run.
    public let segments: [Segment]
}

extension DownloadSegments {
    init(_ map: SegmentMap) {
        completeLength = map.completeLength
        written = map.written.ranges.map { $0.lowerBound..<$0.upperBound }
        segments = map.segments.map { segment in
            let open = segment.range.upperBound == .max
            let end = open ? max(segment.position, map.completeLength ?? 0) : segment.range.upperBound
            let range = min(segment.range.lowerBound, end)..<end
            return Segment(
                range: range, position: min(max(segment.position, range.lowerBound), end), rate: segment.rate)
        }
    }
}
