import Testing
import TowlineCore

@testable import TowlineEngine

/// Bytes that arrive in many pieces are written in few calls, at the latest when no more bytes are available.
@Suite struct WriteStageTests {
    private static let piece: Int64 = 16 << 10
    private static let size = Int64(WriteStage.size)
    private let bench: WriterBench

    init() throws {
        bench = try WriterBench(ByteRange(0, 900_000))
        bench.head(ByteRange(0, 900_000))
    }

    /// Delivers pieces one after the other, without a rest.
    private func pieces(_ range: ByteRange, of piece: Int64 = piece) -> String {
        var offset = range.lowerBound
        var answer = "consumed"
        while offset < range.upperBound, answer == "consumed" {
            let end = min(offset + piece, range.upperBound)
            answer = bench.body(ByteRange(offset, end), rests: false)
            offset = end
        }
        return answer
    }

    private var writes: [ByteRange] {
        bench.log.entries.compactMap { if case .written(let range) = $0 { range } else { nil } }
    }

    @Test func manyPiecesAreOneCall() {
        #expect(pieces(ByteRange(0, 24 * Self.piece)) == "consumed")
        #expect(writes == [ByteRange(0, Self.size), ByteRange(Self.size, 2 * Self.size)])
        // Progress does not include bytes that are not written yet.
        #expect(
            bench.writer.progress
                == AttemptProgress(position: 2 * Self.size, received: 24 * Self.piece, isHeldBack: false))
        #expect(bench.log.marks == [Self.size, 2 * Self.size])
        #expect(bench.writer.flush())
        #expect(
            writes.last == ByteRange(2 * Self.size, 24 * Self.piece)
                && bench.writer.progress.position == 24 * Self.piece)
        #expect(bench.holds(ByteRange(0, 24 * Self.piece)) && bench.log.marksFollowBytes(from: 0))
        // No bytes are left to write.
        #expect(bench.writer.flush() && writes.count == 3)
    }

    /// A transport reads all available bytes and delivers whole pieces and a shorter one. A kill costs one reading and
    /// the bytes carried over from the reading before: less than an interval.
    @Test(arguments: [175 << 10, 127 << 10, 100_000, 40_000, 33_000, 20_000])
    func littleIsCarriedOverToTheNextReading(_ reading: Int64) {
        for start in stride(from: Int64(0), to: 900_000, by: Int64.Stride(reading)) {
            let end = min(start + reading, 900_000)
            #expect(pieces(ByteRange(start, end)) == "consumed")
            #expect(end - (bench.log.marks.last ?? 0) < SegmentWriter.markInterval, "after \(end)")
        }
    }

    /// A few bytes that arrive alone are written at once, and so are more bytes than fit.
    @Test func notWhatComesAlone() {
        #expect(bench.body(ByteRange(0, 8191), rests: false) == "consumed")
        #expect(bench.writer.progress.position == 8191)
        #expect(bench.body(ByteRange(8191, 8191 + Self.size + 1), rests: false) == "consumed")
        #expect(bench.writer.progress.position == 8192 + Self.size)
        #expect(writes.count == 2)
    }

    /// Bytes are written in order, whatever the pieces: waiting bytes come before later ones.
    @Test(arguments: [1000, 4095, 8192, 10_000, 16_384, 180_223, 180_224, 180_225, 200_000])
    func anyPieces(_ piece: Int64) {
        #expect(pieces(ByteRange(0, 20_000)) == "consumed")
        #expect(pieces(ByteRange(20_000, 900_000), of: piece) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.holds(ByteRange(0, 900_000)) && bench.ending == "complete")
        #expect(writes.map(\.lowerBound) == writes.map(\.lowerBound).sorted())
        #expect(bench.log.marks.last == 900_000 && bench.log.marksFollowBytes(from: 0))
    }

    /// The end of the response writes waiting bytes without a rest, too.
    @Test func theEndWrites() {
        #expect(pieces(ByteRange(0, 6 * Self.piece)) == "consumed")
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "cut")))
        #expect(bench.holds(ByteRange(0, 6 * Self.piece)) && bench.log.marks == [6 * Self.piece])
        #expect(bench.writer.progress.position == 6 * Self.piece && bench.ending == "failed: bodyCut")
    }

    /// A segment that was cut ends at its new end, although more bytes wait.
    @Test func cut() {
        #expect(pieces(ByteRange(0, 3 * Self.piece)) == "consumed")
        bench.writer.shrink(to: 60_000)
        #expect(pieces(ByteRange(3 * Self.piece, 100_000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 60_000)]) && bench.log.marks == [60_000])
        #expect(bench.ending == "stopped")
    }

    /// Bytes that could not be written are not marked, not reported, and not written again.
    @Test(arguments: [true, false]) func aFullDisk(_ rests: Bool) {
        #expect(pieces(ByteRange(0, Self.size + 9_000)) == "consumed")
        bench.sink.fail(from: Self.size + 19_000)
        if rests {
            #expect(pieces(ByteRange(Self.size + 9_000, Self.size + 29_000)) == "consumed")
            #expect(!bench.writer.flush())
        } else {
            #expect(pieces(ByteRange(Self.size + 9_000, 2 * Self.size + 40_000)) == "stop")
        }
        #expect(bench.writer.progress.position == Self.size)
        bench.sink.fail(from: .max)
        bench.writer.ended(.stopped)
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, Self.size)]) && bench.log.marks == [Self.size])
        #expect(bench.ending == "sink: diskFull")
    }
}
