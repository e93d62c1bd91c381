import Glibc
import Synchronization

/// The bytes of a served file: a pure function of a seed and an offset, so that any range of any file can be
/// checked without storing the file.
///
/// A block of pseudo-random bytes whose length is a prime repeats over the file, and each page starts with
/// a stamp made of the seed and the page's number. Bytes that are shifted by any amount, the block's length
/// included, therefore differ in every run of two pages; bytes of two seeds differ nearly everywhere.
package struct FaultContent: Sendable {
    /// The prime length of the repeating block.
    static let blockLength = 1_048_573
    /// The distance between stamps.
    static let pageLength = 4096
    static let stampLength = 8

    /// The seed of the content.
    package let seed: UInt64
    private let block: PatternBlock

    /// Creates the content with a seed. Blocks are kept until the process ends, one for each seed.
    package init(seed: UInt64) {
        self.seed = seed
        block = PatternBlock.of(seed)
    }

    /// Fills the buffer with the bytes from `offset`, which must not be negative. The content has no end.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        guard let start = buffer.baseAddress, offset >= 0 else { return }
        copyPattern(to: start, count: buffer.count, at: offset)
        stampPages(of: buffer, at: offset)
    }

    /// Returns the bytes of a range.
    package func bytes(in range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            fill(UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound)
            count = range.count
        }
    }

    private func copyPattern(to start: UnsafeMutableRawPointer, count: Int, at offset: Int64) {
        var done = 0
        var place = Int(offset % Int64(FaultContent.blockLength))
        while done < count {
            let length = min(count - done, FaultContent.blockLength - place)
            memcpy(start + done, block.start + place, length)
            done += length
            place = 0
        }
    }

    private func stampPages(of buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        let end = offset + Int64(buffer.count)
        var page = offset / Int64(FaultContent.pageLength)
        while page * Int64(FaultContent.pageLength) < end {
            let pageStart = page * Int64(FaultContent.pageLength)
            withUnsafeBytes(of: Mixer.mix(seed ^ UInt64(page) &* 0x9E37_79B9_7F4A_7C15).littleEndian) { stamp in
                let from = max(pageStart, offset)
                let to = min(pageStart + Int64(FaultContent.stampLength), end)
                guard from < to, let source = stamp.baseAddress, let start = buffer.baseAddress else { return }
                memcpy(start + Int(from - offset), source + Int(from - pageStart), Int(to - from))
            }
            page += 1
        }
    }
}

/// The repeating block of one seed.
///
/// `@unchecked Sendable`: the memory is written before `init` returns and only read afterwards.
private final class PatternBlock: @unchecked Sendable {
    private static let all = Mutex<[UInt64: PatternBlock]>([:])

    let start: UnsafeRawPointer

    static func of(_ seed: UInt64) -> PatternBlock {
        all.withLock { blocks in
            if let block = blocks[seed] { return block }
            let block = PatternBlock(seed: seed)
            blocks[seed] = block
            return block
        }
    }

    private init(seed: UInt64) {
        let words = FaultContent.blockLength / 8 + 1
        let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: words)
        var state = Mixer.mix(seed)
        for index in 0..<words {
            state &+= 0x9E37_79B9_7F4A_7C15
            memory[index] = Mixer.mix(state)
        }
        start = UnsafeRawPointer(memory)
    }

    deinit { start.deallocate() }
}

/// The output function of SplitMix64: a bijection that spreads each input bit over all output bits.
enum Mixer {
    static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
