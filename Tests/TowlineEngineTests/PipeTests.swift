import Glibc
import Testing
import TowlineCore

@testable import TowlineEngine

/// Tests bytes that bypass an attempt: they wait in a pipe, and go from there to their file.
@Suite struct PipeTests {
    /// A pipe and the bytes that were put into it.
    private struct Pipe {
        let ends: [Int32]

        init() {
            var ends: [Int32] = [-1, -1]
            precondition(pipe(&ends) == 0)
            self.ends = ends
        }

        func put(_ range: ByteRange) {
            let bytes = WriterBench.content(range)
            precondition(Glibc.write(ends[1], bytes, bytes.count) == bytes.count)
        }

        func close() { for end in ends { Glibc.close(end) } }
    }

    /// Returns an attempt for 300,000 bytes that has received 50,000 of them.
    private func begun(_ fields: [(String, String)] = [], limiters: [RateLimiter] = []) throws -> WriterBench {
        let bench = try WriterBench(ByteRange(0, 300_000), limiters: limiters)
        bench.head(ByteRange(0, 300_000), fields)
        #expect(bench.body(ByteRange(0, 50_000)) == "consumed")
        return bench
    }

    private func with(_ bench: WriterBench, _ body: (Pipe, (ByteRange) -> String) throws -> Void) rethrows {
        let pipe = Pipe()
        defer { pipe.close() }
        try body(pipe) { range in
            pipe.put(range)
            return Self.word(bench.writer.receivedBody(in: pipe.ends[0], count: Int(range.count)))
        }
    }

    private static func word(_ disposition: BodyDisposition) -> String {
        switch disposition {
        case .consumed: "consumed"
        case .pause: "pause"
        case .pauseFor: "pause for a while"
        case .stop: "stop"
        }
    }

    @Test("they are written, counted and marked after the bytes before them")
    func written() throws {
        let bench = try begun()
        #expect(bench.writer.takesPipes && bench.writer.wanted == 250_000)
        with(bench) { _, put in
            #expect(put(ByteRange(50_000, 100_000)) == "consumed")
            #expect(bench.log.marks.last == 100_000 && bench.writer.wanted == 200_000)
            #expect(put(ByteRange(100_000, 105_000)) == "consumed")
            #expect(bench.log.marks.last == 105_000, "little is marked after a quarter of a second")
            #expect(put(ByteRange(105_000, 110_000)) == "consumed")
            #expect(bench.log.marks.last == 105_000, "and not before")
            #expect(
                bench.writer.progress == AttemptProgress(position: 110_000, received: 110_000, isHeldBack: false))
            for start in stride(from: Int64(110_000), to: 300_000, by: 38_000) {
                #expect(put(ByteRange(start, start + 38_000)) == "consumed")
            }
        }
        bench.writer.ended(.complete(.delimited))
        #expect(bench.ending == "complete" && bench.log.marks.last == 300_000)
        #expect(bench.holds(ByteRange(0, 300_000)) && bench.log.marksFollowBytes(from: 0))
    }

    @Test("a segment that became shorter ends at its new end, whatever the pipe contains")
    func cut() throws {
        let bench = try begun()
        bench.writer.shrink(to: 70_000)
        #expect(bench.writer.wanted == 20_000)
        with(bench) { _, put in #expect(put(ByteRange(50_000, 100_000)) == "stop") }
        bench.writer.ended(.stopped)
        #expect(bench.ending == "stopped")
        #expect(bench.writer.progress.position == 70_000 && bench.sink.bytes.count == 70_000)
        #expect(bench.log.marks.last == 70_000 && bench.holds(ByteRange(0, 70_000)))
    }

    @Test("a limit set meanwhile holds them back, and they stay in the pipe")
    func limited() throws {
        let limiter = RateLimiter(rate: 0)
        let bench = try begun(limiters: [limiter])
        #expect(bench.writer.takesPipes)
        limiter.setRate(1)
        #expect(!bench.writer.takesPipes && bench.writer.wanted == 16 << 10, "no lumps")
        with(bench) { pipe, put in
            #expect(put(ByteRange(50_000, 51_000)) == "consumed", "the first of a burst")
            #expect(put(ByteRange(51_000, 60_000)) == "consumed", "on credit")
            #expect(put(ByteRange(60_000, 70_000)) == "pause for a while")
            #expect(bench.writer.progress == AttemptProgress(position: 60_000, received: 60_000, isHeldBack: true))
            limiter.setRate(0)
            #expect(Self.word(bench.writer.receivedBody(in: pipe.ends[0], count: 10_000)) == "consumed")
        }
        #expect(bench.holds(ByteRange(0, 70_000)) && !bench.writer.progress.isHeldBack)
    }

    @Test("bytes that could not be written are not claimed")
    func failing() throws {
        let bench = try begun()
        bench.sink.fail(from: 120_000)
        with(bench) { _, put in
            #expect(put(ByteRange(50_000, 100_000)) == "consumed")
            #expect(put(ByteRange(100_000, 150_000)) == "stop")
        }
        bench.writer.ended(.stopped)
        #expect(bench.ending == "sink: diskFull")
        #expect(bench.log.marks.last == 100_000 && bench.writer.progress.position == 100_000)
    }

    @Test(
        "not while bytes must be seen: before the head, for a digest, in the overlap, under a limit, while others wait")
    func seen() throws {
        let early = try WriterBench(ByteRange(0, 300_000))
        #expect(!early.writer.takesPipes)

        let digest = ("Content-Digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")
        #expect(try !begun([digest]).writer.takesPipes)

        let joining = try WriterBench(ByteRange(100_000, 300_000), overlap: 65_536)
        joining.head(ByteRange(34_464, 300_000))
        joining.body(ByteRange(34_464, 80_000))
        #expect(!joining.writer.takesPipes)
        joining.body(ByteRange(80_000, 100_000))
        #expect(joining.writer.takesPipes)

        #expect(try !begun(limiters: [RateLimiter(rate: 1 << 40)]).writer.takesPipes)

        let waiting = try WriterBench(ByteRange(0, 300_000))
        waiting.head(ByteRange(0, 300_000))
        waiting.body(ByteRange(0, 16_384), rests: false)
        #expect(!waiting.writer.takesPipes)
        #expect(waiting.writer.flush() && waiting.writer.takesPipes)
    }
}
