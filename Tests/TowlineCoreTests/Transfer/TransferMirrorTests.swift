import Testing
import TowlineCore

@Suite("A transfer from several sources")
struct TransferMirrorTests {
    private static let mirrors = ["https://one.example/file.iso", "https://two.example/file.iso"]

    private func script(_ connections: Int, checksum: Bool = false, mirrors: Int = 2) throws -> TransferScript {
        try TransferScript { terms in
            terms.options.connections = connections
            terms.mirrors = Self.mirrors.prefix(mirrors).compactMap { try? HTTPURL(parsing: $0) }
            if checksum { terms.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        }
    }

    /// Returns a transfer whose primary has answered and whose connections have all been requested.
    private func begun(
        _ connections: Int, checksum: Bool = false, mirrors: Int = 2, tag: String? = "\"a\""
    ) throws -> TransferScript {
        var script = try script(connections, checksum: checksum, mirrors: mirrors)
        script.feed(.begin(nil))
        script.give(script.last, tag: tag)
        script.feed(.prepared)
        return script
    }

    private func hosts(_ script: TransferScript) -> [String] { script.plans.map(\.url.host) }

    /// Ends every attempt with all of its segment written.
    private func bringAll(_ script: inout TransferScript) {
        for plan in script.plans {
            guard let lease = script.machine.ledger.lease(of: plan.id) else { continue }
            script.progress[plan.id] = AttemptProgress(
                position: lease.upperBound, received: lease.upperBound - plan.lease.lowerBound)
        }
        for plan in script.plans where script.machine.ledger.lease(of: plan.id) != nil { script.end(plan, .stopped) }
        script.endCancelled()
    }

    // MARK: Sharing

    @Test("the first answer comes from the primary, and the connections are divided among the sources")
    func sharesOut() throws {
        var script = try begun(3)
        #expect(hosts(script) == ["example.org", "one.example", "two.example"])
        let leases = script.plans.compactMap { script.machine.ledger.lease(of: $0.id) }
        #expect(ByteRangeSet(leases).ranges == [ByteRange(0, TransferScript.length)])
        for plan in script.plans.dropFirst() {
            #expect(plan.field("If-Range") == "\"a\"")
            #expect(!plan.sendsCredentials && !plan.sendsNetrc && !plan.sendsStoredCookies)
            script.give(plan)
        }
        bringAll(&script)
        #expect(script.actions.contains { if case .publish = $0 { true } else { false } })
    }

    @Test("a mirror that has not answered gets one connection, the others use sources that deliver bytes")
    func oneTry() throws {
        let script = try begun(8)
        #expect(hosts(script).count { $0 == "one.example" } == 1)
        #expect(hosts(script).count { $0 == "two.example" } == 1)
        #expect(hosts(script).count { $0 == "example.org" } == 6)
    }

    @Test(
        "without a checksum or a strong tag there is no proof that a mirror has the same file",
        arguments: [nil, "W/\"a\""])
    func noProof(_ tag: String?) throws {
        let script = try begun(4, tag: tag)
        #expect(Set(hosts(script)) == ["example.org"])
    }

    @Test("with a checksum a mirror need not have the same tag, but the same length")
    func checksum() throws {
        var script = try begun(3, checksum: true)
        #expect(hosts(script) == ["example.org", "one.example", "two.example"])
        #expect(script.plans.dropFirst().allSatisfy { $0.field("If-Range") == nil })
        script.give(script.plans[1], tag: "\"other\"")
        #expect(script.notices(.sourceLeftOut).isEmpty)
        script.give(script.plans[2], tag: nil, length: TransferScript.length - 1)
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.machine.ledger.lease(of: script.plans[2].id) == nil)
    }

    // MARK: Useless mirrors

    @Test("another tag does not mean another file, and the notice names the option that helps")
    func anotherTag() throws {
        var script = try begun(2, mirrors: 1)
        script.answer(script.plans[1], 200, [("Content-Length", "\(TransferScript.length)"), ("ETag", "\"b\"")])
        let notice = try #require(script.notices(.sourceLeftOut).first)
        #expect(notice.message.contains("is not used (to use such mirrors, \(Remedy.checksum))"))
        var other = try begun(2, mirrors: 1)
        other.answer(other.plans[1], 200, [("Content-Length", "5"), ("ETag", "\"b\"")])
        #expect(other.notices(.sourceLeftOut).first?.message.contains("different version of the file") == true)
    }

    @Test("a mirror whose range does not state the length of the file is refused")
    func noLength() throws {
        let script = try begun(2, checksum: true, mirrors: 1)
        let plan = script.plans[1]
        let range = "bytes \(plan.seam.lowerBound)-\(plan.lease.upperBound - 1)/*"
        let head = ResponseHead(status: 206, fields: HTTPFields([("Content-Range", range)]))
        let verdict = ResponseEvaluator.verdict(on: head, to: plan.question)
        if case .rangeRefused = verdict {} else { Issue.record("\(verdict), judged before a byte is written") }
    }

    @Test(
        "a mirror that has another file, or no file, is left out, and its segment goes to another source",
        arguments: [200, 404, 206])
    func leftOut(_ status: Int) throws {
        var script = try begun(2, mirrors: 1)
        let mirror = script.plans[1]
        if status == 206 {
            script.give(mirror, tag: "\"b\"")
        } else {
            script.answer(mirror, status, [("ETag", "\"b\""), ("Content-Length", "5")])
        }
        script.endCancelled()
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(hosts(script) == ["example.org", "one.example", "example.org"])
        #expect(script.plans[2].lease == mirror.lease)
        #expect(script.failure == nil)
    }

    @Test("a mirror with transient failures is asked again later, each time later than before")
    func postponed() throws {
        var script = try begun(2, mirrors: 1)
        script.end(script.plans[1], cut(.connectFailed))
        #expect(hosts(script) == ["example.org", "one.example", "example.org"])
        script.give(script.plans[2])
        var asked: [Duration] = []
        for step in 1...2000 {
            script.now = .milliseconds(10 * step)
            // Both attempts continue without end: only a further connection can be opened.
            for plan in [script.plans[0], script.plans[2]] {
                let lower = plan.lease.lowerBound
                if script.machine.ledger.lease(of: plan.id) != nil {
                    script.write(plan, to: lower + Int64(step) * 4096)
                }
            }
            if step.isMultiple(of: 100) { script.end(script.plans[script.plans.count - 1], cut(.bodyCut)) }
            for plan in script.started(in: script.fresh) {
                if plan.url.host == "one.example" {
                    asked.append(script.now)
                    script.end(plan, cut(.connectFailed))
                } else {
                    script.give(plan)
                }
            }
            script.feed(.tick)
        }
        #expect(asked.count >= 2 && asked.count <= 6, "\(asked)")
        #expect(script.notices(.sourceLeftOut).isEmpty)
    }

    @Test("differing bytes before a seam exclude a mirror, and its bytes are withdrawn")
    func seam() throws {
        var script = try begun(2, checksum: true, mirrors: 1)
        let mirror = script.plans[1]
        script.give(mirror)
        let middle = mirror.lease.lowerBound + 1 << 20
        script.write(mirror, to: middle)
        script.end(mirror, cut())
        let again = script.last
        #expect(again.url.host == "one.example" && again.overlap == 64 << 10)
        script.end(again, .overlapDiffers)
        #expect(script.actions.contains(.withdraw(ByteRange(mirror.lease.lowerBound, middle))))
        #expect(!script.machine.ledger.written.contains(ByteRange(mirror.lease.lowerBound, middle)))
        #expect(script.last.url.host == "example.org")
        #expect(script.failure == nil)
    }

    @Test("a checksum that does not match costs the bytes of mirrors, and no more")
    func wrongSum() throws {
        var script = try begun(2, checksum: true, mirrors: 1)
        let sum = try Checksum(parsing: TransferScript.sum)
        bringToVerification(&script)
        let theirs = ByteRangeSet(script.plans.filter { $0.url.host == "one.example" }.map(\.lease))
        let plans = script.plans.count
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: sum, found: nil)]))
        #expect(ByteRangeSet(script.machine.ledger.written.gaps(in: ByteRange(0, TransferScript.length))) == theirs)
        bringToVerification(&script)
        #expect(hosts(script).dropFirst(plans).allSatisfy { $0 == "example.org" })
        #expect(ByteRangeSet(script.plans.dropFirst(plans).map(\.lease)) == theirs)
        script.feed(.verified(mismatches: [ChecksumMismatch(expected: sum, found: nil)]))
        script.endCancelled()
        #expect(script.failure == nil, "the mirror has not answered yet")
        #expect(script.notices(.restarted).count == 1)
        #expect(script.last.url.host == "one.example")
    }

    /// Answers every attempt and delivers its bytes until the file is verified.
    private func bringToVerification(_ script: inout TransferScript) {
        var answered = script.plans.count { script.progress[$0.id]?.position != nil }
        let begun = script.actions.count { if case .verify = $0 { true } else { false } }
        for _ in 0..<50 where script.actions.count(where: { if case .verify = $0 { true } else { false } }) == begun {
            answered = max(answered, 1)
            for plan in script.plans.dropFirst(answered) where script.machine.ledger.lease(of: plan.id) != nil {
                script.give(plan)
            }
            answered = script.plans.count
            bringAll(&script)
        }
    }

    // MARK: Useless primaries

    @Test("a first URL that has no such file is replaced by the next")
    func promoted() throws {
        var script = try script(2)
        script.feed(.begin(nil))
        for _ in 0..<2 { script.refuse(404, .other) }
        #expect(script.last.url.host == "one.example")
        #expect(script.notices(.sourceLeftOut).count == 1)
        script.give(script.last)
        #expect(script.prepares.count == 1)
        script.feed(.prepared)
        #expect(script.last.url.host == "two.example", "the first is asked no more")
        #expect(!script.plans.dropFirst(2).contains { $0.url.host == "example.org" })
    }

    @Test("a first URL that cannot be reached is replaced at once, and each URL has its own tries")
    func unreachable() throws {
        var script = try script(1)
        script.feed(.begin(nil))
        var asked = 0
        while script.ending == nil, asked < 200 {
            asked += 1
            script.end(cut(.connectFailed))
            if let wake = TickPolicy.wakeAt(script.machine) { script.now = max(script.now, wake) }
            script.feed(.tick)
        }
        #expect(Array(hosts(script).prefix(3)) == ["example.org", "one.example", "two.example"])
        #expect(Dictionary(grouping: hosts(script)) { $0 }.mapValues(\.count).values.sorted() == [20, 20, 20])
        #expect(script.failure?.message.contains(". 20 attempts failed") == true)
    }

    @Test("an answer without a byte counts as a failed try", arguments: [1, 2])
    func headsAlone(_ alive: Int) throws {
        var script = try script(1, mirrors: 1)
        script.feed(.begin(nil))
        for _ in 0..<200 where script.ending == nil {
            if alive == 1, script.last.url.host == "one.example" {
                script.answer(404)
                script.endCancelled()
            } else {
                script.give(script.last)
                if script.prepares.count > script.prepared { script.feed(.prepared) }
                script.end(cut())
            }
            if let wake = TickPolicy.wakeAt(script.machine) { script.now = max(script.now, wake) }
            script.feed(.tick)
        }
        #expect(script.failure != nil)
        // A missing file is requested with Range, and without.
        #expect((20 * alive...20 * alive + 2).contains(script.plans.count))
    }

    @Test("the next source does not wait because of failures of other sources")
    func waitsOfItsOwn() throws {
        var script = try script(1)
        script.feed(.begin(nil))
        for _ in 0..<6 {
            script.end(cut(.connectFailed))
            if let wake = TickPolicy.wakeAt(script.machine) { script.now = max(script.now, wake) }
            script.feed(.tick)
        }
        #expect(Set(hosts(script).prefix(6)).count == 3)
        #expect(script.now <= .seconds(6), "one second and two, for each")
    }

    @Test("a transfer continues without a primary that fails midway, and asks it again later")
    func primaryDies() throws {
        var script = try begun(2, mirrors: 1)
        let mirror = script.plans[1]
        script.give(mirror)
        script.write(script.plans[0], to: 1 << 20)
        script.write(mirror, to: mirror.lease.lowerBound + 1 << 20)
        script.end(script.plans[0], cut())
        script.now += .milliseconds(50)
        #expect(script.last.lease.lowerBound == 1 << 20, "the primary is asked once more at once")
        if script.last.url.host == "example.org" { script.end(cut(.connectFailed)) }
        #expect(script.last.url.host == "one.example")
        #expect(script.last.lease.lowerBound == 1 << 20)
        #expect(script.failure == nil)
        let before = script.plans.count
        script.now += .seconds(2)
        script.write(mirror, to: mirror.lease.lowerBound + 2 << 20)
        script.end(script.last, cut(.bodyCut))
        script.feed(.tick)
        #expect(script.plans.count > before)
    }

    @Test("a primary that fails before a byte was written is replaced once no attempt runs at the mirrors")
    func goneBeforeAByte() throws {
        var script = try begun(2, mirrors: 1)
        let mirror = script.plans[1]
        script.give(mirror)
        script.end(script.plans[0], cut(.certificateRefused))
        #expect(script.notices(.sourceLeftOut).count == 1)
        #expect(script.failure == nil)
        let before = script.plans.count
        for plan in script.plans where script.machine.ledger.lease(of: plan.id) != nil { script.end(plan, cut()) }
        script.now += .seconds(2)
        script.feed(.tick)
        #expect(script.plans.count > before)
        #expect(script.last.url.host == "one.example" && script.last.source == .primary)
        #expect(script.last.field("Range") == "bytes=0-")
        script.end(cut(.certificateRefused))
        #expect(script.failure?.code == .untrustedServer, "no source is left")
    }

    @Test("other downloads' connections to a mirror's host count, and so does the wait that the host asked for")
    func mirrorHosts() throws {
        var script = try script(8, mirrors: 2)
        script.mirrorHosts = [
            .init(notBefore: .seconds(5), ceiling: nil, otherConnections: 0),
            .init(notBefore: nil, ceiling: 2, otherConnections: 0),
        ]
        script.feed(.begin(nil))
        script.give(script.last)
        script.feed(.prepared)
        script.give(try #require(script.plans.first { $0.url.host == "two.example" }))
        #expect(!hosts(script).contains("one.example"))
        #expect(hosts(script).count { $0 == "two.example" } <= 2)
        script.now = .seconds(6)
        script.end(script.last, cut())
        #expect(hosts(script).contains("one.example"))
    }

    /// Returns a transfer that holds the first 8 MiB and has asked the primary for the rest.
    private func resuming() throws -> TransferScript {
        var script = try script(1, mirrors: 1)
        let held = HeldDownload(
            representation: Representation(
                completeLength: TransferScript.length, entityTag: EntityTag(fieldValue: "\"a\"")),
            written: ByteRangeSet([ByteRange(0, 8 << 20)]))
        script.feed(.begin(held))
        return script
    }

    @Test("a mirror continues held bytes if the primary source is gone", arguments: [404, 503, 0])
    func resumed(_ status: Int) throws {
        var script = try resuming()
        if status == 0 { script.end(cut(.connectFailed)) } else { script.answer(status) }
        script.endCancelled()
        // Only a plain request shows that a file is missing. After a transient failure, a mirror is asked first.
        if status == 404 {
            #expect(hosts(script) == ["example.org", "example.org"] && script.last.field("Range") == nil)
            script.answer(404)
            script.endCancelled()
        }
        #expect(script.last.url.host == "one.example" && hosts(script).count { $0 == "one.example" } == 1)
        #expect(script.plans.count == (status == 404 ? 3 : 2))
        #expect(script.last.lease.lowerBound == 8 << 20 && script.last.field("If-Range") == "\"a\"")
        #expect(script.machine.ledger.written.ranges == [ByteRange(0, 8 << 20)])
        script.give(script.last)
        #expect(script.failure == nil)
    }

    @Test("a primary that refuses only ranges sends the whole file, and no mirror is asked")
    func wholeInsteadOfRange() throws {
        var script = try resuming()
        script.answer(404)
        script.endCancelled()
        let plain = script.last
        #expect(plain.url.host == "example.org" && plain.field("Range") == nil && plain.field("If-Range") == nil)
        script.answer(200, [("Content-Length", "\(TransferScript.length)"), ("ETag", "\"a\"")])
        script.endCancelled()
        script.feed(.prepared)
        // The body begins with the first byte, so none of its bytes is written after the held bytes.
        #expect(script.machine.ledger.written.isEmpty && script.prepares.count == 1)
        #expect(script.machine.ledger.lease(of: plain.id) == ByteRange(0, TransferScript.length))
        #expect(script.plans.count == 2 && script.failure == nil)
        #expect(script.notices(.sourceLeftOut).isEmpty && script.notices(.restarted).count == 1)
    }
}
