/// Which bytes of a download are there, and which are on their way.
package struct SegmentMap: Hashable, Sendable {
    /// A segment on its way.
    package struct Segment: Hashable, Sendable {
        /// What the attempt is to bring; without an end while the length is unknown.
        package var range: ByteRange
        /// The next byte it writes.
        package var position: Int64
        /// Bytes per second, once known.
        package var rate: Double?

        /// Makes one.
        package init(range: ByteRange, position: Int64, rate: Double?) {
            self.range = range
            self.position = position
            self.rate = rate
        }
    }

    /// Size of the whole, once known.
    package var completeLength: Int64?
    /// What is there.
    package var written: ByteRangeSet
    /// What is on its way, in the order the attempts began.
    package var segments: [Segment]

    /// Makes one.
    package init(completeLength: Int64?, written: ByteRangeSet, segments: [Segment] = []) {
        self.completeLength = completeLength
        self.written = written
        self.segments = segments
    }
}
