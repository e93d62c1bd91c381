import Testing
import TowlineCore

@testable import TowlineEngine

/// A complete small file is held in memory while it arrives, and written once its destination is known.
@Suite("Small answers are delivered in one piece")
struct GatheringTests {
    private static let length: Int64 = 3000

    private func bench(
        limiters: [RateLimiter] = [], mayGather: Bool = true, sharing: ConnectionSharing = .none,
        buffers: BufferPool = BufferPool()
    ) throws -> WriterBench {
        try WriterBench(
            ByteRange(0, .max), joinsDirectly: false, limiters: limiters, mayGather: mayGather,
            sharing: sharing, buffers: buffers)
    }

    /// Returns the head of an answer that contains the complete file.
    private func head(_ length: Int64, ranged: Bool = true, _ more: [(String, String)] = []) -> ResponseHead {
        var fields = [("Content-Length", "\(length)"), ("ETag", "\"a\"")] + more
        if ranged { fields.append(("Content-Range", "bytes 0-\(length - 1)/\(length)")) }
        return ResponseHead(status: ranged ? 206 : 200, fields: HTTPFields(fields))
    }

    private func attach(_ bench: WriterBench) {
        bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, Self.length))
    }

    private func isBrief(_ disposition: HeadDisposition) -> Bool {
        if case .proceedBriefly = disposition { true } else { false }
    }

    private func isDelivered(_ bench: WriterBench) -> Bool {
        guard bench.reports.count == 1, case .answeredAndEnded(AttemptID(7), _) = bench.reports[0] else { return false }
        return true
    }

    @Test("it is reported once, when it is complete, and written when it has a sink", arguments: [true, false])
    func delivered(ranged: Bool) throws {
        let bench = try bench()
        #expect(isBrief(bench.writer.receivedHead(head(Self.length, ranged: ranged))))
        #expect(bench.body(ByteRange(0, 2000)) == "consumed")
        #expect(bench.body(ByteRange(2000, Self.length)) == "consumed")
        #expect(bench.reports.isEmpty && bench.log.entries.isEmpty)
        bench.writer.ended(.complete(.delimited))
        #expect(isDelivered(bench) && bench.log.entries.isEmpty && bench.writer.holdsWhole)
        attach(bench)
        #expect(WriterBench.word(bench.writer.conclude()) == "complete")
        #expect(bench.holds(ByteRange(0, Self.length)) && bench.sink.bytes.count == Int(Self.length))
        #expect(
            bench.writer.progress
                == AttemptProgress(position: Self.length, received: Self.length, isHeldBack: false))
    }

    @Test("without a sink its bytes are dropped")
    func dropped() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.body(ByteRange(0, Self.length))
        bench.writer.ended(.complete(.delimited))
        #expect(WriterBench.word(bench.writer.conclude()) == "complete")
        #expect(bench.log.entries.isEmpty && bench.writer.progress.position == nil)
    }

    @Test("more bytes than its head promised are not held")
    func excess() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        #expect(bench.body(ByteRange(0, Self.length)) == "consumed")
        #expect(bench.body(ByteRange(Self.length, Self.length + 1)) == "pause")
        guard case .answered? = bench.reports.first else {
            Issue.record("\(bench.reports)")
            return
        }
        attach(bench)
        #expect(bench.body(ByteRange(Self.length, Self.length + 1)) == "stop")
        #expect(bench.holds(ByteRange(0, Self.length)) && bench.sink.bytes.count == Int(Self.length))
    }

    @Test("an answer that breaks off keeps its bytes")
    func broken() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.body(ByteRange(0, 1200))
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "reset")))
        #expect(isDelivered(bench) && !bench.writer.holdsWhole)
        attach(bench)
        #expect(WriterBench.word(bench.writer.conclude()) == "failed: bodyCut")
        #expect(bench.writer.progress.position == 1200 && bench.holds(ByteRange(0, 1200)))
    }

    /// Returns the head of an answer that does not state its length.
    private func endless(_ version: ResponseHead.Version) -> ResponseHead {
        let chunks = version == .http1_1 ? [("Transfer-Encoding", "chunked")] : []
        return ResponseHead(status: 200, fields: HTTPFields([("ETag", "\"a\"")] + chunks), version: version)
    }

    @Test(
        "the end of an answer without a length shows the length, if the end is certain",
        arguments: [AttemptEnd.Framing.delimited, .stream])
    func withoutLength(_ framing: AttemptEnd.Framing) throws {
        let bench = try bench()
        #expect(isBrief(bench.writer.receivedHead(endless(framing == .stream ? .http2 : .http1_1))))
        #expect(bench.body(ByteRange(0, 2000)) == "consumed")
        #expect(bench.body(ByteRange(2000, Self.length)) == "consumed")
        #expect(bench.reports.isEmpty)
        bench.writer.ended(.complete(framing))
        guard case .answeredAndEnded(AttemptID(7), .whole(let facts))? = bench.reports.first, bench.reports.count == 1
        else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == nil && bench.writer.framing == framing)
        #expect(bench.writer.holdsWhole && bench.writer.response.promise == .small)
        bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, .max))
        #expect(WriterBench.word(bench.writer.conclude()) == "complete" && bench.holds(ByteRange(0, Self.length)))
    }

    @Test("an answer without a length that breaks off has no complete length")
    func withoutLengthBroken() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(endless(.http1_1))
        bench.body(ByteRange(0, 1200))
        bench.writer.ended(.failed(TransportFailure(.bodyCut, "reset")))
        guard case .answeredAndEnded(AttemptID(7), .whole(let facts))? = bench.reports.first else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == nil && !bench.writer.holdsWhole)
    }

    @Test("an answer without a length that is not small is written where the transfer says, from its first byte")
    func withoutLengthLong() throws {
        // The held bytes are fewer than a whole number of pieces.
        let (limit, piece) = (SmallFilePolicy.longest + 1, Int64(16 << 10))
        let bench = try bench()
        _ = bench.writer.receivedHead(endless(.http1_1))
        for start in stride(from: 0, to: limit - piece, by: Int(piece)) {
            #expect(bench.body(ByteRange(start, start + piece)) == "consumed")
        }
        #expect(bench.reports.isEmpty && bench.writer.response.promise == .small)
        #expect(bench.body(ByteRange(limit - piece, limit)) == "pause")
        #expect(bench.writer.response.promise == .long)
        guard case .answered(AttemptID(7), .whole(let facts))? = bench.reports.first, bench.reports.count == 1 else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(facts.representation.completeLength == nil)
        bench.writer.attach(sink: bench.sink, slot: nil, lease: ByteRange(0, .max))
        #expect(bench.body(ByteRange(limit - piece, limit)) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.ending == "complete" && bench.holds(ByteRange(0, limit)))
        // On a shared connection it is stopped, like an answer whose head states that it is long.
        let shared = try self.bench(sharing: .one)
        _ = shared.writer.receivedHead(endless(.http2))
        let less = SharingPolicy.smallLimit
        #expect(shared.body(ByteRange(0, less)) == "consumed")
        #expect(shared.body(ByteRange(less, less + 1)) == "stop")
        shared.writer.ended(.stopped)
        #expect(shared.ending == "alone" && shared.reports.count == 1 && shared.log.entries.isEmpty)
    }

    @Test("a late answer without a length is reported as one that is not small", arguments: [false, true])
    func withoutLengthLate(_ isLimited: Bool) throws {
        let bench = try bench(limiters: isLimited ? [RateLimiter(rate: 1000)] : [])
        _ = bench.writer.receivedHead(endless(.http2))
        if isLimited {
            for start in stride(from: Int64(0), to: 20_000, by: 1000) where bench.reports.isEmpty {
                bench.body(ByteRange(start, start + 1000))
            }
        } else {
            bench.body(ByteRange(0, 1000))
            bench.writer.bodyDeadlinePassed()
        }
        guard case .answered(AttemptID(7), .whole)? = bench.reports.first else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(bench.writer.response.promise == .long)
    }

    @Test("over a shared connection it may take its time, and is stopped once it is not small")
    func withoutLengthLateAndShared() throws {
        let bench = try bench(sharing: .one)
        _ = bench.writer.receivedHead(endless(.http2))
        bench.body(ByteRange(0, 1000))
        bench.writer.bodyDeadlinePassed()
        let limit = SharingPolicy.smallLimit
        #expect(bench.reports.isEmpty && bench.body(ByteRange(1000, limit)) == "consumed")
        #expect(bench.body(ByteRange(limit, limit + 1)) == "stop")
        bench.writer.ended(.stopped)
        #expect(bench.ending == "alone" && bench.writer.response.promise == .long)
        // An answer that states its length was allowed to continue.
        let known = try self.bench(sharing: .one)
        _ = known.writer.receivedHead(head(Self.length))
        known.writer.bodyDeadlinePassed()
        #expect(known.reports.count == 1 && known.writer.response.promise == .small)
    }

    @Test("an answer that ends with its connection is not held")
    func withoutFraming() throws {
        let bench = try bench()
        let head = ResponseHead(status: 200, fields: HTTPFields([("ETag", "\"a\"")]), version: .http1_1)
        #expect(bench.writer.receivedHead(head) == .pause)
    }

    private func redirect(_ fields: [(String, String)], _ version: ResponseHead.Version = .http1_1) -> ResponseHead {
        ResponseHead(status: 302, fields: HTTPFields([("Location", "/there")] + fields), version: version)
    }

    @Test("a redirect is reported once, at the end of its body, which is dropped", arguments: [true, false], [0, 300])
    func redirected(_ hasLength: Bool, _ length: Int) throws {
        let bench = try bench()
        let fields = hasLength ? ("Content-Length", "\(length)") : ("Transfer-Encoding", "chunked")
        #expect(isBrief(bench.writer.receivedHead(redirect([fields]))))
        if length > 0 { #expect(bench.body(ByteRange(0, Int64(length))) == "consumed") }
        #expect(bench.reports.isEmpty)
        bench.writer.ended(.complete(.delimited))
        guard bench.reports.count == 1,
            case .answeredAndEnded(AttemptID(7), .redirect(location: "/there", nil, retryAfter: nil)) = bench.reports[0]
        else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(WriterBench.word(bench.writer.conclude()) == "complete" && bench.log.entries.isEmpty)
        #expect(bench.writer.response.promise == .small && bench.writer.progress.received == 0)
    }

    @Test("a redirect with a late body is reported, and its later bytes are dropped")
    func lateRedirect() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(redirect([("Content-Length", "300")]))
        bench.body(ByteRange(0, 100))
        bench.writer.bodyDeadlinePassed()
        guard case .answered(AttemptID(7), .redirect)? = bench.reports.first else {
            Issue.record("\(bench.reports)")
            return
        }
        #expect(bench.body(ByteRange(100, 300)) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.reports.count == 2 && WriterBench.word(bench.writer.conclude()) == "complete")
        #expect(bench.log.entries.isEmpty)
    }

    @Test("a redirect with a long body is reported at its head, and closed")
    func longRedirect() throws {
        for fields in [[("Content-Length", "16385")], []] {
            let bench = try bench()
            #expect(bench.writer.receivedHead(redirect(fields)) == .stop)
            #expect(bench.reports.count == 1)
            bench.writer.ended(.stopped)
            #expect(bench.ending == "stopped")
        }
        let chunks = try bench()
        #expect(isBrief(chunks.writer.receivedHead(redirect([("Transfer-Encoding", "chunked")]))))
        #expect(chunks.body(ByteRange(0, 16384)) == "consumed")
        #expect(chunks.body(ByteRange(16384, 16385)) == "stop")
        chunks.writer.ended(.stopped)
        #expect(isDelivered(chunks) && WriterBench.word(chunks.writer.conclude()) == "stopped")
    }

    @Test("a late answer is reported, waits for its sink, and is written from its first byte")
    func late() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.body(ByteRange(0, 1000))
        bench.writer.bodyDeadlinePassed()
        bench.writer.bodyDeadlinePassed()
        #expect(bench.reports.count == 1)
        guard case .answered(AttemptID(7), .partial(ByteRange(0, Self.length), _)) = bench.reports[0] else {
            Issue.record("not told of: \(bench.reports)")
            return
        }
        #expect(bench.body(ByteRange(1000, 2000)) == "pause")
        attach(bench)
        #expect(bench.body(ByteRange(1000, 2000)) == "consumed")
        #expect(bench.log.written == ByteRangeSet([ByteRange(0, 2000)]))
        bench.body(ByteRange(2000, Self.length))
        bench.writer.ended(.complete(.delimited))
        #expect(bench.holds(ByteRange(0, Self.length)) && bench.ending == "complete")
    }

    @Test("an answer without a byte when it is late waits for its sink, too")
    func lateFirstByte() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.writer.bodyDeadlinePassed()
        #expect(bench.body(ByteRange(0, 1000)) == "pause")
        attach(bench)
        #expect(bench.body(ByteRange(0, Self.length)) == "consumed")
        bench.writer.ended(.complete(.delimited))
        #expect(bench.holds(ByteRange(0, Self.length)) && bench.ending == "complete")
    }

    @Test(
        "a late answer that is complete is written once it has a sink, whether its end or the sink comes first",
        arguments: [true, false])
    func lateAndOver(endsFirst: Bool) throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.body(ByteRange(0, Self.length))
        bench.writer.bodyDeadlinePassed()
        if !endsFirst { attach(bench) }
        bench.writer.ended(.complete(.delimited))
        guard case .bodyEnded(AttemptID(7)) = bench.reports.last, bench.reports.count == 2 else {
            Issue.record("not told of: \(bench.reports)")
            return
        }
        if endsFirst { attach(bench) }
        #expect(WriterBench.word(bench.writer.conclude()) == "complete")
        #expect(bench.holds(ByteRange(0, Self.length)))
    }

    @Test("an answer that a limit holds back is reported first")
    func limited() throws {
        let clock = ManualClock()
        let limiter = RateLimiter(rate: 100, clock: clock.read)
        while limiter.take(1000) == nil {}
        let bench = try bench(limiters: [limiter])
        _ = bench.writer.receivedHead(head(Self.length))
        #expect(bench.reports.isEmpty)
        #expect(bench.body(ByteRange(0, Self.length)) == "pause for a while")
        guard case .answered = bench.reports.first else {
            Issue.record("not told of")
            return
        }
    }

    @Test("a digest is compared when the bytes are written")
    func digest() throws {
        let bench = try bench()
        let wrong = "sha-256=:" + String(repeating: "A", count: 43) + "=:"
        _ = bench.writer.receivedHead(head(Self.length, [("Content-Digest", wrong)]))
        bench.body(ByteRange(0, Self.length))
        bench.writer.ended(.complete(.delimited))
        attach(bench)
        #expect(WriterBench.word(bench.writer.conclude()) == "digest from 0")
    }

    @Test("on a shared connection it may take longer, and a file that is not small is stopped")
    func shared() throws {
        func disposition(_ head: ResponseHead, over version: ResponseHead.Version) throws -> (HeadDisposition, String?)
        {
            let bench = try bench(sharing: .one)
            var head = head
            head.version = version
            let disposition = bench.writer.receivedHead(head)
            if disposition == .stop { bench.writer.ended(.stopped) }
            return (disposition, bench.ending)
        }
        #expect(try disposition(head(Self.length), over: .http2) == (.proceedBriefly(within: .seconds(1)), nil))
        #expect(try disposition(head(Self.length), over: .http1_1) == (.proceedBriefly(within: .seconds(1)), nil))
        let long = head(SharingPolicy.smallLimit + 1)
        #expect(try disposition(long, over: .http2) == (.stop, "alone"))
        #expect(try disposition(long, over: .http1_1) == (.stop, "alone"))
        #expect(try disposition(ResponseHead(status: 200), over: .http2) == (.proceedBriefly(within: .seconds(1)), nil))
        #expect(try disposition(ResponseHead(status: 200), over: .http1_1) == (.stop, "alone"))
        // An unwanted answer is read as on any other connection.
        let missing = ResponseHead(status: 404, fields: HTTPFields([("Content-Length", "9")]))
        #expect(try disposition(missing, over: .http2) == (.proceed, nil))
    }

    @Test("it promises no small answers if this one would be stopped on a shared connection, held or not")
    func promise() throws {
        let limit = SharingPolicy.smallLimit
        var full = [UInt8](repeating: 0, count: BufferPool.mostHeld)
        let pool = BufferPool()
        pool.adopt(full)
        for (length, promise) in [(limit, SharingPolicy.Evidence.small), (limit + 1, .long)] {
            let held = try bench()
            #expect(isBrief(held.writer.receivedHead(head(length))) && held.writer.response.promise == promise)
            let other = try bench(buffers: pool)
            #expect(other.writer.receivedHead(head(length)) == .pause && other.writer.response.promise == promise)
        }
        pool.give(&full)
    }

    @Test("held buffers are returned, however the attempt ends", arguments: 0..<5)
    func givenBack(_ way: Int) throws {
        let pool = BufferPool()
        func run() throws {
            let bench = try bench(sharing: way == 1 ? .one : .none, buffers: pool)
            _ = bench.writer.receivedHead(way == 1 ? endless(.http2) : head(Self.length))
            bench.body(ByteRange(0, 1000))
            switch way {
            case 0: bench.writer.ended(.complete(.delimited))
            case 1:
                #expect(bench.body(ByteRange(1000, SharingPolicy.smallLimit + 1)) == "stop")
                bench.writer.ended(.stopped)
            case 2:
                bench.writer.ended(.complete(.delimited))
                _ = bench.writer.conclude()
            case 3:
                bench.writer.bodyDeadlinePassed()
                attach(bench)
                bench.writer.ended(.cancelled)
            default: break
            }
        }
        try run()
        // All of the pool's capacity is available again.
        var all: [UInt8] = []
        #expect(pool.grow(&all, to: BufferPool.mostHeld))
    }

    @Test("reported bytes are written as soon as they have a sink, whether more arrive or not")
    func writtenAtOnce() throws {
        let bench = try bench()
        _ = bench.writer.receivedHead(head(Self.length))
        bench.body(ByteRange(0, 2000))
        #expect(bench.writer.flush() && bench.writer.progress.position == nil)
        bench.writer.bodyDeadlinePassed()
        #expect(bench.writer.flush() && bench.sink.bytes.isEmpty)
        attach(bench)
        #expect(bench.writer.flush())
        #expect(bench.holds(ByteRange(0, 2000)) && bench.writer.progress.position == 2000)
    }

    @Test("if the pool is full, the answer is not held, and moves from a shared connection to its own")
    func noRoom() throws {
        let pool = BufferPool()
        var others = [UInt8](repeating: 0, count: BufferPool.mostHeld - (10 << 10))
        pool.adopt(others)
        let first = try bench(buffers: pool)
        #expect(isBrief(first.writer.receivedHead(head(Self.length))))
        let second = try bench(buffers: pool)
        #expect(second.writer.receivedHead(head(20 << 10)) == .pause)
        #expect(second.reports.count == 1 && second.writer.response.promise == .small)
        let shared = try bench(sharing: .one, buffers: pool)
        #expect(shared.writer.receivedHead(head(20 << 10)) == .stop)
        shared.writer.ended(.stopped)
        #expect(shared.ending == "alone" && shared.writer.response.promise == .small)
        // An answer that grows may find that the pool is full meanwhile.
        pool.give(&others)
        others = [UInt8](repeating: 0, count: BufferPool.mostHeld - (30 << 10))
        pool.adopt(others)
        let endless = try bench(buffers: pool)
        #expect(isBrief(endless.writer.receivedHead(self.endless(.http1_1))))
        #expect(endless.body(ByteRange(0, 16 << 10)) == "consumed")
        #expect(endless.body(ByteRange(16 << 10, 32 << 10)) == "pause" && endless.reports.count == 1)
        pool.give(&others)
        others = [UInt8](repeating: 0, count: BufferPool.mostHeld - (40 << 10))
        pool.adopt(others)
        // The same holds for an answer whose head came before its body; on a shared connection no attempt waits for a
        // sink.
        let known = try bench(sharing: .one, buffers: pool)
        #expect(isBrief(known.writer.receivedHead(head(100 << 10))))
        #expect(known.body(ByteRange(0, 16 << 10)) == "consumed")
        #expect(known.body(ByteRange(16 << 10, 100 << 10)) == "stop")
        known.writer.ended(.stopped)
        #expect(known.ending == "alone" && known.writer.response.promise == .small)
        pool.give(&others)
        #expect(isBrief(try bench(buffers: pool).writer.receivedHead(head(20 << 10))))
    }

    @Test("an answer that is longer, is a part, or goes to a stream, is not held")
    func notHeld() throws {
        #expect(try bench().writer.receivedHead(head(SmallFilePolicy.longest + 1)) == .pause)
        #expect(isBrief(try bench().writer.receivedHead(head(SmallFilePolicy.longest))))
        let part = ResponseHead(
            status: 206,
            fields: HTTPFields([("Content-Range", "bytes 0-99/3000"), ("Content-Length", "100"), ("ETag", "\"a\"")]))
        #expect(try bench().writer.receivedHead(part) == .pause)
        #expect(try bench(mayGather: false).writer.receivedHead(head(Self.length)) == .pause)
    }
}
