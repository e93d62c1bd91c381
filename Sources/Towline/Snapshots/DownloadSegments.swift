import TowlineCore

/// Which bytes of a download are there, and which are on their way.
public struct DownloadSegments: Hashable, Sendable {
    /// A segment that a connection is bringing.
    public struct Segment: Hashable, Sendable {
        /// The bytes it is to bring; ends where it stands while the length is unknown.
        public let range: Range<Int64>
        /// The next byte it writes, within the range or at its end.
        public let position: Int64
        /// Bytes per second, once known.
        public let rate: Double?
    }

    /// Size of the whole in bytes, once known.
    public let completeLength: Int64?
    /// The bytes that are there: ascending, apart from each other.
    public let written: [Range<Int64>]
    /// What is on its way, in the order the requests began; empty while nothing runs.
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
