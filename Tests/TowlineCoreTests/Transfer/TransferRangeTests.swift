import Testing
import TowlineCore

@Suite("A server that refuses requests for their Range field")
struct TransferRangeTests {
    private static let whole = [("Content-Length", "1000000"), ("ETag", "\"a\"")]
    private static let part = [("Content-Range", "bytes 383616-999999/1000000"), ("ETag", "\"a\"")]

    /// Returns an interrupted download of 1,000,000 bytes whose next attempt has just been sent.
    private func interrupted(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferScript {
        var script = try TransferScript(change)
        script.begin(length: 1_000_000, position: 400_000)
        script.end(cut())
        return script
    }

    @Test(
        "is asked again without Range, at once",
        arguments: [400, 401, 403, 404, 405, 410, 412, 416, 417, 451, 500, 501, 503, 599, 0])
    func atTheStart(_ status: Int) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.refuse(status, .closedBeforeHead)
        #expect(script.plans.count == 2 && script.last.field("Range") == nil)
        #expect(script.notices(.retrying).isEmpty)
        script.answer(200, Self.whole)
        #expect(script.prepares.count == 1)
    }

    @Test("is not asked again if the reason is the proxy or the number of requests", arguments: [407, 429])
    func otherReasons(_ status: Int) throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.refuse(status, .other)
        #expect(script.plans.count == 1)
    }

    @Test("is asked without Range, and the plain request counts like any other")
    func counted() throws {
        var script = try TransferScript { $0.options.maximumTries = 2 }
        script.feed(.begin(nil))
        for _ in 0..<3 {
            script.refuse(503, .other)
            script.now += .seconds(20)
            script.feed(.tick)
        }
        #expect(script.plans.map { $0.field("Range") != nil } == [true, false, true])
        #expect(script.failure?.code == .transient)
    }

    @Test("is asked without Range by each later request until there are bytes")
    func staysPlain() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.refuse(404, .other)
        script.refuse(503, .other)
        script.now += .seconds(20)
        script.feed(.tick)
        #expect(script.plans.map { $0.field("Range") != nil } == [true, false, false])
        script.refuse(404, .other)
        #expect(script.failure?.code == .notFound && script.plans.count == 3)
    }

    @Test("is also asked without Range at the target of a redirect")
    func redirected() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        for _ in 0..<2 {
            script.answer(302, [("Location", "https://cdn.example.net/x")])
            script.endCancelled()
            #expect(script.last.url.host == "cdn.example.net")
            if script.plans.count == 2 { script.refuse(403, .other) }
        }
        #expect(script.plans.map { $0.field("Range") != nil } == [true, true, false, false])
    }

    @Test("keeps the bytes until the whole file arrives", arguments: [400, 403, 404, 412])
    func inTheMiddle(_ status: Int) throws {
        var script = try interrupted()
        script.refuse(status, .other)
        #expect(script.last.field("Range") == nil && script.last.field("If-Range") == nil)
        #expect(script.machine.ledger.written.count == 400_000 && script.prepares.count == 1)
        script.answer(200, Self.whole)
        #expect(script.plans.count == 3)
        #expect(script.notices(.restarted).count == 1 && script.prepares.last?.isReplacement == true)
        script.feed(.prepared)
        #expect(script.machine.ledger.lease(of: script.last.id) == ByteRange(0, 1_000_000))
    }

    @Test("and the plain request, too, keeps the bytes", arguments: [403, 404])
    func refusesAll(_ status: Int) throws {
        var script = try interrupted()
        for _ in 0..<2 { script.refuse(status, .other) }
        #expect(script.failure?.status == status && script.prepares.count == 1)
        #expect(script.machine.ledger.written.count == 400_000)
    }

    /// Refuses the range with a transient failure, twice; each time it is requested again after a wait.
    private func refusedTwice(_ script: inout TransferScript, _ status: Int) {
        for count in 3...4 {
            script.refuse(status, .closedBeforeHead)
            #expect(script.plans.count == count - 1 && script.machine.wait(now: script.now) != nil)
            script.now += .seconds(20)
            script.feed(.tick)
            #expect(script.plans.count == count && script.last.field("Range") == "bytes=383616-999999")
        }
    }

    @Test("transiently, after ranges worked, is asked for the same range first", arguments: [500, 503, 0])
    func passes(_ status: Int) throws {
        var script = try interrupted()
        refusedTwice(&script, status)
        script.refuse(status, .closedBeforeHead)
        #expect(script.plans.count == 5 && script.last.field("Range") == nil)
        script.answer(200, Self.whole)
        script.endCancelled()
        #expect(script.last.field("Range") == "bytes=383616-999999")
        script.answer(206, Self.part)
        #expect(script.notices(.restarted).isEmpty && script.prepares.count == 1)
    }

    @Test("each time, with a transient failure, gets a restart in the end, then ranges after the next break")
    func neverPasses() throws {
        var script = try interrupted()
        refusedTwice(&script, 503)
        for _ in 0..<2 {
            script.refuse(503, .other)
            #expect(script.last.field("Range") == nil)
            script.answer(200, Self.whole)
            script.endCancelled()
        }
        #expect(script.plans.count == 7 && script.prepares.last?.isReplacement == true)
        #expect(script.prepares.last?.lacksRanges == false && script.notices(.restarted).count == 1)
        script.feed(.prepared)
        script.write(to: 500_000)
        script.end(cut())
        #expect(script.plans.count == 8 && script.last.field("Range") == "bytes=483616-999999")
        #expect(script.notices(.singleStream).isEmpty)
    }

    @Test("is asked without Range before the last try counts", arguments: [1, 2])
    func lastTry(_ tries: Int) throws {
        var script = try interrupted { $0.options.maximumTries = tries }
        for _ in 1..<tries {
            script.refuse(503, .other)
            script.now += .seconds(20)
            script.feed(.tick)
        }
        script.refuse(503, .other)
        #expect(script.plans.count == tries + 2 && script.last.field("Range") == nil && script.ending == nil)
    }

    @Test("and names a time is asked for the same range then")
    func retryAfter() throws {
        var script = try interrupted()
        script.answer(503, [("Retry-After", "7")])
        script.endCancelled()
        script.now = .seconds(7)
        script.feed(.tick)
        #expect(script.plans.count == 3 && script.last.field("Range") == "bytes=383616-999999")
    }

    @Test("is not asked for bytes that are already on standard output")
    func stream() throws {
        var script = try interrupted { $0.isStream = true }
        script.refuse(403, .other)
        #expect(script.plans.count == 2 && script.failure?.status == 403)
    }

    @Test("is not asked with Range at the start of a sequential download")
    func sequential() throws {
        var script = try TransferScript { $0.options.isSequential = true }
        script.feed(.begin(nil))
        #expect(script.last.field("Range") == nil)
        script.answer(200, Self.whole + [("Accept-Ranges", "bytes")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(cut())
        #expect(script.last.field("Range") == "bytes=383616-999999")
    }
}

@Suite("A response that breaks and cannot be resumed")
struct TransferBreakTests {
    private static let unresumable: [[(String, String)]] = [
        [("Content-Length", "1000000")],
        [],
        [("Content-Length", "1000000"), ("ETag", "\"a\""), ("Content-Encoding", "gzip")],
        [("Transfer-Encoding", "chunked"), ("ETag", "\"a\""), ("Content-Encoding", "br")],
    ]

    @Test(
        "is a network failure: waits grow, and the limit of the user applies", arguments: unresumable,
        [TransportFailure.Kind.bodyCut, .malformed])
    func waits(_ fields: [(String, String)], _ kind: TransportFailure.Kind) throws {
        var script = try TransferScript { $0.options.maximumTries = 4 }
        script.feed(.begin(nil))
        for round in 1...4 {
            script.answer(200, fields)
            script.feed(.prepared)
            script.write(to: 400_000)
            script.end(cut(kind))
            #expect(script.plans.count == round)
            guard round < 4 else { break }
            #expect(script.machine.wait(now: script.now) == .seconds(1 << (round - 1)))
            script.now += .seconds(1 << (round - 1))
            script.feed(.tick)
            #expect(script.plans.count == round + 1)
        }
        #expect(script.failure?.code == .transient)
    }

    @Test("is retried without end if the user says so")
    func withoutEnd() throws {
        var script = try TransferScript { $0.options.maximumTries = 0 }
        script.feed(.begin(nil))
        for _ in 0..<50 {
            script.answer(200, [("Content-Length", "1000000")])
            script.feed(.prepared)
            script.write(to: 400_000)
            script.end(cut())
            script.now += script.machine.wait(now: script.now) ?? .zero
            script.feed(.tick)
        }
        #expect(script.ending == nil && script.plans.count == 51)
    }

    @Test("resets the count when bytes are joined")
    func progress() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        for round in 1...5 {
            script.end(cut())
            #expect(script.plans.count == round + 1, "a response that can be resumed is resumed at once")
            script.give(script.last, length: 1_000_000)
            script.write(to: 400_000 + Int64(round) * 10_000)
        }
        #expect(script.notices(.restarted).isEmpty)
    }
}
