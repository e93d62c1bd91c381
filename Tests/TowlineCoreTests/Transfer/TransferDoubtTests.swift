import Testing
import TowlineCore

/// Tests which bytes are accepted if sources have different ones.
@Suite("Doubtful sources")
struct TransferDoubtTests {
    /// Returns a transfer whose primary has answered and delivered `position` bytes.
    private func asked(
        _ connections: Int, checksum: Bool = true, mirrors: Int = 1, tries: Int = 20, position: Int64 = 1 << 20
    ) throws -> TransferScript {
        var script = try TransferScript(
            mirrors: mirrors, connections: connections, checksum: checksum, tries: tries)
        script.begin(length: TransferScript.length, position: position)
        return script
    }

    /// Returns the same transfer after the mirrors have answered.
    private func begun(_ connections: Int, checksum: Bool = true, mirrors: Int = 1) throws -> TransferScript {
        var script = try asked(connections, checksum: checksum, mirrors: mirrors)
        for plan in script.plans.dropFirst() { script.give(plan) }
        return script
    }

    private func comparisons(_ script: TransferScript) -> [AttemptPlan] { script.plans.filter(\.isComparison) }

    /// Delivers all requested bytes, except that each sample ends with the result `sample`.
    private func bringAll(_ script: inout TransferScript, sample: AttemptResult = .complete(.delimited)) {
        let begun = verifications(script)
        for _ in 0..<50 where verifications(script) == begun && script.ending == nil {
            for plan in script.plans where script.progress[plan.id]?.position == nil {
                guard script.machine.ledger.lease(of: plan.id) != nil else { continue }
                script.give(plan)
                if script.prepares.count > script.prepared { script.feed(.prepared) }
            }
            for plan in script.plans {
                guard let lease = script.machine.ledger.lease(of: plan.id) else { continue }
                if plan.isComparison {
                    compare(plan, in: &script, sample)
                } else {
                    script.write(plan, to: min(lease.upperBound, TransferScript.length))
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
        let sum = try Checksum(parsing: TransferScript.sum)
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: sum, found: nil)]))
        script.endCancelled()
    }

    @Test("each mirror is asked once for bytes that the primary has just delivered", arguments: [true, false])
    func sample(checksum: Bool) throws {
        var script = try begun(4, checksum: checksum, mirrors: 2)
        #expect(Set(comparisons(script).map(\.url.host)) == ["m1.example", "m2.example"])
        let size: Int64 = checksum ? 64 << 10 : 16 << 10
        for plan in comparisons(script) {
            #expect(plan.field("Range") == "bytes=\((1 << 20) - size)-\((1 << 20) - 1)")
            #expect(plan.field("If-Range") == (checksum ? nil : "\"a\""))
            script.give(plan)
            compare(plan, in: &script, .complete(.delimited))
        }
        script.write(script.plans[0], to: 2 << 20)
        script.feed(.tick)
        #expect(comparisons(script).count == 2)
        #expect(script.notices(.sourceLeftOut).isEmpty)
    }

    @Test("a mirror that has not answered is not asked for a sample")
    func notYetKnown() throws {
        var script = try asked(2)
        script.feed(.tick)
        #expect(comparisons(script).isEmpty)
        script.give(script.plans[1])
        #expect(comparisons(script).count == 1)
    }

    @Test("no mirror is compared with less than a sample")
    func tooEarly() throws {
        var script = try asked(2, position: 1 << 15)
        script.give(script.plans[1])
        script.feed(.tick)
        #expect(comparisons(script).isEmpty)
        script.write(script.plans[0], to: 1 << 16)
        script.feed(.tick)
        #expect(comparisons(script).map(\.seam) == [ByteRange(0, 1 << 16)])
    }

    @Test(
        "a mirror that delivers less or more than requested is asked only once",
        arguments: [100, 64 << 10, 80 << 10])
    func oddSample(_ count: Int64) throws {
        var script = try begun(2)
        let plan = try #require(comparisons(script).first)
        script.give(plan, most: count)
        #expect(script.machine.ledger.lease(of: plan.id)?.isEmpty == true)
        script.progress[plan.id] = AttemptProgress(position: plan.lease.lowerBound, received: count)
        script.end(plan, count > 64 << 10 ? .stopped : .complete(.delimited))
        for _ in 0..<5 { script.feed(.tick) }
        #expect(comparisons(script).count == 1)
        #expect(script.notices(.sourceLeftOut).isEmpty)
    }

    @Test("an overlap from the primary does not count as a sample")
    func overlapAlone() throws {
        var script = try asked(2, checksum: false)
        script.end(script.plans[0], cut())
        let seam = try #require(script.plans.last { $0.url.host == "example.org" && $0.overlap > 0 })
        script.give(seam, most: seam.overlap)
        script.progress[seam.id] = AttemptProgress(position: seam.lease.lowerBound, received: seam.overlap)
        script.end(seam, .complete(.delimited))
        let next = try #require(script.plans.last { $0.url.host == "example.org" })
        #expect(next.overlap == 0)
        script.give(next)
        script.write(next, to: next.lease.lowerBound + 1 << 20)
        for plan in script.plans where plan.url.host == "m1.example" { script.give(plan) }
        let plan = try #require(comparisons(script).first)
        #expect(plan.overlap == 16 << 10)
    }

    @Test("a sample of an earlier version does not count for the next version")
    func sampleOfAnotherVersion() throws {
        var script = try begun(2)
        let plan = try #require(comparisons(script).first)
        script.give(plan)
        compare(plan, in: &script, .complete(.delimited))
        script.feed(.partLost(reason: "deleted"))
        script.endCancelled()
        let anew = script.last
        script.give(anew)
        script.feed(.prepared)
        script.write(anew, to: 1 << 20)
        for plan in script.plans where script.progress[plan.id]?.position == nil { script.give(plan) }
        script.feed(.tick)
        #expect(comparisons(script).count == 2)
    }

    @Test(
        "a checksum that is wrong is not hidden by a mirror that is not there",
        arguments: [404, 503, 0], [20, 0])
    func wrongSumAndNobodyElse(_ status: Int, _ tries: Int) throws {
        var script = try asked(1, tries: tries)
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
        let text = "https://example.org/file.iso: the downloaded file does not match"
        #expect(script.failure?.message.hasPrefix(text) == true)
        #expect(script.actions.contains(.setAside))
        // The mirror has three tries. The first refusal by a status counts only once the request is refused without
        // Range, too, and a permanent status gets one try.
        let requests = script.plans.filter { $0.url.host == "m1.example" }
        #expect(requests.count == (status == 404 ? 2 : status == 503 ? 4 : 3))
        #expect(requests.map { $0.field("Range") == nil } == (0..<requests.count).map { status > 0 && $0 % 2 == 1 })
    }

    @Test("a mirror with other bytes is left out at once, with or without a checksum", arguments: [true, false])
    func differs(checksum: Bool) throws {
        var script = try begun(2, checksum: checksum)
        let mirror = script.plans[1]
        script.write(mirror, to: mirror.lease.lowerBound + 5000)
        let plan = try #require(comparisons(script).first)
        script.give(plan)
        compare(plan, in: &script, .overlapDiffers)
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.fresh.contains(.cancel(mirror.id)))
        #expect(script.machine.ledger.written.ranges == [ByteRange(0, 1 << 20)])
        bringAll(&script)
        #expect(script.plans.last?.url.host == "example.org")
    }

    @Test("a primary that the checksum refutes is replaced by a mirror with other bytes, and by no other")
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

    @Test("if the checksum refutes every source, each was asked for the complete file once")
    func allWrong() throws {
        var script = try begun(2, mirrors: 2)
        for _ in 0..<10 where script.ending == nil {
            bringAll(&script, sample: .overlapDiffers)
            try mismatch(&script)
        }
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.notices(.restarted).count == 2)
        #expect(script.actions.contains(.setAside))
        #expect(verifications(script) <= 4, "one more verification if a mirror delivered bytes before its sample")
    }

    @Test("after another source has started the file again, the download fails for that source's reasons")
    func failsLater() throws {
        var script = try begun(1)
        bringAll(&script, sample: .overlapDiffers)
        try mismatch(&script)
        let mirror = script.last
        #expect(mirror.url.host == "m1.example")
        script.give(mirror)
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

    @Test("a mirror that answers without bytes does not hide that the checksum was wrong")
    func headsAfterRefutation() throws {
        var script = try begun(1)
        bringAll(&script, sample: .overlapDiffers)
        try mismatch(&script)
        for _ in 0..<40 where script.ending == nil {
            script.give(script.last)
            if script.prepares.count > script.prepared { script.feed(.prepared) }
            script.end(cut())
            script.now += .seconds(20)
            script.feed(.tick)
        }
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.plans.count { $0.url.host == "m1.example" && !$0.isComparison } <= 4)
    }

    @Test("a mirror with the same sample would only deliver the same bytes again")
    func sameSample() throws {
        var script = try begun(2)
        bringAll(&script)
        #expect(comparisons(script).count == 1)
        try mismatch(&script)
        #expect(script.ending == nil, "bytes of the mirror are fetched from the primary first")
        bringAll(&script)
        try mismatch(&script)
        #expect(script.failure?.code == .checksumMismatch)
        #expect(script.notices(.restarted).isEmpty)
    }

    // MARK: Whose bytes lie before the seam

    /// Lets a mirror deliver the bytes before two segments of the primary, and returns those segments' attempts.
    private func seams(_ script: inout TransferScript) -> [AttemptPlan] {
        func live(_ script: TransferScript) -> [AttemptPlan] {
            script.plans.filter { script.machine.ledger.lease(of: $0.id) != nil && !$0.isComparison }
        }
        var brought = ByteRangeSet()
        for _ in 0..<20 {
            let found = live(script).filter { $0.source == .primary && !brought.intersection($0.seam).isEmpty }
            if found.count > 1 { return found }
            script.now += .seconds(60)
            for plan in live(script).dropFirst() where !found.contains(plan) {
                if script.progress[plan.id]?.position == nil { script.give(plan) }
                if plan.source != .primary {
                    let part = ByteRange(plan.lease.lowerBound, plan.lease.lowerBound + 1 << 17)
                    brought.insert(part)
                    script.write(plan, to: part.upperBound)
                }
                script.end(plan, cut())
                while script.last.source != .primary, script.progress[script.last.id] != nil {
                    script.end(cut(.connectFailed))
                }
            }
            script.feed(.tick)
        }
        return []
    }

    @Test("two segments that discover the same wrong mirror do not restart the download")
    func foundTwice() throws {
        var script = try begun(4)
        let seams = seams(&script)
        try #require(seams.count > 1)
        script.end(seams[0], .overlapDiffers)
        #expect(script.notices(.sourceLeftOut).count == 1)
        script.end(seams[1], .overlapDiffers)
        #expect(script.notices(.restarted).isEmpty)
        #expect(script.machine.ledger.written.contains(ByteRange(0, 1 << 20)), "bytes of the primary are kept")
        bringAll(&script)
        #expect(verifications(script) == 1)
    }

    @Test("between two mirrors the one is believed whose sample was right")
    func mirrorAgainstMirror() throws {
        var script = try begun(3, mirrors: 2)
        let sample = try #require(comparisons(script).first { $0.url.host == "m1.example" })
        script.give(sample)
        compare(sample, in: &script, .complete(.delimited))
        let wrong = try #require(script.plans.first { $0.url.host == "m2.example" })
        script.write(wrong, to: wrong.lease.lowerBound + 1 << 17)
        script.end(wrong, cut())
        for _ in 0..<5 where script.last.url.host != "m1.example" { script.end(cut(.connectFailed)) }
        let right = script.last
        #expect(right.source == .mirror(0) && right.lease.lowerBound == wrong.lease.lowerBound + 1 << 17)
        script.end(right, .overlapDiffers)
        let leftOut = script.notices(.sourceLeftOut).map(\.message)
        #expect(leftOut.count == 1 && leftOut[0].hasPrefix("https://m2.example/"), "\(leftOut)")
    }
}
