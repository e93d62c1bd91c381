/// The bytes of a download that are written, and the segments that are in progress, for display.
package struct SegmentMap: Hashable, Sendable {
    /// A segment in progress: the byte range assigned to one attempt (request).
    package struct Segment: Hashable, Sendable {
        /// The bytes assigned to the attempt; the end is `Int64.max` while the length is unknown.
        package var range: ByteRange
        /// The offset of the next byte that the attempt writes.
        package var position: Int64
        /// The rate in bytes per second; `nil` while unknown.
        package var rate: Double?
    }

    /// The complete length in bytes; `nil` while unknown.
    package var completeLength: Int64?
    /// The bytes that are written.
    package var written: ByteRangeSet
    /// The segments in progress, in the order in which their attempts began.
    package var segments: [Segment]

    /// Creates a map.
    package init(completeLength: Int64?, written: ByteRangeSet, segments: [Segment] = []) {
        self.completeLength = completeLength
        self.written = written
        self.segments = segments
    }
}
