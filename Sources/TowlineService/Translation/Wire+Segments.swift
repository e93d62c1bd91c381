internal import Towline
import TowlineWire

extension Wire.Segments {
    init(_ segments: DownloadSegments) {
        let attempts = segments.segments.enumerated().map { index, segment in
            Attempt(
                connection: index + 1, from: segment.range.lowerBound, to: segment.range.upperBound,
                position: segment.position, rate: segment.rate.flatMap { Int64(exactly: $0.rounded()) })
        }
        self.init(
            completeLength: segments.completeLength, written: Self.told(segments.written, most: Self.maximum),
            attempts: attempts)
    }

    /// Returns the ranges, at most `most` of them. Merges the ranges with the smallest gaps if there are more.
    static func told(_ ranges: [Range<Int64>], most: Int) -> [[Int64]] {
        guard ranges.count > most else { return ranges.map { [$0.lowerBound, $0.upperBound] } }
        let gaps = zip(ranges, ranges.dropFirst()).map { $1.lowerBound - $0.upperBound }
        let kept = Set(gaps.indices.sorted { gaps[$0] > gaps[$1] }.prefix(most - 1))
        var told = [[ranges[0].lowerBound, ranges[0].upperBound]]
        for (index, range) in ranges.dropFirst().enumerated() {
            if kept.contains(index) {
                told.append([range.lowerBound, range.upperBound])
            } else {
                told[told.count - 1][1] = range.upperBound
            }
        }
        return told
    }
}
