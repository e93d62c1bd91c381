import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("The handling of an answer")
struct AttemptAnswerTests {
    @Test("an answer that may be accepted waits, and is written where the transfer says")
    func paused() throws {
        let bench = try WriterBench(ByteRange(0, 1000), joinsDirectly: false)
        #expect(bench.head(ByteRange(0, 1000)) == .pause)
        #expect(bench.writer.progress.position == nil)
        bench.writer.attach(sink: bench.sink, slot: RecordingSlot(log: bench.log), lease: ByteRange(0, 600))
        #expect(bench.writer.progress.position == 0)
        #expect(bench.body(ByteRange(0, 1000)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.log.entries == [.written(ByteRange(0, 600)), .marked(600)])
    }

    /// Fails under ThreadSanitizer (`scripts/torture threads`) if the threads share more than a lock or an atomic.
    @Test("an attempt may end while its answer gets its sink")
    func endsWhileAttached() async throws {
        for _ in 0..<200 {
            let bench = try WriterBench(ByteRange(0, 1000), joinsDirectly: false)
            bench.head(ByteRange(0, 1000))
            async let ended: Void = bench.writer.ended(.failed(TransportFailure(.bodyCut, "reset")))
            bench.writer.attach(sink: bench.sink, slot: RecordingSlot(log: bench.log), lease: ByteRange(0, 1000))
            await ended
            #expect(bench.log.entries.isEmpty)
            #expect(bench.ending == "failed: bodyCut")
        }
    }

    @Test("a small body of a refusal is read and dropped to reuse the connection; a large one is not read")
    func refusals() throws {
        let bench = try WriterBench(ByteRange(0, 1000))
        let small = ResponseHead(status: 404, fields: HTTPFields([("Content-Length", "300")]))
        #expect(bench.writer.receivedHead(small) == .proceed)
        #expect(bench.body(ByteRange(0, 300)) == "consumed")
        #expect(bench.body(ByteRange(300, 301)) == "stop", "more than announced")
        #expect(bench.log.entries.isEmpty)
        #expect(bench.writer.progress.received == 0)

        for fields in [[("Content-Length", "16385")], []] {
            let other = try WriterBench(ByteRange(0, 1000))
            #expect(other.writer.receivedHead(ResponseHead(status: 503, fields: HTTPFields(fields))) == .stop)
        }
    }

    @Test("bytes that arrive without a sink end the attempt")
    func noSink() throws {
        let bench = try WriterBench(ByteRange(0, 1000), joinsDirectly: false)
        bench.head(ByteRange(0, 1000))
        #expect(bench.body(ByteRange(0, 1000)) == "stop")
        #expect(bench.log.entries.isEmpty)
    }

    /// Returns an attempt with an answer without a length that replaces held bytes.
    private func replacing() throws -> WriterBench {
        let bench = try WriterBench(ByteRange(0, .max), joinsDirectly: false, mayGather: true, replacesBytes: true)
        let head = ResponseHead(status: 200, fields: HTTPFields([("Transfer-Encoding", "chunked")]))
        #expect(bench.writer.receivedHead(head) == .proceed)
        #expect(bench.reports.isEmpty)
        return bench
    }

    @Test("an answer without a length that replaces bytes is reported once it is too long for an error")
    func tooLongForAnError() throws {
        let bench = try replacing()
        #expect(bench.body(ByteRange(0, 65_535)) == "consumed")
        #expect(bench.reports.isEmpty)
        #expect(bench.body(ByteRange(65_535, 65_536)) == "pause")
        guard case .answered(_, .whole(let facts))? = bench.reports.first else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == nil && facts.firstBytes.count == 512)
    }

    @Test("a short answer that replaces bytes is reported at its end, with its length")
    func shortAnswer() throws {
        let bench = try replacing()
        #expect(bench.body(Array("busy".utf8)) == "consumed")
        bench.writer.ended(.complete(.delimited))
        guard case .answeredAndEnded(_, .whole(let facts))? = bench.reports.first, bench.reports.count == 1 else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == 4 && facts.firstBytes == Array("busy".utf8))
    }

    @Test("without a first byte the answer is reported as an empty file at its end")
    func noByte() throws {
        let bench = try replacing()
        bench.writer.ended(.complete(.delimited))
        guard case .answeredAndEnded(_, .whole(let facts))? = bench.reports.first, bench.reports.count == 1 else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == 0)
    }

    @Test("an answer that breaks off before its first byte is no answer")
    func brokenBeforeTheFirstByte() throws {
        let bench = try replacing()
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "reset")))
        #expect(bench.reports.count == 1 && bench.ending == "failed: bodyCut")
    }

    // MARK: Pages

    /// Sends the answer to a request for `file.bin` in pieces, labelled as a page. Returns the bytes that were written,
    /// or `nil` if the answer was reported as a page.
    private func labelledPage(_ pieces: [String], length: Int? = nil) throws -> [UInt8]? {
        let bench = try WriterBench(ByteRange(0, .max), joinsDirectly: false, mayGather: true)
        let framing = length.map { ("Content-Length", "\($0)") } ?? ("Transfer-Encoding", "chunked")
        let head = ResponseHead(status: 200, fields: HTTPFields([("Content-Type", "text/html"), framing]))
        #expect(bench.writer.receivedHead(head) == .proceed)
        var isAttached = false
        for piece in pieces {
            while bench.body(Array(piece.utf8)) == "pause" {
                if case .answered(_, .webPage)? = bench.reports.first { return nil }
                try #require(!isAttached)
                bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, .max))
                isAttached = true
            }
        }
        bench.writer.ended(.complete(.delimited))
        if case .answeredAndEnded(_, let verdict)? = bench.reports.first {
            if case .webPage = verdict { return nil }
            bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, .max))
            #expect(WriterBench.word(bench.writer.conclude()) == "complete")
        }
        return bench.sink.bytes
    }

    @Test(
        "a body that begins like a page is reported as a page, however it is split",
        arguments: [["<!DOCTYPE html><html>"], [" ", "\n<!DOC", "TYPE ht", "ml>", "more"], ["<html>"]])
    func pages(_ pieces: [String]) throws {
        #expect(try labelledPage(pieces) == nil)
        #expect(try labelledPage(pieces, length: pieces.joined().utf8.count) == nil)
    }

    @Test(
        "any other body that is labelled as a page is written completely",
        arguments: [["binary"], ["<", "!doc", "x", "y"], [" ", "  "], ["<htm"], []])
    func labelledBodies(_ pieces: [String]) throws {
        #expect(try labelledPage(pieces) == Array(pieces.joined().utf8))
    }

    // MARK: Digests

    /// Returns a digest field whose value matches these bytes according to `AddingHasher`.
    private func digest(_ bytes: [UInt8], plus error: UInt8 = 0) -> (String, String) {
        var value = [UInt8](repeating: 0, count: 32)
        value[0] = bytes.reduce(error, &+)
        return ("Content-Digest", "sha-256=:\(base64(value)):")
    }

    private func base64(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = group.reduce(0) { $0 << 8 | Int($1) }
            bits <<= 8 * (3 - group.count)
            for place in 0..<4 { text.append(place <= group.count ? letters[bits >> (18 - 6 * place) & 63] : "=") }
        }
        return text
    }

    @Test("a body is compared with its digest, the overlap included", arguments: [UInt8(0), 1])
    func digests(_ error: UInt8) throws {
        let range = ByteRange(500, 2000)
        let bench = try WriterBench(ByteRange(1000, 2000), overlap: 500)
        bench.head(range, [digest(WriterBench.content(range), plus: error)])
        bench.body(range)
        bench.writer.ended(.complete(.delimited))
        #expect(bench.ending == (error == 0 ? "complete" : "digest from 1000"))
    }

    @Test("the digest of an incomplete body is not checked")
    func cutDigests() throws {
        let range = ByteRange(0, 2000)
        let bench = try WriterBench(range)
        bench.head(range, [digest(WriterBench.content(range))])
        bench.body(ByteRange(0, 1000))
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "cut")))
        #expect(bench.ending == "failed: bodyCut")
    }

    // MARK: Rates

    @Test("bytes that arrive too soon are refused, and accepted when they are delivered again")
    func heldBack() throws {
        let clock = ManualClock()
        let limiter = RateLimiter(rate: 100_000, clock: clock.read)
        let bench = try WriterBench(ByteRange(0, 100_000), limiters: [limiter])
        bench.head(ByteRange(0, 100_000))
        #expect(bench.body(ByteRange(0, 50_000)) == "consumed")
        #expect(bench.body(ByteRange(50_000, 51_000)) == "pause for a while")
        #expect(bench.writer.progress == AttemptProgress(position: 50_000, received: 50_000, isHeldBack: true))
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 50_000)]))
        clock.advance(.milliseconds(401))
        #expect(bench.body(ByteRange(50_000, 51_000)) == "consumed")
        #expect(bench.writer.progress == AttemptProgress(position: 51_000, received: 51_000, isHeldBack: false))
        #expect(bench.holds(ByteRange(0, 51_000)))
    }

    @Test("the wait is as long as the debt")
    func waits() throws {
        let limiter = RateLimiter(rate: 100_000, clock: ManualClock().read)
        let bench = try WriterBench(ByteRange(0, 100_000), limiters: [limiter])
        bench.head(ByteRange(0, 100_000))
        bench.body(ByteRange(0, 60_000))
        let disposition = [UInt8](repeating: 0, count: 1).withUnsafeBytes(bench.writer.receivedBody)
        guard case .pauseFor(let wait) = disposition else {
            Issue.record("not held back: \(disposition)")
            return
        }
        #expect(abs((wait - .milliseconds(500)).seconds) < 0.001)
    }

    @Test("bytes that one limit allows and another holds back are not charged")
    func givesBack() throws {
        let clock = ManualClock()
        let (own, shared) = (RateLimiter(rate: 100_000, clock: clock.read), RateLimiter(rate: 1000, clock: clock.read))
        _ = shared.take(5000)
        let bench = try WriterBench(ByteRange(0, 100_000), limiters: [own, shared])
        bench.head(ByteRange(0, 100_000))
        for _ in 0..<10 { #expect(bench.body(ByteRange(0, 50_000)) == "pause for a while") }
        #expect(own.take(1) == nil)
    }

    @Test("a transfer held back by its own limit takes no bytes from the others")
    func noStall() throws {
        let clock = ManualClock()
        let shared = RateLimiter(rate: 100_000, clock: clock.read)
        let slow = try WriterBench(
            ByteRange(0, 1_000_000), limiters: [RateLimiter(rate: 1000, clock: clock.read), shared])
        let fast = try WriterBench(
            ByteRange(0, 1_000_000), limiters: [RateLimiter(rate: 0, clock: clock.read), shared])
        slow.head(ByteRange(0, 1_000_000))
        fast.head(ByteRange(0, 1_000_000))
        var (slowOffset, fastOffset): (Int64, Int64) = (0, 0)
        for _ in 0..<500 {
            if slow.body(ByteRange(slowOffset, slowOffset + 2000)) == "consumed" { slowOffset += 2000 }
            if fast.body(ByteRange(fastOffset, fastOffset + 2000)) == "consumed" { fastOffset += 2000 }
            clock.advance(.milliseconds(10))
        }
        // In five seconds: 1000 bytes a second and the initial savings for the slow transfer, the rest for the fast
        // one.
        #expect((5000...11_000).contains(slowOffset))
        #expect((480_000...512_000).contains(slowOffset + fastOffset))
    }
}
