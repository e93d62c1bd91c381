import Testing

@testable import TowlineCore

/// Where a redirect leads, and how what is there is asked for.
@Suite struct TransferRedirectTests {
    static let targets = [
        "https://cdn.example.net/x", "https://example.org:8443/x", "https://example.org/y", "/z?signed=1", "w",
        "http://example.org/file.iso", TransferScript.url, "file:///etc/passwd", "",
    ]

    /// What follows the redirect of a small file's request is what a machine would send.
    @Test(arguments: targets, [ConnectionSharing.none, .one, .several])
    func theRequestIsTheMachines(_ target: String, _ sharing: ConnectionSharing) throws {
        var script = try TransferScript {
            $0.userFields = HTTPFields([("X-Token", "1"), ("User-Agent", "me")])
            $0.hasUser = true
        }
        script.elsewhere.sharing = sharing
        script.feed(.begin(nil))
        script.answer(302, [("Location", target)])
        let first = script.plans[0]
        let led = SmallFilePolicy.target(
            of: .redirect(location: target), after: first, script.machine.terms)
        guard script.plans.count == 2 else {
            #expect(script.failure?.code == .redirectRefused || led == nil)
            return
        }
        let plan = SmallFilePolicy.plan(
            script.machine.terms, at: try #require(led), after: first, id: script.last.id, sharing: sharing)
        #expect(plan == script.last)
    }

    @Test func otherAnswersLeadNowhere() throws {
        let terms = TransferTerms(source: try HTTPURL(parsing: TransferScript.url))
        let plan = SmallFilePolicy.plan(terms, id: AttemptID(1), sharing: .none)
        #expect(SmallFilePolicy.target(of: .webPage(reason: ""), after: plan, terms) == nil)
        #expect(SmallFilePolicy.target(of: .complete(length: 3), after: plan, terms) == nil)
    }

    /// Streams are for what may be a small file: bytes that are held are gone on with over a connection of its own.
    @Test func whatIsGoneOnWithDoesNotShare() throws {
        var script = try TransferScript()
        script.elsewhere.sharing = .one
        script.feed(
            .begin(
                HeldDownload(
                    representation: Representation(
                        completeLength: TransferScript.length, entityTag: EntityTag(fieldValue: "\"a\"")),
                    written: ByteRangeSet([ByteRange(0, 1 << 20)]))))
        script.answer(302, [("Location", "/there")])
        #expect(script.plans.count == 2 && script.last.sharing == .none)
        #expect(script.last.lease.lowerBound == 1 << 20 && script.last.chain.count == 1)
    }

    /// From a stream of many to a connection of its own: only where there is room for one. Otherwise it is asked for once more
    /// when it is its turn.
    @Test func whoHasNoRoomThereWaits() throws {
        var script = try TransferScript()
        script.sharing = .one
        script.mayConnect = false
        script.elsewhere.mayConnect = false
        script.feed(.begin(nil))
        #expect(script.last.sharing == .one)
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        script.endCancelled()
        #expect(script.plans.count == 1 && script.machine.waitsForTurn)
        #expect(!script.actions.contains { if case .notice = $0 { true } else { false } })
        script.feed(.tick)
        #expect(script.plans.count == 1)
        script.mayConnect = true
        script.feed(.tick)
        #expect(script.plans.count == 2 && script.last.sharing == .none && script.last.chain.isEmpty)
        // It has a connection, which is one of those that are counted.
        script.answer(302, [("Location", "https://cdn.example.net/x")])
        #expect(script.plans.count == 3 && script.last.url.description == "https://cdn.example.net/x")
    }

    /// Where there is room, or streams, it goes on at once.
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

    /// What is read of an answer that nobody wants, so that its connection can be used again.
    @Test(arguments: bodies.indices) func whatIsDrained(_ index: Int) {
        let (version, fields, limit) = Self.bodies[index]
        let head = ResponseHead(status: 302, fields: HTTPFields(fields), version: version)
        #expect(DrainPolicy.limit(head) == limit)
    }
}
