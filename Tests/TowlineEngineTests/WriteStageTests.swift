import Testing
import TowlineCore

@testable import TowlineEngine

/// What comes in many pieces is written in few calls, and none of it later than when nothing more is at hand.
@Suite struct WriteStageTests {
    private static let piece: Int64 = 16 << 10
    private static let size = Int64(WriteStage.size)
    private let bench: WriterBench

    init() throws {
        bench = try WriterBench(ByteRange(0, 900_000))
        bench.head(ByteRange(0, 900_000))
    }

    /// Pieces one after the other, without a rest.
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
        // Nobody hears of what is not written yet.
        #expect(
            bench.writer.progress
                == AttemptProgress(position: 2 * Self.size, received: 24 * Self.piece, isHeldBack: false))
        #expect(bench.log.marks == [Self.size, 2 * Self.size])
        #expect(bench.writer.bodyRests())
        #expect(
            writes.last == ByteRange(2 * Self.size, 24 * Self.piece)
                && bench.writer.progress.position == 24 * Self.piece)
        #expect(bench.holds(ByteRange(0, 24 * Self.piece)) && bench.log.marksFollowBytes(from: 0))
        // There is nothing left to do.
        #expect(bench.writer.bodyRests() && writes.count == 3)
    }

    /// A transport reads as much as it can and hands that over in whole pieces and a shorter one. What a kill costs is one
    /// reading and what was carried over from the one before: less than an interval.
    @Test(arguments: [175 << 10, 127 << 10, 100_000, 40_000, 33_000, 20_000])
    func littleIsCarriedOverToTheNextReading(_ reading: Int64) {
        for start in stride(from: Int64(0), to: 900_000, by: Int64.Stride(reading)) {
            let end = min(start + reading, 900_000)
            #expect(pieces(ByteRange(start, end)) == "consumed")
            #expect(end - (bench.log.marks.last ?? 0) < AttemptWriter.markInterval, "after \(end)")
        }
    }

    /// A little that comes alone waits for nothing, more than fits neither.
    @Test func notWhatComesAlone() {
        #expect(bench.body(ByteRange(0, 8191), rests: false) == "consumed")
        #expect(bench.writer.progress.position == 8191)
        #expect(bench.body(ByteRange(8191, 8191 + Self.size + 1), rests: false) == "consumed")
        #expect(bench.writer.progress.position == 8192 + Self.size)
        #expect(writes.count == 2)
    }

    /// In order, whatever the pieces: those that wait come before one that does not.
    @Test(arguments: [1000, 4095, 8192, 10_000, 16_384, 180_223, 180_224, 180_225, 200_000])
    func anyPieces(_ piece: Int64) {
        #expect(pieces(ByteRange(0, 20_000)) == "consumed")
        #expect(pieces(ByteRange(20_000, 900_000), of: piece) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.holds(ByteRange(0, 900_000)) && bench.ending == "complete")
        #expect(writes.map(\.lowerBound) == writes.map(\.lowerBound).sorted())
        #expect(bench.log.marks.last == 900_000 && bench.log.marksFollowBytes(from: 0))
    }

    /// The end comes without a rest as well.
    @Test func theEndWrites() {
        #expect(pieces(ByteRange(0, 6 * Self.piece)) == "consumed")
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "cut")))
        #expect(bench.holds(ByteRange(0, 6 * Self.piece)) && bench.log.marks == [6 * Self.piece])
        #expect(bench.writer.progress.position == 6 * Self.piece && bench.ending == "failed: bodyCut")
    }

    /// A segment that was cut ends there, though bytes wait.
    @Test func cut() {
        #expect(pieces(ByteRange(0, 3 * Self.piece)) == "consumed")
        bench.writer.shrink(to: 60_000)
        #expect(pieces(ByteRange(3 * Self.piece, 100_000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 60_000)]) && bench.log.marks == [60_000])
        #expect(bench.ending == "stopped")
    }

    /// What could not be written is not marked, not told of, and not tried again.
    @Test(arguments: [true, false]) func aFullDisk(_ rests: Bool) {
        #expect(pieces(ByteRange(0, Self.size + 9_000)) == "consumed")
        bench.sink.fail(from: Self.size + 19_000)
        if rests {
            #expect(pieces(ByteRange(Self.size + 9_000, Self.size + 29_000)) == "consumed")
            #expect(!bench.writer.bodyRests())
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
