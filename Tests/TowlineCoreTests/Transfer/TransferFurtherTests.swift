import Testing
import TowlineCore

@Suite("A further connection is an experiment")
struct TransferFurtherTests {
    private static let length = TransferScript.length
    private static let range = [("Content-Range", "bytes 0-\(length - 1)/\(length)"), ("ETag", "\"a\"")]

    /// Starts two connections. The first one has written a byte.
    private func two(
        _ status: Int = 206, _ fields: [(String, String)] = Self.range, connections: Int = 2,
        stallTimeout: Duration = .seconds(30)
    ) throws -> TransferScript {
        var script = try TransferScript {
            ($0.options.connections, $0.options.stallTimeout) = (connections, stallTimeout)
        }
        script.feed(.begin(nil))
        script.answer(status, fields)
        script.feed(.prepared)
        script.write(script.plans[0], to: 1)
        script.feed(.tick)
        return script
    }

    /// Returns the range that the first response writes unless it is stopped.
    private func response(_ script: TransferScript) -> ByteRange? {
        script.machine.response(of: script.plans[0].id)
    }

    private func isStopped(_ script: TransferScript) -> Bool {
        script.actions.contains { action in
            switch action {
            case .shrink(script.plans[0].id, _), .cancel(script.plans[0].id): true
            default: false
            }
        }
    }

    @Test("the first response is not stopped before the other connection has written bytes")
    func proven() throws {
        var script = try two()
        let further = script.plans[1]
        #expect(further.isFurther && !script.plans[0].isFurther)
        script.give(further)
        script.write(script.plans[0], to: further.lease.lowerBound - 1000)
        script.feed(.tick)
        #expect(!isStopped(script) && response(script)?.upperBound == Self.length, "a head proves nothing")
        script.write(further, to: further.lease.lowerBound + 1000)
        script.feed(.tick)
        #expect(script.fresh.contains(.shrink(script.plans[0].id, end: further.lease.lowerBound)))
    }

    @Test("far from the other connection the first response can still take everything back")
    func takesBack() throws {
        var script = try two()
        let further = script.plans[1]
        script.give(further)
        script.write(further, to: further.lease.lowerBound + 1000)
        script.feed(.tick)
        #expect(!isStopped(script))
        #expect(response(script)?.upperBound == Self.length)
    }

    static let refusals: [(Int, [(String, String)])] = [
        (503, [("Retry-After", "3600")]), (429, []), (403, []), (404, []), (410, []), (401, []),
        (200, [("Content-Type", "text/html"), ("Content-Length", "99")]),
        (200, [("Content-Length", "99"), ("ETag", "\"b\"")]),
        (206, [("Content-Range", "bytes 0-9/10"), ("ETag", "\"b\"")]),
        (206, [("Content-Range", "bytes 0-9/\(length)"), ("ETag", "\"a\"")]),
        (416, [("Content-Range", "bytes */\(length)")]), (302, [("Location", "ftp://example.org/")]), (400, []),
    ]

    @Test("a refused connection gives its range back and lowers the number", arguments: refusals)
    func refused(_ status: Int, _ fields: [(String, String)]) throws {
        var script = try two()
        let further = script.plans[1]
        script.answer(further, status, fields)
        script.endCancelled()
        #expect(script.plans.count == 2 && script.ending == nil && !isStopped(script))
        #expect(script.machine.ledger.lease(of: script.plans[0].id) == ByteRange(1, Self.length))
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.actions.allSatisfy { if case .report(.leaveAlone, _) = $0 { false } else { true } })
        script.write(script.plans[0], to: Self.length)
        script.end(script.plans[0], .complete(.delimited))
        #expect(script.fresh.contains(.publish(length: Self.length, modified: nil)))
    }

    @Test("a failure on the wire gives the range back, too", arguments: TransportFailure.Kind.allCases)
    func failed(_ kind: TransportFailure.Kind) throws {
        guard kind != .http2Failed else { return }
        var script = try two()
        script.end(script.plans[1], .failed(TransportFailure(kind, "broken")))
        #expect(script.ending == nil && !isStopped(script))
        #expect(script.machine.ledger.lease(of: script.plans[0].id) == ByteRange(1, Self.length))
    }

    @Test("a connection without data ends after the stall timeout")
    func stalls() throws {
        var script = try two()
        for second in 1...31 {
            script.now = .seconds(second)
            script.write(script.plans[0], to: Int64(second) << 17)
            script.feed(.tick)
        }
        #expect(script.actions.contains(.cancel(script.plans[1].id)) && !isStopped(script))
        #expect(script.plans.count == 2 && script.notices(.limited).count == 1)
    }

    @Test("a connection ends if the first response has written its range")
    func overtaken() throws {
        var script = try two(connections: 3)
        script.write(script.plans[0], to: script.plans[2].lease.upperBound + 10)
        script.feed(.tick)
        #expect(script.fresh.contains(.cancel(script.plans[2].id)) && !isStopped(script))
        #expect(response(script)?.upperBound == Self.length)
    }

    @Test("a refusal soon after a connection was closed is no limit: the server may still count that one")
    func lateServer() throws {
        var script = try two(connections: 3)
        for plan in script.plans.dropFirst() {
            script.give(plan)
            script.write(plan, to: plan.lease.lowerBound + 1000)
        }
        script.feed(.tick)
        let stopped = script.plans[2]
        script.end(stopped, .stopped)
        let next = script.last
        #expect(next.id != stopped.id)
        script.answer(next, 503)
        script.endCancelled()
        #expect(script.actions.allSatisfy { if case .report(.connections, _) = $0 { false } else { true } })
        script.now += .seconds(2)
        for (index, plan) in script.plans.prefix(2).enumerated() {
            script.write(plan, to: plan.lease.lowerBound + 2000 + Int64(index))
        }
        script.feed(.tick)
        let again = script.last
        #expect(again.id != next.id, "the connection is requested again after a moment")
        // The server may count the refused connection, too: its body was not read.
        script.end(script.plans[1], .complete(.delimited))
        script.answer(again, 503)
        script.endCancelled()
        #expect(script.actions.allSatisfy { if case .report(.connections, _) = $0 { false } else { true } })
    }

    @Test("a server that ignores bytes=0- and says that it has ranges is asked for one")
    func claimed() throws {
        let whole = [("Content-Length", "\(Self.length)"), ("ETag", "\"a\""), ("Accept-Ranges", "bytes")]
        var script = try two(200, whole, connections: 4)
        #expect(script.plans.count == 2, "one connection is tried")
        script.give(script.plans[1])
        #expect(script.plans.count == 4)
        let silent = try two(200, Array(whole.prefix(2)), connections: 4)
        #expect(silent.plans.count == 1)
        let none = try two(200, Array(whole.prefix(2)) + [("Accept-Ranges", "none")], connections: 4)
        #expect(none.plans.count == 1)
    }

    @Test("a server that claims ranges and sends the whole file is soon left with one connection")
    func falseClaim() throws {
        let whole = [("Content-Length", "\(Self.length)"), ("ETag", "\"a\""), ("Accept-Ranges", "bytes")]
        var script = try two(200, whole, connections: 4)
        for _ in 0..<20 where script.plans.count > 1 {
            if script.machine.ledger.lease(of: script.last.id) != nil, script.last.isFurther {
                script.answer(200, whole)
                script.endCancelled()
            }
            script.now += .seconds(2)
            script.write(script.plans[0], to: Int64(script.now / .seconds(1)) << 17)
            script.feed(.tick)
        }
        #expect(script.plans.count <= 4 && script.ending == nil && !isStopped(script))
    }

    /// Bytes of a response that was cut are sent for nothing.
    @Test("no response is cut while the rate limit holds bytes back", arguments: [true, false])
    func limited(_ isHeldBack: Bool) throws {
        var script = try two()
        let further = script.plans[1]
        script.give(further)
        script.write(further, to: further.lease.upperBound)
        let start = script.plans[0].lease.lowerBound
        script.progress[script.plans[0].id] = AttemptProgress(
            position: start + 1000, received: 1000, isHeldBack: isHeldBack)
        script.now += .milliseconds(500)
        script.end(further, .complete(.delimited))
        #expect(script.plans.count == (isHeldBack ? 2 : 3))
        script.progress[script.plans[0].id] = AttemptProgress(position: start + 2000, received: 2000)
        script.now += .seconds(2)
        script.feed(.tick)
        #expect(script.plans.count == 3, "the limit no longer holds bytes back")
    }

    @Test("a connection that waits long for its response leaves its segment to a free one")
    func slowHead() throws {
        var script = try two(connections: 3)
        let (silent, done) = (script.plans[1], script.plans[2])
        script.give(done)
        for step in 1...30 {
            script.now = .milliseconds(100 * step)
            script.write(script.plans[0], to: Int64(step) * 1000)
            script.write(done, to: done.lease.lowerBound + Int64(step) * 1000)
            script.feed(.tick)
        }
        script.write(done, to: done.lease.upperBound)
        script.end(done, .complete(.delimited))
        #expect(script.plans.count == 4)
        let mine = try #require(script.machine.ledger.lease(of: silent.id))
        #expect(mine.upperBound == script.last.lease.lowerBound && mine.count < silent.lease.count / 4)
    }

    @Test("a response is not stopped while a range behind it was refused to others")
    func refusedBehind() throws {
        var script = try two(connections: 3)
        let (last, middle) = (script.plans[1], script.plans[2])
        #expect(middle.lease.upperBound == last.lease.lowerBound)
        script.give(middle)
        script.write(middle, to: middle.lease.lowerBound + 1000)
        script.answer(last, 403)
        script.endCancelled()
        script.write(script.plans[0], to: middle.lease.lowerBound - 100)
        script.feed(.tick)
        #expect(!isStopped(script) && response(script)?.upperBound == Self.length)
    }

    @Test("a response is not stopped for a connection that fell silent or is far slower", arguments: [0, 2000])
    func tooSlow(_ step: Int64) throws {
        var script = try two()
        let further = script.plans[1]
        script.give(further)
        script.write(further, to: further.lease.lowerBound + 100)
        for second in 1...8 {
            script.now = .seconds(second)
            script.write(script.plans[0], to: further.lease.lowerBound * Int64(second) / 8 - 10)
            script.write(further, to: further.lease.lowerBound + 100 + step * Int64(second))
            script.feed(.tick)
        }
        #expect(!isStopped(script) && response(script)?.upperBound == Self.length)
    }

    /// Returns where the last hold lets the first response wait, and for how long; `nil` without a hold.
    private func hold(_ script: TransferScript) -> (place: Int64, wait: Duration)? {
        for case .hold(script.plans[0].id, let place, let wait) in script.actions.reversed() { return (place, wait) }
        return nil
    }

    @Test("a response waits where another connection begins, for a moment and not for a refused one")
    func waits() throws {
        var script = try two()
        let further = script.plans[1]
        let first = try #require(hold(script))
        #expect(first.place == further.lease.lowerBound)
        #expect(first.wait >= .milliseconds(100) && first.wait <= .seconds(1))
        var refused = script
        refused.answer(further, 403)
        refused.endCancelled()
        #expect(hold(refused)?.place == .max)
        script.now += .seconds(2)
        script.feed(.tick)
        #expect(hold(script)?.place == .max, "the response waits no longer")
    }

    @Test("a response waits longer if the next bytes come and others are late", arguments: [true, false])
    func waitsLonger(_ comesNext: Bool) throws {
        var script = try two(connections: 3)
        let (last, next) = (script.plans[1], script.plans[2])
        #expect(next.lease.upperBound == last.lease.lowerBound)
        script.give(comesNext ? next : last)
        for step in 1...5 {
            script.now += .milliseconds(100)
            for plan in script.plans.prefix(3) where plan.id != (comesNext ? last : next).id {
                script.write(plan, to: plan.lease.lowerBound + Int64(step) * 10_000)
            }
            script.feed(.tick)
        }
        #expect(hold(script)?.place == (comesNext ? next.lease.lowerBound : .max))
        script.now += .seconds(2)
        script.feed(.tick)
        #expect(hold(script)?.place == .max)
    }

    @Test("a response that waits for another connection has not stalled")
    func waitingIsNoStall() throws {
        var script = try two(connections: 3, stallTimeout: .seconds(1))
        let next = script.plans[2]
        script.give(next)
        script.write(script.plans[0], to: next.lease.lowerBound)
        for step in 1...18 {
            script.now += .milliseconds(100)
            script.write(next, to: next.lease.lowerBound + Int64(step) * 10_000)
            script.feed(.tick)
        }
        #expect(hold(script)?.place == next.lease.lowerBound)
        #expect(!script.actions.contains(.cancel(script.plans[0].id)))
    }

    @Test("a connection whose rate is not known replaces no other with its first bytes", arguments: [1000, 300_000])
    func unknownRate(_ brought: Int64) throws {
        var script = try two()
        let further = script.plans[1]
        for step in 1...5 {
            script.now += .milliseconds(100)
            script.write(script.plans[0], to: further.lease.lowerBound / 5 * Int64(step) - 1000)
            script.feed(.tick)
        }
        script.give(further)
        script.write(further, to: further.lease.lowerBound + brought)
        script.feed(.tick)
        #expect(isStopped(script) == (brought > 256 << 10))
    }

    @Test("a slow response runs until its replacement has written bytes")
    func slow() throws {
        var script = try two(connections: 1)
        #expect(script.plans.count == 1)
        for step in 1...100 {
            script.now += .milliseconds(100)
            script.write(script.plans[0], to: Int64(step) * 100_000)
            script.feed(.tick)
        }
        for step in 1...300 where script.plans.count == 1 {
            script.now += .milliseconds(100)
            script.write(script.plans[0], to: 10_000_000 + Int64(step) * 500)
            script.feed(.tick)
        }
        #expect(script.plans.count == 2 && !isStopped(script))
        script.answer(410)
        script.endCancelled()
        #expect(script.ending == nil && !isStopped(script))
        #expect(script.machine.ledger.lease(of: script.plans[0].id)?.upperBound == Self.length)
    }
}
