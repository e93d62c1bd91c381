import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("The path of a byte")
struct AttemptWriterTests {
    private static let mark = SegmentWriter.markInterval

    @Test("a matching range is written at its offset, and reported once")
    func writes() throws {
        let bench = try WriterBench(ByteRange(1000, 3000))
        #expect(bench.writer.progress.position == nil)
        #expect(bench.head(ByteRange(1000, 3000)) == .proceed)
        #expect(bench.writer.progress.position == 1000)
        #expect(bench.body(ByteRange(1000, 1001)) == "consumed")
        #expect(bench.body(ByteRange(1001, 3000)) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.holds(ByteRange(0, 3000)))
        #expect(bench.writer.progress == AttemptProgress(position: 3000, received: 2000, isHeldBack: false))
        #expect(bench.reports.count == 2)
        guard case .answered(AttemptID(7), .partial(ByteRange(1000, 3000), _)) = bench.reports[0] else {
            Issue.record("the verdict was not reported first: \(bench.reports)")
            return
        }
        #expect(bench.ending == "complete")
    }

    // MARK: The segment's end

    @Test(
        "no byte is written beyond the segment's end, however the bytes are cut", arguments: [1, 100, 999, 1000, 5000])
    func segmentEnd(_ piece: Int64) throws {
        // The lease ends within the requested range: part of it was reassigned before the head arrived.
        let bench = try WriterBench(ByteRange(1000, 9000))
        bench.writer.shrink(to: 2000)
        bench.head(ByteRange(1000, 9000))
        var offset: Int64 = 1000
        var answer = "consumed"
        while answer == "consumed", offset < 9000 {
            answer = bench.body(ByteRange(offset, min(offset + piece, 9000)))
            offset += piece
        }
        #expect(answer == "stop")
        #expect(offset < 2000 + 2 * piece)
        bench.writer.ended(.stopped)
        #expect(bench.log.written == ByteRangeSet([ByteRange(1000, 2000)]))
        #expect(bench.sink.bytes.count == 2000)
        #expect(bench.log.marks.last == 2000)
        #expect(bench.ending == "stopped")
    }

    @Test("a response that ends with the segment leaves the connection open")
    func sameEnd() throws {
        let bench = try WriterBench(ByteRange(0, 2000))
        bench.head(ByteRange(0, 2000))
        #expect(bench.body(ByteRange(0, 2000)) == "consumed")
        // A body that continues nevertheless is cut.
        #expect(bench.body(ByteRange(2000, 2001)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.sink.bytes.count == 2000)
    }

    @Test("a response that ends earlier than requested is written to its end and no further")
    func earlierEnd() throws {
        let bench = try WriterBench(ByteRange(0, 2000))
        bench.head(ByteRange(0, 500))
        #expect(bench.body(ByteRange(0, 700)) == "stop")
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 500)]))
    }

    @Test("a segment that shrinks while it runs stops at the new end; bytes beyond the end are kept")
    func shrinks() throws {
        let bench = try WriterBench(ByteRange(0, 10_000))
        bench.head(ByteRange(0, 10_000))
        bench.body(ByteRange(0, 4000))
        bench.writer.shrink(to: 3000)
        #expect(bench.body(ByteRange(4000, 5000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.writer.progress.position == 4000)
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 4000)]))
        #expect(bench.log.marks.last == 4000)
    }

    @Test("a segment never grows again")
    func doesNotGrow() throws {
        let bench = try WriterBench(ByteRange(0, 10_000))
        bench.writer.shrink(to: 1000)
        bench.writer.shrink(to: 5000)
        bench.head(ByteRange(0, 10_000))
        bench.writer.shrink(to: 9000)
        #expect(bench.body(ByteRange(0, 10_000)) == "stop")
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 1000)]))
    }

    // MARK: The overlap

    @Test("the overlap is compared and not written, however it is cut", arguments: [1, 7, 16 << 10, 40_000, 60_000])
    func overlap(_ piece: Int64) throws {
        let (seam, end): (Int64, Int64) = (50_000, 60_000)
        let bench = try WriterBench(ByteRange(seam, end), overlap: 40_000)
        bench.head(ByteRange(10_000, end))
        for offset in stride(from: 10_000, to: end, by: Int(piece)) {
            #expect(bench.body(ByteRange(offset, min(offset + piece, end))) == "consumed")
        }
        bench.writer.ended(.complete(.delimited))
        #expect(bench.log.written == ByteRangeSet([ByteRange(seam, end)]))
        #expect(bench.holds(ByteRange(0, end)))
        #expect(bench.writer.progress.received == 50_000)
        #expect(bench.ending == "complete")
    }

    @Test(
        "one byte that differs anywhere in the overlap ends the attempt before anything is written",
        arguments: [0, 16_383, 16_384, 39_999])
    func overlapDiffers(_ place: Int) throws {
        let bench = try WriterBench(ByteRange(50_000, 60_000), overlap: 40_000)
        bench.head(ByteRange(10_000, 60_000))
        var bytes = WriterBench.content(ByteRange(10_000, 60_000))
        bytes[place] ^= 1
        #expect(bench.body(bytes) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.log.entries.isEmpty)
        #expect(bench.ending == "overlap")
    }

    @Test("a part file that ends within the overlap does not hold it")
    func overlapMissing() throws {
        let bench = try WriterBench(ByteRange(1000, 2000), overlap: 500, held: 999)
        bench.head(ByteRange(500, 2000))
        #expect(bench.body(ByteRange(500, 2000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.ending == "overlap")
        #expect(bench.log.entries.isEmpty)
    }

    @Test("an overlap that cannot be read is the disk's failure, not the server's")
    func overlapUnreadable() throws {
        let bench = try WriterBench(ByteRange(1000, 2000), overlap: 500)
        bench.sink.failReading()
        bench.head(ByteRange(500, 2000))
        #expect(bench.body(ByteRange(500, 2000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.ending == "sink: diskFull")
        #expect(bench.log.entries.isEmpty)
    }

    // MARK: Marks

    @Test("a mark follows its bytes, every 32 KiB and at the end")
    func marks() throws {
        let end = 3 * Self.mark + 1000
        let bench = try WriterBench(ByteRange(0, end))
        bench.head(ByteRange(0, end))
        bench.body(ByteRange(0, 1))
        #expect(bench.log.marks == [1], "the first byte's mark is due: the last one was never")
        var offset: Int64 = 1
        while offset < end {
            bench.body(ByteRange(offset, min(offset + 12_288, end)))
            offset += 12_288
        }
        #expect(bench.log.marks == [1, 36_865, 73_729])
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "cut")))
        #expect(bench.log.marks == [1, 36_865, 73_729, end])
        #expect(bench.log.marksFollowBytes(from: 0))
        #expect(bench.ending == "failed: bodyCut")
    }

    @Test("slow bytes are marked every quarter of a second")
    func slowMarks() throws {
        let bench = try WriterBench(ByteRange(0, 10_000))
        bench.head(ByteRange(0, 10_000))
        for offset in stride(from: Int64(0), to: 1000, by: 100) {
            bench.body(ByteRange(offset, offset + 100))
            bench.clock.advance(.milliseconds(125))
        }
        #expect(bench.log.marks == [100, 300, 500, 700, 900])
        #expect(bench.log.marksFollowBytes(from: 0))
    }

    @Test("a write that fails is not marked")
    func writeFails() throws {
        let bench = try WriterBench(ByteRange(0, 10_000))
        bench.sink.fail(from: 5000)
        bench.head(ByteRange(0, 10_000))
        #expect(bench.body(ByteRange(0, 3000)) == "consumed")
        #expect(bench.body(ByteRange(3000, 6000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.writer.progress.position == 3000)
        #expect(bench.log.marks == [3000])
        #expect(bench.ending == "sink: diskFull")
    }

    @Test("a mark that fails fails the attempt, also the last one")
    func markFails() throws {
        let early = try WriterBench(ByteRange(0, 10_000), marksFailFrom: 0)
        early.head(ByteRange(0, 10_000))
        #expect(early.body(ByteRange(0, 100)) == "stop")
        early.writer.ended(.stopped)
        #expect(early.ending == "sink: diskFailure")

        let late = try WriterBench(ByteRange(0, 10_000), marksFailFrom: 10_000)
        late.head(ByteRange(0, 10_000))
        #expect(late.body(ByteRange(0, 100)) == "consumed")
        #expect(late.body(ByteRange(100, 10_000)) == "consumed")
        late.writer.ended(.complete(.delimited))
        #expect(late.ending == "sink: diskFailure")
    }

    @Test("without a slot bytes are written but not marked; without bytes there is no mark")
    func noMarks() throws {
        let bench = try WriterBench(ByteRange(0, 1000), hasSlot: false)
        bench.head(ByteRange(0, 1000))
        bench.body(ByteRange(0, 1000))
        bench.writer.ended(.complete(.delimited))
        #expect(bench.log.entries == [.written(ByteRange(0, 1000))])

        let empty = try WriterBench(ByteRange(0, 1000))
        empty.head(ByteRange(0, 1000))
        empty.writer.ended(.failed(TransportFailure(.bodyCut, "cut")))
        #expect(empty.log.entries.isEmpty)
    }
}
