import Testing
import TowlineCore

/// Tests sequences in which one source fails and another must continue.
@Suite("Sources that fail")
struct TransferMirrorFailureTests {
    private func begun(
        _ connections: Int, checksum: Bool = false, mirrors: Int = 1, tries: Int = 20
    ) throws -> TransferScript {
        var script = try TransferScript(
            mirrors: mirrors, connections: connections, checksum: checksum, tries: tries)
        script.feed(.begin(nil))
        script.give(script.last)
        script.feed(.prepared)
        return script
    }

    private func lease(_ plan: AttemptPlan, _ script: TransferScript) -> ByteRange? {
        script.machine.ledger.lease(of: plan.id)
    }

    @Test("no two sources write the same bytes if the checksum is the only proof", arguments: [true, false])
    func noRaceOfUnproven(slowIsMirror: Bool) throws {
        var script = try begun(2, checksum: true)
        script.give(script.plans[1])
        // Segments are assigned from the front until the last two are under way.
        var slow = script.plans[slowIsMirror ? 1 : 0]
        for _ in 0..<200 {
            script.now += .milliseconds(100)
            let running = script.plans.filter { lease($0, script)?.isEmpty == false }
            slow = running.last { ($0.url.host == "m1.example") == slowIsMirror } ?? slow
            for plan in running {
                guard let range = lease(plan, script) else { continue }
                let step = Int64(plan.id == slow.id && script.machine.ledger.missing.isEmpty ? 4 << 10 : 1 << 20)
                script.write(plan, to: min(range.upperBound, range.lowerBound + step))
            }
            script.feed(.tick)
            for plan in running where lease(plan, script)?.isEmpty == true { script.end(plan, .stopped) }
            for plan in script.plans where script.progress[plan.id]?.position == nil && lease(plan, script) != nil {
                script.give(plan)
                guard plan.isComparison else { continue }
                script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: plan.overlap)
                script.end(plan, .complete(.delimited))
            }
            let ranges = script.machine.ledger.leases.filter { !$0.range.isEmpty }
            for one in ranges {
                let source = script.plans.first { $0.id == one.id }?.source
                for other in ranges where other.id != one.id && other.range.intersection(one.range) != nil {
                    let theirs = script.plans.first { $0.id == other.id }?.source
                    #expect(source == .primary && theirs == .primary, "\(one.range) \(other.range)")
                }
            }
            script.endCancelled()
        }
        for case .cancel(let id) in script.actions { script.feed(.ended(id, .cancelled)) }
        #expect(script.actions.contains { if case .verify = $0 { true } else { false } }, "the transfer ends")
    }

    @Test("a differing seam is the mirror's fault if the mirror delivered the bytes before it")
    func seamOfAMirror() throws {
        var script = try begun(2, checksum: true)
        let mirror = script.plans[1]
        script.give(mirror)
        let middle = mirror.lease.lowerBound + 1 << 20
        script.write(script.plans[0], to: 1 << 20)
        script.write(mirror, to: middle)
        script.end(mirror, cut())
        // The next attempt at the mirror fails at once, and the primary takes over the rest.
        if script.last.url.host == "m1.example" { script.end(cut(.connectFailed)) }
        let rest = script.last
        #expect(rest.url.host == "example.org" && rest.lease.lowerBound == middle && rest.overlap > 0)
        script.end(rest, .overlapDiffers)
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.machine.ledger.written.ranges == [ByteRange(0, 1 << 20)], "bytes of the primary are kept")
    }

    @Test("a primary that stops giving ranges is left out while a mirror gives them", arguments: [200, 206, 400])
    func noMoreRanges(_ status: Int) throws {
        var script = try begun(2)
        let mirror = script.plans[1]
        script.give(mirror)
        script.write(script.plans[0], to: 1 << 20)
        script.write(mirror, to: mirror.lease.lowerBound + 1 << 20)
        script.end(script.plans[0], cut())
        for _ in 0..<4 where script.last.url.host == "example.org" {
            script.answer(status, [("ETag", "\"a\""), ("Content-Length", "\(TransferScript.length)")])
            script.endCancelled()
        }
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.last.url.host == "m1.example")
        #expect(script.machine.ledger.written.count == 2 << 20)
        #expect(lease(mirror, script) != nil, "the mirror's attempt continues")
    }

    @Test("each of many dead URLs is asked before the tries are used up")
    func everyoneIsAsked() throws {
        var script = try TransferScript { terms in
            terms.options.maximumTries = 3
            terms.mirrors = (1...6).compactMap { try? HTTPURL(parsing: "https://m\($0).example/file.iso") }
        }
        script.feed(.begin(nil))
        for _ in 0..<100 where script.ending == nil && script.last.url.host != "m6.example" {
            script.end(cut(.connectFailed))
            if let wake = TickPolicy.wakeAt(script.machine) { script.now = max(script.now, wake) }
            script.feed(.tick)
        }
        #expect(script.last.url.host == "m6.example")
        script.give(script.last)
        #expect(script.prepares.count == 1)
    }

    @Test("a mirror that delivers no more at once than the overlap is asked without the overlap")
    func givesLittle() throws {
        var script = try begun(2, checksum: true)
        let most: Int64 = 40_000
        var place: Int64 = 0
        for _ in 0..<12 {
            let plan = try #require(script.plans.last { $0.source != .primary && lease($0, script) != nil })
            script.give(plan, most: most)
            place = max(plan.lease.lowerBound, plan.seam.lowerBound + most)
            script.progress[plan.id] = AttemptProgress(position: place, received: most)
            script.end(plan, .complete(.delimited))
        }
        #expect(script.notices(.sourceLeftOut).isEmpty)
        #expect(script.machine.ledger.written.count > 10 * most, "two answers at most were only compared")
    }

    @Test("a mirror that loses all its connections at the same time has failed once")
    func oneFailure() throws {
        var script = try begun(9, tries: 4)
        for _ in 0..<20 {
            for plan in script.plans where script.progress[plan.id]?.position == nil && lease(plan, script) != nil {
                script.give(plan)
            }
            for plan in script.plans where lease(plan, script) != nil {
                script.write(plan, to: max(script.progress[plan.id]?.position ?? 0, plan.lease.lowerBound + 4096))
            }
            script.now += .milliseconds(50)
            script.feed(.tick)
        }
        let count = script.plans.count
        for plan in script.plans.prefix(count) where plan.url.host == "m1.example" {
            script.end(plan, cut())
            while script.last.url.host == "m1.example", lease(script.last, script) != nil {
                let last = script.last
                script.end(last, cut(.connectFailed))
            }
        }
        #expect(script.notices(.sourceLeftOut).isEmpty)
        #expect(script.failure == nil)
    }

    @Test("mirrors ignore a claim that the file changed once the primary is gone")
    func claimOfOneThatIsGone() throws {
        var script = try begun(2)
        let mirror = script.plans[1]
        script.give(mirror)
        script.write(script.plans[0], to: 1 << 20)
        script.write(mirror, to: mirror.lease.lowerBound + 1 << 20)
        script.end(script.plans[0], cut())
        #expect(script.last.url.host == "example.org")
        script.give(script.last, tag: "\"b\"")
        script.endCancelled()
        #expect(script.last.isConfirmation)
        script.answer(404)
        script.endCancelled()
        #expect(script.failure == nil)
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.last.url.host == "m1.example")
    }

    @Test("a primary whose link expires repeatedly is asked for new links less and less often")
    func expiringLink() throws {
        var script = try begun(2)
        let mirror = script.plans[1]
        script.give(mirror)
        script.write(script.plans[0], to: 1 << 20)
        script.end(script.plans[0], cut())
        var asked = 0
        for step in 1...600 {
            script.now += .milliseconds(100)
            script.write(mirror, to: mirror.lease.lowerBound + Int64(step) * 8192)
            script.feed(.tick)
            while let plan = script.plans.last(where: { lease($0, script) != nil && $0.id != mirror.id }) {
                if plan.url.host == "m1.example" {
                    script.end(plan, cut(.connectFailed))
                } else if plan.url.host == "cdn.example" {
                    asked += 1
                    script.answer(plan, 403)
                } else {
                    script.answer(plan, 302, [("Location", "https://cdn.example/signed?\(asked)")])
                }
                script.endCancelled()
            }
            if script.ending != nil { break }
        }
        #expect(asked <= 12, "\(asked) times in a minute")
        #expect(script.failure == nil)
    }
}
