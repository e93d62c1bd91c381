import Testing
import TowlineCore

@Suite("Failures of several attempts at once, or after which bytes cannot be withdrawn")
struct TransferFailureTests {
    private static let length: Int64 = 64 << 20
    private static let mirror = "https://mirror.example/signed"

    /// Returns a transfer with four connections to a URL that a redirect from the first URL named.
    private func spreadElsewhere() throws -> TransferScript {
        var script = try TransferScript { terms in
            terms.options.connections = 4
            terms.options.maximumTries = 20
        }
        script.feed(.begin(nil))
        script.answer(302, [("Location", Self.mirror)])
        script.endCancelled()
        script.answer(206, [("Content-Range", "bytes 0-\(Self.length - 1)/\(Self.length)"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        return script
    }

    /// Ends all attempts with failures, and returns the attempts that start later.
    private func outage(_ script: inout TransferScript) -> [AttemptPlan] {
        script.write(script.plans[1], to: 1 << 20)
        for plan in script.plans { script.end(plan, cut()) }
        script.progress = [:]
        script.now = .seconds(20)
        let before = script.plans.count
        for plan in script.plans where script.machine.ledger.lease(of: plan.id) != nil {
            script.end(plan, cut(.connectFailed))
        }
        script.now = .seconds(40)
        script.feed(.tick)
        return Array(script.plans[before...])
    }

    @Test("a link that expired during an outage is one expired link, however many connections request it")
    func expiredForAll() throws {
        var script = try spreadElsewhere()
        let plans = outage(&script)
        #expect(plans.count == 4)
        #expect(plans.allSatisfy { $0.url.host == "mirror.example" })
        for plan in plans {
            script.answer(plan, 403)
            script.end(plan, .cancelled)
        }
        #expect(script.ending == nil)
        #expect(script.last.url == (try HTTPURL(parsing: TransferScript.url)))
    }

    @Test("a wait that the server asks of each connection is one wait, of the same length")
    func waitForAll() throws {
        var script = try spreadElsewhere()
        let plans = outage(&script)
        for plan in plans {
            script.answer(plan, 503, [("Retry-After", "7")])
            script.end(plan, .cancelled)
        }
        let before = script.plans.count
        let waits = script.notices(.retrying).map(\.message).filter { $0.contains("retrying in") }
        #expect(waits.count { $0.contains("retrying in 7 s") } == 1, "\(waits)")
        script.now = .seconds(46)
        script.feed(.tick)
        #expect(script.plans.count == before)
        script.now = .seconds(47)
        script.feed(.tick)
        #expect(script.plans.count > before)
    }

    @Test("a wait that a mirror asks for applies to the mirror")
    func mirrorsWait() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(302, [("Location", Self.mirror)])
        script.endCancelled()
        let mirror = script.last.url.origin
        script.answer(503, [("Retry-After", "60")])
        #expect(mirror.host == "mirror.example")
        #expect(script.actions.contains(.report(.leaveAlone(.seconds(60)), of: mirror)))
    }

    @Test(
        "a server that has no room beside others of its downloads is asked until it has, and then a few times",
        arguments: [0, 503], [3, 20])
    func crowdedOut(_ status: Int, _ tries: Int) throws {
        var script = try TransferScript { $0.options.maximumTries = tries }
        script.feed(.begin(nil))
        func refuse() {
            script.refuse(status, .closedBeforeHead)
            script.now += script.machine.wait(now: script.now) ?? .zero
            script.feed(.tick)
        }
        script.othersWork = true
        for _ in 0..<50 { refuse() }
        #expect(script.plans.count == 51 && script.ending == nil)
        // The waits last as long as with failures, and no longer.
        #expect(script.now > .seconds(40 * 45) && script.now < .seconds(50 * 75))
        script.othersWork = false
        for _ in 0..<3 { refuse() }
        #expect(script.plans.count == 53 && script.ending != nil)
    }

    @Test("simultaneous refusals of all connections are one refusal, with the same wait as a single one")
    func crowdedOutAtOnce() throws {
        func refused(besideOthers: Bool) throws -> (wait: Duration?, notices: Int) {
            var script = try spreadElsewhere()
            let plans = outage(&script)
            #expect(plans.count == 4)
            script.othersWork = besideOthers
            let before = script.notices(.retrying).count
            for plan in plans {
                script.answer(plan, 503)
                script.end(plan, .cancelled)
            }
            return (script.machine.wait(now: script.now), script.notices(.retrying).count - before)
        }
        let (alone, beside) = (try refused(besideOthers: false), try refused(besideOthers: true))
        // The third failure without bytes in a row, after two of the outage.
        #expect(alone.wait == .seconds(4) && alone.notices == 1, "\(alone)")
        #expect(beside == alone, "\(beside)")
    }

    @Test("other failures are counted, even if other transfers get bytes", arguments: [500, 0])
    func notCrowdedOut(_ status: Int) throws {
        var script = try TransferScript { $0.options.maximumTries = 3 }
        script.othersWork = true
        script.feed(.begin(nil))
        for _ in 0..<3 {
            script.refuse(status, .headTimedOut)
            script.now += .seconds(60)
            script.feed(.tick)
        }
        #expect(script.plans.count == 3 && script.ending != nil)
    }

    @Test(
        "an error names the network failure that used up the tries",
        arguments: [
            (.hostNotFound, "hostNotFound"), (.hostNotPublic, "hostNotFound"), (.connectFailed, "connectionFailed"),
            (.connectTimedOut, "connectionTimedOut"), (.closedBeforeHead, "connectionLost"),
            (.headTimedOut, "responseTimedOut"), (.malformed, "malformedResponse"), (.proxyFailed, "proxyFailed"),
            (.certificateRefused, "certificateRefused"), (.tlsFailed, "tlsFailed"),
            (.clientCertificateRefused, "clientCertificateRefused"), (.local, nil), (.addressRefused, nil),
        ] as [(TransportFailure.Kind, String?)])
    func networkFailure(_ kind: TransportFailure.Kind, _ name: String?) throws {
        var script = try TransferScript { $0.options.maximumTries = 1 }
        script.feed(.begin(nil))
        script.end(cut(kind))
        // A close before the head may refuse the range: the request was repeated without one.
        if script.failure == nil { script.end(cut(kind)) }
        #expect(script.failure != nil && script.failure?.networkFailure?.description == name)
        #expect(name.flatMap { TowlineError.NetworkFailure(name: $0) } == script.failure?.networkFailure)
    }

    @Test("no request is sent without a slot in the batch")
    func withoutPlace() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.end(.failed(TransportFailure(.connectFailed, "refused")))
        script.hasSlot = false
        script.now = .seconds(60)
        script.feed(.tick)
        #expect(script.plans.count == 1 && script.machine.waitsForTurn && script.machine.wait(now: script.now) == nil)
        script.hasSlot = true
        script.feed(.tick)
        #expect(script.plans.count == 2)
    }

    @Test("a lost part file is lost once, however long its replacement takes to begin")
    func lostOnce() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000)
        script.feed(.partLost(reason: "it was deleted"))
        script.endCancelled()
        let plan = script.last
        for second in 1...8 {
            script.now = .seconds(second)
            script.feed(.partLost(reason: "it was deleted"))
            script.feed(.tick)
        }
        #expect(script.ending == nil)
        #expect(script.last.id == plan.id)
        #expect(script.notices(.restarted).count == 1)
    }

    @Test("a stream that is redirected in the middle still needs its proof")
    func redirectedStream() throws {
        var script = try TransferScript { $0.isStream = true }
        script.begin(length: 1_000_000, position: 400_000, tag: "W/\"a\"")
        script.end(cut())
        script.answer(302, [("Location", Self.mirror)])
        script.endCancelled()
        #expect(script.last.question.rung == .weakWithOverlap)
        #expect(script.last.lease.lowerBound == 400_000)
        let prepares = script.prepares.count
        script.answer(200, [("Content-Length", "1000000"), ("ETag", "W/\"a\"")])
        script.endCancelled()
        #expect(script.prepares.count == prepares)
        #expect(script.failure != nil)
    }

    @Test("a stream whose content does not match its digest ends with a wrong checksum")
    func wrongStream() throws {
        var script = try TransferScript { $0.isStream = true }
        script.begin(length: 1_000_000, position: 400_000)
        script.end(.digestDiffers(from: 0))
        #expect(script.failure?.code == .checksumMismatch)
    }

    @Test(
        "a server that gives no more at once than what is compared is asked without that, if other proof joins",
        arguments: [("\"a\"", false), ("W/\"a\"", true), (nil, true)] as [(String?, Bool)])
    func cappedRanges(_ tag: String?, _ checksum: Bool) throws {
        var script = try TransferScript { terms in
            if checksum { terms.options.checksum = try? Checksum(parsing: TransferScript.sum) }
        }
        script.begin(length: 1_000_000, position: 400_000, tag: tag)
        script.end(cut())
        for count in 1...30 {
            let plan = script.last
            script.give(plan, tag: tag, length: 1_000_000, most: 16_384)
            script.write(plan, to: max(plan.lease.lowerBound, plan.seam.lowerBound + 16_384))
            script.end(plan, .complete(.delimited))
            #expect(script.failure == nil, "\(count)")
        }
        #expect(script.last.lease.lowerBound >= 400_000 + 28 * 16_384)
    }

    @Test("bytes before the seam are compared at any cost if they are the only proof")
    func cappedAndUnproven() throws {
        var script = try TransferScript()
        script.begin(length: 1_000_000, position: 400_000, tag: "W/\"a\"")
        script.end(cut())
        for _ in 0..<30 where script.ending == nil {
            let plan = script.last
            #expect(plan.overlap == 64 << 10)
            script.give(plan, tag: "W/\"a\"", length: 1_000_000, most: 16_384)
            script.end(plan, .complete(.delimited))
            script.now += .seconds(60)
            script.feed(.tick)
        }
        #expect(script.failure?.code == .transient)
    }

    @Test("no bytes are joined without a rung of the proof ladder")
    func withoutARung() throws {
        let known = Representation(completeLength: 1000, entityTag: EntityTag(fieldValue: "W/\"a\""))
        let question = ResponseQuestion(
            asked: .range(ByteRange(400, 1000)), rung: .nothingToJoin, known: known, holdsAllBeforeAsked: true,
            workedBefore: true, source: try HTTPURL(parsing: TransferScript.url))
        let tag = ("ETag", "W/\"a\"")
        let part = ResponseHead(status: 206, fields: HTTPFields([("Content-Range", "bytes 400-999/1000"), tag]))
        guard case .rangeRefused = ResponseEvaluator.verdict(on: part, to: question) else {
            Issue.record("a range was taken without proof")
            return
        }
        let whole = ResponseHead(status: 200, fields: HTTPFields([("Content-Length", "1000"), tag]))
        guard case .rangeIgnored = ResponseEvaluator.verdict(on: whole, to: question) else {
            Issue.record("the whole was taken for the rest")
            return
        }
    }

    /// A caller that starts the transfer again after `transient` retries without a limit. A malformed response ends the
    /// download in any case.
    @Test(
        "a notice counts attempts if the last one ends the download, and the reason of a wait never does",
        arguments: [false, true], [TransportFailure.Kind.connectFailed, .malformed])
    func counts(_ isRepeated: Bool, _ kind: TransportFailure.Kind) throws {
        var script = try TransferScript { terms in
            terms.isRepeated = isRepeated
            terms.options.maximumTries = 4
        }
        script.feed(.begin(nil))
        script.end(cut(kind))
        try expectWait(script, isCounted: !isRepeated || kind == .malformed)
    }

    @Test("a response that ends early and cannot be continued is counted in the same way", arguments: [false, true])
    func countsBreaks(_ isRepeated: Bool) throws {
        var script = try TransferScript { terms in
            terms.isRepeated = isRepeated
            terms.options.maximumTries = 4
        }
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "1000000")])
        script.feed(.prepared)
        script.write(to: 400_000)
        script.end(cut())
        try expectWait(script, isCounted: !isRepeated)
    }

    private func expectWait(_ script: TransferScript, isCounted: Bool) throws {
        var machine = script.machine
        let reason = try #require(TransferSnapshot(of: &machine, now: script.now).wait?.reason)
        let notice = try #require(script.notices(.retrying).last?.message)
        #expect(!reason.isEmpty && !reason.contains("attempt"), "\(reason)")
        #expect(notice.hasPrefix(reason) && notice.contains(", attempt 1 of ") == isCounted, "\(notice)")
    }
}
