import Testing

@testable import TowlineCore

/// Tests the target of a redirect, and the request that is sent there.
@Suite struct TransferRedirectTests {
    static let followed = [
        "https://cdn.example.net/x", "https://example.org:8443/x", "https://example.org/y", "/z?signed=1", "w",
        TransferScript.url,
    ]
    static let refused = ["http://example.org/file.iso", "file:///etc/passwd", ""]

    /// Answers a machine's first request with a redirect, and returns the target that a small file's run would use,
    /// too.
    private static func led(
        to target: String, _ sharing: ConnectionSharing = .none
    ) throws -> (script: TransferScript, target: HTTPURL?) {
        var script = try TransferScript {
            $0.userFields = HTTPFields([("X-Token", "1"), ("User-Agent", "me")])
            $0.hasUser = true
        }
        script.elsewhere.sharing = sharing
        script.feed(.begin(nil))
        script.answer(302, [("Location", target)])
        let led = SmallFilePolicy.target(
            of: .redirect(location: target), after: script.plans[0], script.machine.terms)
        return (script, led)
    }

    /// The request after the redirect of a small file's request is the one that a machine would send.
    @Test(arguments: followed, [ConnectionSharing.none, .one, .several])
    func theRequestIsTheMachines(_ target: String, _ sharing: ConnectionSharing) throws {
        let (script, led) = try Self.led(to: target, sharing)
        let plan = SmallFilePolicy.plan(
            script.machine.terms, at: try #require(led), after: script.plans[0], id: script.last.id, sharing: sharing)
        #expect(script.plans.count == 2 && plan == script.last)
    }

    /// netrc entries apply over http only if no https URL came before.
    @Test(arguments: [
        (["http://a.test/", "http://b.test/"], true), (["https://a.test/", "http://b.test/"], false),
        (["http://a.test/", "https://b.test/", "http://c.test/"], false),
        (["http://a.test/", "https://b.test/", "https://c.test/"], true),
        (["https://a.test/", "http://a.test/", "https://a.test/"], true),
    ])
    func netrc(_ urls: [String], _ isAllowed: Bool) throws {
        let urls = try urls.map { try HTTPURL(parsing: $0) }
        let terms = TransferTerms(source: urls[0])
        var plan = SmallFilePolicy.plan(terms, id: AttemptID(1), sharing: .none)
        #expect(plan.sendsNetrc)
        for url in urls.dropFirst() {
            plan = SmallFilePolicy.plan(terms, at: url, after: plan, id: AttemptID(1), sharing: .none)
        }
        #expect(plan.sendsNetrc == isAllowed)
    }

    /// Neither implementation follows a redirect that the other refuses.
    @Test(arguments: refused) func whatIsRefused(_ target: String) throws {
        let (script, led) = try Self.led(to: target)
        #expect(script.plans.count == 1 && led == nil)
    }

    @Test func otherAnswersLeadNowhere() throws {
        let terms = TransferTerms(source: try HTTPURL(parsing: TransferScript.url))
        let plan = SmallFilePolicy.plan(terms, id: AttemptID(1), sharing: .none)
        #expect(SmallFilePolicy.target(of: .webPage(reason: ""), after: plan, terms) == nil)
        #expect(SmallFilePolicy.target(of: .complete(length: 3), after: plan, terms) == nil)
    }

    /// A transfer that resumes has its connections already: after a redirect it neither shares, like a small file, nor
    /// waits.
    @Test(arguments: [(ConnectionSharing.one, true), (.none, false)])
    func whoGoesOnGoesOn(_ sharing: ConnectionSharing, _ mayConnect: Bool) throws {
        var script = try TransferScript()
        (script.elsewhere.sharing, script.elsewhere.mayConnect) = (sharing, mayConnect)
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(
                        completeLength: TransferScript.length, entityTag: EntityTag(fieldValue: "\"a\"")),
                    written: ByteRangeSet([ByteRange(0, 1 << 20)]))))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        #expect(script.plans.count == 2 && script.last.sharing == .none)
        #expect(script.last.url.description == "https://cdn.example.net/x" && script.last.chain.count == 1)
        #expect(script.last.lease.lowerBound == 1 << 20)
    }

    /// A host that asked for a wait is not asked earlier, whichever redirect names it. The wait costs no try.
    @Test(arguments: [ConnectionSharing.one, .none]) func whoIsLeftAloneIsNotLedTo(_ sharing: ConnectionSharing) throws
    {
        var script = try TransferScript { $0.options.maximumTries = 1 }
        (script.elsewhere.sharing, script.elsewhere.notBefore) = (sharing, .seconds(5))
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        // From here on, the context describes the target host.
        (script.hostNotBefore, script.sharing) = (.seconds(5), sharing)
        script.endCancelled()
        #expect(script.plans.count == 1)
        for second in 1...4 {
            script.now = .seconds(second)
            script.feed(.tick)
        }
        #expect(script.plans.count == 1 && script.machine.wait(now: .seconds(4)) == .seconds(1))
        script.now = .seconds(5)
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.url.host == "cdn.example.net" && script.ending == nil)
    }

    /// A transfer waits for its turn at a full target host. After a while it requests the first URL again for a new
    /// link.
    @Test(arguments: [ConnectionSharing.one, .none], [false, true])
    func whoHasNoRoomThereWaits(_ sharing: ConnectionSharing, _ isLong: Bool) throws {
        var script = try TransferScript()
        script.sharing = sharing
        script.elsewhere.mayConnect = false
        script.feed(.begin(nil))
        let source = script.last.url
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        #expect(script.plans.count == 1 && script.machine.waitsForTurn)
        #expect(script.machine.nextOrigin != source.origin)
        // From here on, the context describes the target host.
        (script.sharing, script.mayConnect) = (.none, false)
        script.endCancelled()
        script.now = isLong ? .seconds(11) : .seconds(9)
        script.feed(.tick)
        #expect(script.plans.count == 1 && script.machine.waitsForTurn)
        script.mayConnect = true
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.sharing == .none && !script.machine.waitsForTurn)
        if isLong {
            #expect(script.last.url == source && script.last.chain.isEmpty)
            #expect(script.machine.nextOrigin == source.origin)
            script.elsewhere.mayConnect = true
            script.answer(302, [("Location", "https://cdn.example.net/x")])
        }
        #expect(script.last.url.description == "https://cdn.example.net/x" && script.last.chain == [source])
        script.endCancelled()
        script.give(script.last)
        script.feed(.prepared)
        #expect(script.machine.phase == .running && script.machine.work.liveCount == 1)
    }

    /// Streams may have become free meanwhile.
    @Test func whoWaitsMayShareThen() throws {
        var script = try TransferScript()
        script.elsewhere.mayConnect = false
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        (script.sharing, script.mayConnect) = (.one, false)
        script.endCancelled()
        #expect(script.plans.count == 2 && script.last.sharing == .one && script.last.chain.count == 1)
    }

    /// The target of a redirect is requested at once over its own connection if its file is not small, or if the shared
    /// connection broke: links may be valid only once.
    @Test(arguments: [false, true]) func whatIsNotSharedIsAskedForWhereItIs(_ isBroken: Bool) throws {
        var script = try TransferScript()
        script.sharing = .one
        script.elsewhere.sharing = .one
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        script.endCancelled()
        #expect(script.plans.count == 2 && script.last.sharing == .one)
        let first = script.last
        script.mayConnect = false
        script.end(isBroken ? .failed(TransportFailure(.closedBeforeHead, "gone")) : .needsOwnConnection)
        #expect(script.plans.count == 2 && script.machine.waitsForTurn)
        #expect(script.machine.nextOrigin == first.url.origin)
        script.mayConnect = true
        script.feed(.tick)
        #expect(script.plans.count == 3 && script.last.sharing == .none)
        #expect(script.last.url == first.url && script.last.chain == first.chain)
    }

    /// A response to a cancelled attempt decides nothing.
    @Test func whoWasDismissedIsNotLed() throws {
        let verdict = ResponseVerdict.redirect(location: "https://cdn.example.net/x")
        var script = try TransferScript()
        script.feed(.begin(nil))
        #expect(
            script.machine.leads(script.last.id, verdict) == (try HTTPURL(parsing: "https://cdn.example.net/")).origin)
        #expect(script.machine.leads(script.last.id, .webPage(reason: "")) == nil)
        // The server may answer the same URL differently the second time, but not before the time it asked for.
        let source = try HTTPURL(parsing: TransferScript.url)
        #expect(script.machine.leads(script.last.id, .redirect(location: TransferScript.url)) == source.origin)
        let later = ResponseVerdict.redirect(location: TransferScript.url, retryAfter: .seconds(7))
        #expect(script.machine.leads(script.last.id, later) == nil)
        script.feed(.stop)
        #expect(script.machine.leads(script.last.id, verdict) == nil)
    }

    /// A mirror that replaces a redirected URL is requested directly.
    @Test func aMirrorIsNotLed() throws {
        var script = try TransferScript(mirrors: 1, connections: 1, checksum: true, tries: 3)
        script.elsewhere.mayConnect = false
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        #expect(script.machine.sources.redirects.pending != nil)
        _ = script.machine.sources.promote(0, &script.machine.evidence, &script.machine.work)
        #expect(
            script.machine.sources.redirects.pending == nil
                && script.machine.nextOrigin.description.contains("m1.example"))
    }

    /// The end of a chunked body does not override the length known from a failed response with the same validator.
    @Test func aShorterOneOfTheSameTagIsNotWhole() throws {
        var script = try TransferScript()
        script.feed(.begin(nil))
        script.answer(200, [("Content-Length", "50000"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.end(.failed(TransportFailure(.bodyCut, "reset")))
        script.now = .seconds(100)
        script.feed(.tick)
        script.answer(200, [("Transfer-Encoding", "chunked"), ("ETag", "\"a\"")])
        script.feed(.prepared)
        script.write(to: 30_000)
        script.end(.complete(.delimited))
        #expect(script.machine.phase == .running && script.machine.ledger.completeLength == 50_000)
    }

    /// A transfer that is stopped while it waits for a host ends.
    @Test func whoWaitsStops() throws {
        var script = try TransferScript()
        script.elsewhere.mayConnect = false
        script.feed(.begin(nil))
        script.mayConnect = false
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        script.endCancelled()
        script.feed(.stop)
        #expect(script.machine.phase == .ended)
    }

    /// A transfer continues at once if the target host has room, or has streams to share.
    @Test(arguments: [(ConnectionSharing.none, true), (.one, false), (.several, false)])
    func whoHasRoomGoesOn(_ sharing: ConnectionSharing, _ mayConnect: Bool) throws {
        var script = try TransferScript()
        script.sharing = .several
        script.elsewhere.sharing = sharing
        script.elsewhere.mayConnect = mayConnect
        script.feed(.begin(nil))
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        #expect(script.plans.count == 2 && script.last.sharing == sharing)
    }

    static let bodies: [(ResponseHead.Version, [(String, String)], Int64?)] = [
        (.http1_1, [("Content-Length", "0")], 0),
        (.http1_1, [("Content-Length", "16384")], 16384),
        (.http1_1, [("Content-Length", "16385")], nil),
        (.http1_1, [("Content-Length", "-1")], nil),
        (.http1_1, [("Content-Length", "5, 6")], nil),
        (.http1_1, [], nil),
        (.http1_1, [("Transfer-Encoding", "chunked")], 16384),
        (.http2, [], 16384),
        (.http2, [("Content-Length", "9")], 9),
        (.http2, [("Content-Length", "99999")], nil),
    ]

    /// The limit of the bytes that are drained from an unwanted answer, so that its connection can be reused.
    @Test(arguments: bodies.indices) func whatIsDrained(_ index: Int) {
        let (version, fields, limit) = Self.bodies[index]
        let head = ResponseHead(status: 302, fields: HTTPFields(fields), version: version)
        #expect(DrainPolicy.limit(head) == limit)
    }
}
