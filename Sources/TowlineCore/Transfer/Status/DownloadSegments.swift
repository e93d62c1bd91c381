/// The byte ranges of a download: the downloaded ranges, and the segments that connections are receiving.
public struct DownloadSegments: Hashable, Sendable {
    /// A byte range that one connection is receiving.
    public struct Segment: Hashable, Sendable {
        /// The byte offsets assigned to the connection. While the file size is unknown, the range ends at `position`.
        public let range: Range<Int64>
        /// The offset of the next byte to receive, within `range` or at its end.
        public let position: Int64
        /// The rate of the connection in bytes per second; `nil` while unknown.
        public let rate: Double?

        /// Creates a segment. `range` contains `position`, or ends there.
        package init(range: Range<Int64>, position: Int64, rate: Double?) {
            (self.range, self.position, self.rate) = (range, position, rate)
        }
    }

    /// The size of the complete file in bytes; `nil` while unknown.
    public let completeLength: Int64?
    /// The downloaded byte ranges, in ascending order and not adjacent.
    public let written: [Range<Int64>]
    /// The active segments, in the order of their requests; empty while the download does not run.
    public let segments: [Segment]

    /// Creates the byte ranges of a download, with the segments in progress.
    package init(completeLength: Int64?, written: ByteRangeSet, segments: [Segment] = []) {
        self.completeLength = completeLength
        self.written = written.ranges.map { $0.lowerBound..<$0.upperBound }
        self.segments = segments
    }
}
