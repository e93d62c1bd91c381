import Testing
import TowlineCore

@Suite("A transfer whose connections are very slow or stalled")
struct TransferReplacementTests {

    private func begin(
        connections: Int, _ change: (inout TransferTerms) -> Void = { _ in }
    ) throws -> TransferScript {
        var script = try TransferScript {
            $0.options.connections = connections
            change(&$0)
        }
        script.feed(.begin(nil))
        script.give(script.last)
        script.feed(.prepared)
        for plan in script.plans.dropFirst() { script.give(plan) }
        return script
    }

    /// Lets time pass in steps of a tenth of a second while each attempt receives `rate` bytes per second, until
    /// something is cancelled or started.
    ///
    /// - Returns: The seconds that passed; `nil` if no attempt was cancelled or started.
    private func run(
        _ script: inout TransferScript, seconds: Int, _ rate: (AttemptPlan) -> Int64
    ) -> Double? {
        let start = script.now
        for _ in 0..<(seconds * 10) {
            script.now += .milliseconds(100)
            for plan in script.plans where script.machine.ledger.lease(of: plan.id) != nil {
                let before = script.progress[plan.id]?.position ?? plan.lease.lowerBound
                script.write(plan, to: before + rate(plan) / 10)
            }
            script.feed(.tick)
            let isReplaced = script.fresh.contains { action in
                switch action {
                case .cancel, .start: true
                default: false
                }
            }
            if isReplaced { return Double((script.now - start) / .milliseconds(1)) / 1000 }
            for case .shrink(let id, _) in script.fresh { script.feed(.ended(id, .stopped)) }
        }
        return nil
    }

    @Test("a single connection that became very slow is replaced, and resumes where it was")
    func aloneAfterBetterDays() throws {
        var script = try begin(connections: 1)
        let first = script.last
        #expect(run(&script, seconds: 10) { _ in 1_000_000 } == nil)
        let waited = try #require(run(&script, seconds: 60) { _ in 5000 })
        #expect((4...20).contains(waited))
        #expect(script.plans.count == 2)
        #expect(script.last.lease.lowerBound > 10_000_000 && script.last.overlap == 16 << 10)
        script.give(script.last)
        script.write(script.last, to: script.last.lease.lowerBound + 2000)
        script.feed(.tick)
        #expect(script.fresh.contains(.shrink(first.id, end: script.last.lease.lowerBound)))
        let ending = script.ending
        #expect(ending == nil)
    }

    @Test("a connection does not count as stalled while its part file is prepared, even if only by reading it")
    func preparedLate() throws {
        var script = try TransferScript { $0.options.connections = 1 }
        script.feed(.begin(nil))
        script.give(script.last)
        script.now += .seconds(600)
        script.feed(.prepared)
        script.feed(.tick)
        #expect(run(&script, seconds: 20) { _ in 100_000 } == nil)
        #expect(script.plans.count == 1)
    }

    @Test("a connection that is very slow from its first byte is replaced after the stall timeout")
    func aloneFromTheStart() throws {
        var script = try begin(connections: 1) { $0.options.stallTimeout = .seconds(20) }
        let waited = try #require(run(&script, seconds: 60) { _ in 500 })
        #expect((20...22).contains(waited))
        #expect(run(&script, seconds: 30) { _ in 500 } == nil, "the second is given twice the time")
    }

    @Test("connections of a network that is slow as a whole are replaced less and less often")
    func futile() throws {
        var script = try begin(connections: 1)
        #expect(run(&script, seconds: 10) { _ in 1_000_000 } == nil)
        var replaced = 0
        for _ in 0..<20 {
            guard run(&script, seconds: 120, { _ in 20_000 }) != nil else { break }
            replaced += 1
            script.endCancelled()
            script.give(script.last)
        }
        #expect((1...8).contains(replaced), "\(replaced) replacements")
        let ending = script.ending
        #expect(ending == nil)
    }

    @Test("the last of several, far slower than the others were, is replaced although no other runs beside it")
    func lastOne() throws {
        var script = try begin(connections: 4)
        let slow = script.plans[3]
        #expect(run(&script, seconds: 3) { $0.id == slow.id ? 100_000 : 1_000_000 } == nil)
        // The others end; their ends lower the number of connections to one, as if a server refused more.
        script.feed(.answered(AttemptID(999), .permanent(TowlineError(.invalidResponse, "never started"))))
        for plan in script.plans.dropLast() {
            script.write(plan, to: script.machine.ledger.lease(of: plan.id)?.upperBound ?? plan.lease.upperBound)
        }
        let waited = run(&script, seconds: 60) { $0.id == slow.id ? 2000 : 0 }
        #expect(waited != nil)
        #expect(script.plans.count > 4)
    }

    @Test("a slow connection is kept if ranges do not work: another would begin at the first byte")
    func keptWithoutRanges() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        #expect(run(&script, seconds: 10) { _ in 1_000_000 } == nil)
        #expect(run(&script, seconds: 120) { _ in 100 } == nil)
    }

    @Test("a connection held back by our own rate limit is not slow")
    func heldBack() throws {
        var script = try begin(connections: 1)
        #expect(run(&script, seconds: 10) { _ in 1_000_000 } == nil)
        for step in 1...600 {
            script.now += .milliseconds(100)
            let position = 10_000_000 + Int64(step) * 10
            script.progress[script.last.id] = AttemptProgress(
                position: position, received: position, isHeldBack: step.isMultiple(of: 10))
            script.feed(.tick)
        }
        #expect(script.plans.count == 1)
    }

    // MARK: Failures without progress

    /// Runs several connections that receive no bytes and stall at different moments. Each time one is replaced, others
    /// are still waited for.
    private func stallInTurn(_ script: inout TransferScript, until deadline: Duration) {
        while script.ending == nil, script.now < deadline {
            script.now += .milliseconds(700)
            let before = script.plans.count
            script.feed(.tick)
            script.endCancelled()
            // Heads still arrive; bytes do not.
            for plan in script.plans[before...] {
                script.now += .milliseconds(300)
                script.give(plan)
                script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: 0)
            }
        }
    }

    @Test("connections that stall one after another use up the tries", arguments: [1, 3, 5])
    func stallsInTurn(_ tries: Int) throws {
        var script = try begin(connections: 4) { $0.options.maximumTries = tries }
        // The connections fall silent at different moments.
        for second in 1...5 {
            script.now = .seconds(second)
            for (index, plan) in script.plans.enumerated() where second <= index + 2 {
                script.write(plan, to: plan.lease.lowerBound + Int64(second) * 100_000)
            }
            script.feed(.tick)
        }
        stallInTurn(&script, until: .seconds(100 * (tries + 2)))
        let failure = script.failure
        let error = try #require(failure)
        #expect(error.code == .transient)
        #expect(error.message.contains(". \(tries) attempt"))
        #expect(script.now >= .seconds(30 * tries), "an outage is one failure, not one for each connection")
    }

    @Test("and a byte now and then keeps the transfer running")
    func progressForgives() throws {
        var script = try begin(connections: 4) { $0.options.maximumTries = 2 }
        script.write(to: 100_000)
        for round in 1...20 {
            stallInTurn(&script, until: script.now + .seconds(31))
            let ending = script.ending
            #expect(ending == nil, "round \(round)")
            guard let plan = script.plans.last(where: { script.machine.ledger.lease(of: $0.id) != nil }) else { break }
            script.write(plan, to: (script.machine.ledger.lease(of: plan.id)?.lowerBound ?? 0) + 10_000)
            script.feed(.tick)
        }
        let ending = script.ending
        #expect(ending == nil)
    }

    @Test("a single connection that stalls counts each time, as before")
    func stallsAlone() throws {
        var script = try begin(connections: 1) { $0.options.maximumTries = 3 }
        script.write(to: 100_000)
        stallInTurn(&script, until: .seconds(600))
        let code = script.failure?.code
        #expect(code == .transient)
    }
}
