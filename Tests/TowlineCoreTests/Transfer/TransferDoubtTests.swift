import Testing
import TowlineCore

/// Whose bytes are right, where sources have different ones.
@Suite("Sources that are doubted")
struct TransferDoubtTests {
    private static let length: Int64 = 64 << 20
    private static let sum = "sha256:" + String(repeating: "ab", count: 32)

    /// The primary has answered and brought a MiB, the mirrors have answered.
    private func begun(_ connections: Int, checksum: Bool = true, mirrors: Int = 1) throws -> TransferScript {
        var script = try TransferScript { terms in
            terms.connections = connections
            terms.mirrors = (1...mirrors).compactMap { try? HTTPURL(parsing: "https://m\($0).example/file.iso") }
            if checksum { terms.checksum = try? Checksum(parsing: Self.sum) }
        }
        script.feed(.begin(nil))
        answer(script.last, in: &script)
        script.feed(.prepared)
        script.write(script.plans[0], to: 1 << 20)
        for plan in script.plans.dropFirst() { answer(plan, in: &script) }
        return script
    }

    private func answer(_ plan: AttemptPlan, in script: inout TransferScript) {
        let upper = min(plan.lease.upperBound, Self.length) - 1
        let range = "bytes \(plan.lease.lowerBound - plan.overlap)-\(upper)/\(Self.length)"
        script.answer(plan, 206, [("Content-Range", range), ("ETag", "\"a\"")])
    }

    private func comparisons(_ script: TransferScript) -> [AttemptPlan] { script.plans.filter(\.isComparison) }

    /// All that is asked for comes, except that samples are found to be as said.
    private func bringAll(_ script: inout TransferScript, sample: AttemptResult = .complete(.delimited)) {
        let begun = verifications(script)
        for _ in 0..<50 where verifications(script) == begun && script.ending == nil {
            for plan in script.plans where script.progress[plan.id]?.position == nil {
                guard script.machine.ledger.lease(of: plan.id) != nil else { continue }
                answer(plan, in: &script)
                if script.prepares.count > script.prepared { script.feed(.prepared) }
            }
            for plan in script.plans {
                guard let lease = script.machine.ledger.lease(of: plan.id) else { continue }
                if plan.isComparison {
                    compare(plan, in: &script, sample)
                } else {
                    script.write(plan, to: min(lease.upperBound, Self.length))
                }
            }
            script.now += .seconds(1)
            script.feed(.tick)
            for plan in script.plans where script.machine.ledger.lease(of: plan.id)?.isEmpty == true {
                script.end(plan, .complete(.delimited))
            }
            for case .cancel(let id) in script.actions where script.progress[id] != nil {
                script.feed(.ended(id, .cancelled))
            }
        }
    }

    private func verifications(_ script: TransferScript) -> Int {
        script.actions.count { if case .verify = $0 { true } else { false } }
    }

    private func compare(_ plan: AttemptPlan, in script: inout TransferScript, _ result: AttemptResult) {
        script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: plan.overlap)
        script.end(plan, result)
    }

    private func mismatch(_ script: inout TransferScript) throws {
        let sum = try Checksum(parsing: Self.sum)
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: sum, found: nil)]))
        script.endCancelled()
    }

    @Test("each mirror is asked once for bytes that the primary has just brought", arguments: [true, false])
    func sample(checksum: Bool) throws {
        var script = try begun(4, checksum: checksum, mirrors: 2)
        #expect(Set(comparisons(script).map(\.url.host)) == ["m1.example", "m2.example"])
        let size: Int64 = checksum ? 64 << 10 : 16 << 10
        for plan in comparisons(script) {
            #expect(plan.field("Range") == "bytes=\((1 << 20) - size)-\((1 << 20) - 1)")
            #expect(plan.field("If-Range") == (checksum ? nil : "\"a\""))
            answer(plan, in: &script)
            compare(plan, in: &script, .complete(.delimited))
        }
        script.write(script.plans[0], to: 2 << 20)
        script.feed(.tick)
        #expect(comparisons(script).count == 2)
        #expect(script.notices(.sourceLeftOut).isEmpty)
    }

    @Test("nobody is compared with less than a sample, and who has not answered is not asked for one")
    func tooEarly() throws {
        var script = try TransferScript { terms in
            terms.connections = 2
            terms.mirrors = [try? HTTPURL(parsing: "https://m1.example/file.iso")].compactMap(\.self)
            terms.checksum = try? Checksum(parsing: Self.sum)
        }
        script.feed(.begin(nil))
        answer(script.last, in: &script)
        script.feed(.prepared)
        script.write(script.plans[0], to: 1 << 20)
        script.feed(.tick)
        #expect(comparisons(script).isEmpty)
        script.write(script.plans[0], to: 1 << 15)
        answer(script.plans[1], in: &script)
        #expect(comparisons(script).count == 1, "what was written stays written")
    }

    @Test(
        "one that gives less than it was asked for, or more, is not asked for ever",
        arguments: [100, 64 << 10, 80 << 10])
    func oddSample(_ count: Int64) throws {
        var script = try begun(2)
        let plan = try #require(comparisons(script).first)
        let lower = plan.lease.lowerBound - plan.overlap
        let upper = min(lower + count, plan.lease.upperBound) - 1
        script.answer(plan, 206, [("Content-Range", "bytes \(lower)-\(upper)/\(Self.length)"), ("ETag", "\"a\"")])
        #expect(script.machine.ledger.lease(of: plan.id)?.isEmpty == true)
        script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: count)
        script.end(plan, count > 64 << 10 ? .stopped : .complete(.delimited))
        for _ in 0..<5 { script.feed(.tick) }
        #expect(comparisons(script).count == 1)
        #expect(script.notices(.sourceLeftOut).isEmpty)
    }

    @Test("what the primary does with an overlap says nothing of a sample")
    func overlapAlone() throws {
        var script = try TransferScript { terms in
            terms.connections = 2
            terms.mirrors = [try? HTTPURL(parsing: "https://m1.example/file.iso")].compactMap(\.self)
        }
        script.feed(.begin(nil))
        answer(script.last, in: &script)
        script.feed(.prepared)
        script.write(script.plans[0], to: 1 << 20)
        script.end(script.plans[0], cut())
        let seam = try #require(script.plans.last { $0.url.host == "example.org" && $0.overlap > 0 })
        let range = "bytes \(seam.lease.lowerBound - seam.overlap)-\(seam.lease.lowerBound - 1)/\(Self.length)"
        script.answer(seam, 206, [("Content-Range", range), ("ETag", "\"a\"")])
        script.progress[seam.id] = AttemptProgress(position: seam.lease.lowerBound, received: seam.overlap)
        script.end(seam, .complete(.delimited))
        let next = try #require(script.plans.last { $0.url.host == "example.org" })
        #expect(next.overlap == 0)
        answer(next, in: &script)
        script.write(next, to: next.lease.lowerBound + 1 << 20)
        for plan in script.plans where plan.url.host == "m1.example" { answer(plan, in: &script) }
        let plan = try #require(comparisons(script).first)
        #expect(plan.overlap == 16 << 10)
    }

    @Test("a sample of a version that is gone says nothing of the next")
    func sampleOfAnotherVersion() throws {
        var script = try begun(2)
        let plan = try #require(comparisons(script).first)
        answer(plan, in: &script)
        compare(plan, in: &script, .complete(.delimited))
        script.feed(.partLost(reason: "deleted"))
        script.endCancelled()
        let anew = script.last
        answer(anew, in: &script)
        script.feed(.prepared)
        script.write(anew, to: 1 << 20)
        for plan in script.plans where script.progress[plan.id]?.position == nil { answer(plan, in: &script) }
        script.feed(.tick)
        #expect(comparisons(script).count == 2)
    }

    @Test(
        "a checksum that is wrong is not hidden by a mirror that is not there",
        arguments: [404, 503, 0], [20, 0])
    func wrongSumAndNobodyElse(_ status: Int, _ tries: Int) throws {
        var script = try TransferScript { terms in
            terms.connections = 1
            terms.retry = RetryPolicy(maxTries: tries)
            terms.mirrors = [try? HTTPURL(parsing: "https://m1.example/file.iso")].compactMap(\.self)
            terms.checksum = try? Checksum(parsing: Self.sum)
        }
        script.feed(.begin(nil))
        answer(script.last, in: &script)
        script.feed(.prepared)
        bringAll(&script)
        try mismatch(&script)
        #expect(script.ending == nil, "the mirror was never asked")
        for _ in 0..<20 where script.ending == nil {
            script.now += .seconds(20)
            script.feed(.tick)
            script.endCancelled()
            guard script.progress[script.last.id] != nil else { continue }
            if status == 0 { script.end(cut(.connectFailed)) } else { script.answer(status) }
            script.endCancelled()
        }
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.failure?.message.hasPrefix("https://example.org/file.iso: the bytes do not match") == true)
        #expect(script.actions.contains(.setAside))
        #expect(script.plans.count { $0.url.host == "m1.example" } <= 3)
    }

    @Test("a mirror with other bytes is left out at once, with or without a checksum", arguments: [true, false])
    func differs(checksum: Bool) throws {
        var script = try begun(2, checksum: checksum)
        let mirror = script.plans[1]
        script.write(mirror, to: mirror.lease.lowerBound + 5000)
        let plan = try #require(comparisons(script).first)
        answer(plan, in: &script)
        compare(plan, in: &script, .overlapDiffers)
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.fresh.contains(.cancel(mirror.id)))
        #expect(script.machine.ledger.written.ranges == [ByteRange(0, 1 << 20)])
        bringAll(&script)
        #expect(script.plans.last?.url.host == "example.org")
    }

    @Test("a primary that the checksum refutes gives way to a mirror with other bytes, and to no other")
    func replaced() throws {
        var script = try begun(2)
        bringAll(&script, sample: .overlapDiffers)
        #expect(verifications(script) == 1)
        let plans = script.plans.count
        try mismatch(&script)
        #expect(script.notices(.restarted).count == 1)
        bringAll(&script)
        #expect(script.plans.dropFirst(plans).allSatisfy { $0.url.host == "m1.example" })
        #expect(script.prepares.last?.isReplacement == true)
        script.feed(.verified(mismatches: []))
        #expect(script.actions.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("where all are refuted in turn, each was asked for the whole once")
    func allWrong() throws {
        var script = try begun(2, mirrors: 2)
        for _ in 0..<10 where script.ending == nil {
            bringAll(&script, sample: .overlapDiffers)
            try mismatch(&script)
        }
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.notices(.restarted).count == 2)
        #expect(script.actions.contains(.setAside))
        #expect(verifications(script) <= 4, "once more where a mirror brought bytes before its sample")
    }

    @Test("once another has begun the file anew, it fails for its own reasons")
    func failsLater() throws {
        var script = try begun(1)
        bringAll(&script, sample: .overlapDiffers)
        try mismatch(&script)
        let mirror = script.last
        #expect(mirror.url.host == "m1.example")
        answer(mirror, in: &script)
        script.feed(.prepared)
        script.write(mirror, to: 1 << 20)
        script.feed(.partLost(reason: "deleted"))
        script.endCancelled()
        for _ in 0..<40 where script.ending == nil {
            script.now += .seconds(20)
            script.feed(.tick)
            script.endCancelled()
            if script.progress[script.last.id] != nil { script.answer(404) }
            script.endCancelled()
        }
        #expect(script.failure?.code == .notFound)
        #expect(!script.actions.contains(.setAside))
    }

    @Test("a mirror with the same sample would only bring the same again")
    func sameSample() throws {
        var script = try begun(2)
        bringAll(&script)
        #expect(comparisons(script).count == 1)
        try mismatch(&script)
        #expect(script.ending == nil, "what came from the mirror comes from the primary first")
        bringAll(&script)
        try mismatch(&script)
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.notices(.restarted).isEmpty)
    }
}
