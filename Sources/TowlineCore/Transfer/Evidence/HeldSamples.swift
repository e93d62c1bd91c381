/// The samples that prove a part file whose inode number changed, as it does on some file systems at each mount.
///
/// A sample is proven like the bytes before any resume point: its last byte counts as missing, and the request for that
/// byte repeats the bytes before it, which are compared with the held ones. So the file cannot be complete before every
/// sample is compared.
enum HeldSamples {
    /// The number of samples of a long file; a shorter file has samples of all its bytes.
    static let count: Int64 = 16
    /// The number of bytes of one sample.
    static let length = SegmentPlanner.weakOverlap

    /// Returns the bytes of a doubtful part file that count as written: not the last one of each contiguous range, and
    /// not the last one of each sample.
    static func believed(_ held: HeldDownload) -> ByteRangeSet {
        var believed = held.written
        believed.subtract(seams(of: held.written))
        if held.isRenumbered { believed.subtract(ends(in: held.written)) }
        return believed
    }

    /// Returns the last byte of each contiguous range: the seams, at which new bytes are joined.
    static func seams(of held: ByteRangeSet) -> ByteRangeSet {
        ByteRangeSet(held.ranges.map { ByteRange($0.upperBound - 1, $0.upperBound) })
    }

    /// Returns the last byte of each sample. The samples are spread evenly over the held bytes; the last one ends with
    /// them.
    static func ends(in held: ByteRangeSet) -> ByteRangeSet {
        let total = held.count
        let number = min(count, (total + length - 1) / length)
        guard number > 0 else { return ByteRangeSet() }
        var ends = ByteRangeSet()
        for index in 1...number {
            // The number of held bytes up to the end of the sample.
            let end = total / number * index + min(index, total % number)
            if let offset = offset(ofByte: end - 1, in: held) { ends.insert(ByteRange(offset, offset + 1)) }
        }
        return ends
    }

    /// Returns the file offset of a held byte, counted from the first held one.
    private static func offset(ofByte index: Int64, in held: ByteRangeSet) -> Int64? {
        var before: Int64 = 0
        for range in held.ranges {
            if index < before + range.count { return range.lowerBound + (index - before) }
            before += range.count
        }
        return nil
    }
}

extension HeldPart {
    /// Adopts the doubts about the bytes that an earlier transfer left on disk.
    mutating func adopt(_ held: HeldDownload) {
        isDoubtful = held.isDoubtful
        guard held.isRenumbered else { return unproven = ByteRangeSet() }
        unproven = held.written
        unproven.subtract(HeldSamples.believed(held))
    }

    /// Returns whether the part file is proven now: all its samples and seams, which are `unproven`, were compared.
    /// From then on it counts as the file that the journal describes.
    mutating func proves(_ written: ByteRangeSet) -> Bool {
        guard !unproven.isEmpty, unproven.ranges.allSatisfy(written.contains) else { return false }
        unproven = ByteRangeSet()
        isDoubtful = false
        return true
    }
}
