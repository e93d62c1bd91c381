import Testing

@testable import TowlineCore

/// Tests the single request for a possible small file, and the answers that contain the complete file.
@Suite struct SmallFilePolicyTests {
    private static let source = "https://example.org/a%20b/file.bin?x=1"

    private static func terms(_ change: (inout TransferTerms) -> Void = { _ in }) throws -> TransferTerms {
        var terms = TransferTerms(source: try HTTPURL(parsing: source))
        change(&terms)
        return terms
    }

    private static let sum = Checksum(algorithm: .crc32c, value: [1, 2, 3, 4])

    /// A download that needs a state machine from the beginning gets one.
    @Test func notForAll() throws {
        #expect(SmallFilePolicy.suffices(for: try Self.terms()))
        #expect(SmallFilePolicy.suffices(for: try Self.terms { $0.userFields = HTTPFields([("X-Token", "1")]) }))
        #expect(SmallFilePolicy.suffices(for: try Self.terms { $0.options.checksum = Self.sum }))
        let others: [(inout TransferTerms) throws -> Void] = [
            { $0.mirrors = [try HTTPURL(parsing: "http://b.test/")] },
            { $0.isStream = true },
            { $0.userFields = HTTPFields([("range", "bytes=5-")]) },
        ]
        for change in others {
            var terms = try Self.terms()
            try change(&terms)
            #expect(!SmallFilePolicy.suffices(for: terms))
        }
    }

    /// The request is the one that the state machine would send.
    @Test(arguments: [ConnectionSharing.none, .one, .several], [false, true])
    func theRequestIsTheMachines(_ sharing: ConnectionSharing, _ isUsers: Bool) throws {
        let terms = try Self.terms {
            guard isUsers else { return }
            $0.userFields = HTTPFields([("X-Token", "1"), ("User-Agent", "me"), ("Range", "bytes=5-")])
            $0.hasUser = true
            $0.options.connections = 3
            $0.options.checksum = Self.sum
        }
        var machine = TransferStateMachine(terms: terms, firstID: 77)
        let actions = machine.handle(.begin(nil), TransferContext(now: .seconds(5), sharing: sharing))
        #expect(actions == [.start(SmallFilePolicy.plan(terms, id: AttemptID(77), sharing: sharing))])
    }

    /// A request that does not ask for a checksum differs in nothing else.
    @Test(arguments: [ConnectionSharing.none, .several], [false, true])
    func withoutTheWish(_ sharing: ConnectionSharing, _ isUsers: Bool) throws {
        let terms = try Self.terms {
            if isUsers { $0.userFields = HTTPFields([("X-Token", "1"), ("Accept", "text/*")]) }
        }
        let usual = SmallFilePolicy.plan(terms, id: AttemptID(7), sharing: sharing).fields.lines
        let plan = SmallFilePolicy.plan(terms, id: AttemptID(7), sharing: sharing, wantsDigest: false)
        #expect(usual.contains { $0.name == "Want-Repr-Digest" })
        #expect(plan.fields.lines == usual.filter { $0.name != "Want-Repr-Digest" })
    }

    @Test func answersWithAChecksum() throws {
        let digest = ("Repr-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:")
        let range = [("Content-Range", "bytes 0-999/1000"), ("Content-Length", "1000")]
        #expect(SmallFilePolicy.hasDigest(try verdict(206, range)) == false)
        #expect(SmallFilePolicy.hasDigest(try verdict(206, range + [digest])) == true)
        #expect(SmallFilePolicy.hasDigest(try verdict(200, [("Content-Length", "1000"), digest])) == true)
        #expect(SmallFilePolicy.hasDigest(try verdict(404, [digest])) == nil)
        #expect(SmallFilePolicy.hasDigest(try verdict(302, [("Location", "/x"), digest])) == false)
        // The response to a range in the middle of a file shows nothing about the digest fields sent with the first
        // byte.
        let facts = SmallFilePolicy.file(in: try verdict(206, range))
        #expect(SmallFilePolicy.hasDigest(.partial(ByteRange(5, 9), try #require(facts))) == nil)
    }

    /// A machine that takes over the request sends no request of its own, measures the round trip from the time when
    /// the request was sent, and uses attempt IDs of its own afterwards.
    @Test func aRequestIsTakenOver() throws {
        let terms = try Self.terms()
        let plan = SmallFilePolicy.plan(terms, id: AttemptID(5), sharing: .none)
        var machine = TransferStateMachine(terms: terms, firstID: 1 << 32)
        let begun = machine.handle(.takenOver(plan, startedAt: .seconds(3)), TransferContext(now: .seconds(4)))
        #expect(begun.isEmpty && machine.phase == .running && machine.work.liveCount == 1)
        #expect(machine.handle(.tick, TransferContext(now: .seconds(4))).isEmpty)
        let verdict = try verdict(
            206, [("Content-Range", "bytes 0-999/5000"), ("Content-Length", "1000"), ("ETag", "\"a\"")])
        let answered = machine.handle(.answered(AttemptID(5), verdict), TransferContext(now: .seconds(4)))
        guard case .prepare? = answered.first else {
            Issue.record("\(answered)")
            return
        }
        #expect(machine.work.pace.roundTrip == 1)
        #expect(
            machine.handle(.prepared, TransferContext(now: .seconds(4))).contains(.proceed(AttemptID(5))))
        let end = TransferContext(
            now: .seconds(5),
            progress: [(AttemptID(5), AttemptProgress(position: 1000, received: 1000, isHeldBack: false))])
        let next = machine.handle(.ended(AttemptID(5), .complete(.delimited)), end)
        guard case .start(let second)? = next.last else {
            Issue.record("\(next)")
            return
        }
        #expect(second.id == AttemptID(1 << 32) && second.lease == ByteRange(1000, 5000))
    }

    /// Events of a request that the machine did not take over belong to no attempt and are ignored.
    @Test func anotherRequestIsNobodys() throws {
        let terms = try Self.terms()
        var machine = TransferStateMachine(terms: terms, firstID: 1 << 32)
        let context = TransferContext(now: .zero)
        _ = machine.handle(.begin(nil), context)
        #expect(machine.handle(.answered(AttemptID(5), try verdict(404, [])), context).isEmpty)
        #expect(machine.handle(.ended(AttemptID(5), .cancelled), context).isEmpty)
        #expect(machine.phase == .running && machine.work.liveCount == 1)
    }

    /// A host that has many connections, or allows few, does not get several shared connections.
    @Test(arguments: [(8, 0), (nil, 17), (nil, 16)]) func severalAreLimited(_ ceiling: Int?, _ connections: Int) throws
    {
        let terms = try Self.terms()
        let sharing = ConnectionSharing.several.limited(ceiling: ceiling, connections: connections)
        #expect(sharing == (ceiling == nil && connections == 16 ? .several : .one))
        #expect(ConnectionSharing.none.limited(ceiling: ceiling, connections: connections) == .none)
        var machine = TransferStateMachine(terms: terms, firstID: 77)
        let context = TransferContext(
            now: .zero, hostCeiling: ceiling, hostConnections: connections, sharing: .several)
        #expect(
            machine.handle(.begin(nil), context) == [
                .start(SmallFilePolicy.plan(terms, id: AttemptID(77), sharing: sharing))
            ])
    }

    private func verdict(_ status: Int, _ fields: [(String, String)]) throws -> ResponseVerdict {
        let plan = SmallFilePolicy.plan(try Self.terms(), id: AttemptID(1), sharing: .none)
        return ResponseEvaluator.verdict(
            on: ResponseHead(status: status, fields: HTTPFields(fields), version: .http1_1), to: plan.question)
    }

    @Test func wholeSmallFilesAreTaken() throws {
        let partial = try verdict(206, [("Content-Range", "bytes 0-99/100"), ("Content-Length", "100")])
        #expect(SmallFilePolicy.file(in: partial)?.representation.completeLength == 100)
        let whole = try verdict(200, [("Content-Length", "1048575"), ("ETag", "\"a\"")])
        #expect(SmallFilePolicy.file(in: whole)?.representation.completeLength == 1_048_575)
        #expect(SmallFilePolicy.file(in: whole)?.fileName == "file.bin")
        let chunks = try verdict(200, [("Transfer-Encoding", "chunked")])
        #expect(SmallFilePolicy.file(in: chunks) == nil)
        #expect(SmallFilePolicy.file(in: chunks.ending(at: 7))?.representation.completeLength == 7)
        // A known length does not change, and a part has no length of the whole.
        #expect(whole.ending(at: 7) == whole && partial.ending(at: 7) == partial)
    }

    /// The user's checksum comes first. The strongest one of the server is enough, unless it has the same algorithm.
    @Test func whatItMustHashTo() throws {
        let md5 = "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"
        let both = ("Repr-Digest", "\(md5), sha-256=:\(String(repeating: "A", count: 43))=:")
        let facts = try #require(
            SmallFilePolicy.file(in: try verdict(200, [("Content-Length", "1"), both])))
        #expect(SmallFilePolicy.checksums(besides: [], facts).map(\.algorithm) == [.sha256])
        let other = try #require(Self.sum)
        #expect(SmallFilePolicy.checksums(besides: [other], facts).map(\.algorithm) == [.crc32c, .sha256])
        let mine = try #require(Checksum(algorithm: .sha256, value: Array(repeating: 1, count: 32)))
        #expect(SmallFilePolicy.checksums(besides: [mine], facts) == [mine])
        let none = try #require(SmallFilePolicy.file(in: try verdict(200, [("Content-Length", "1")])))
        #expect(SmallFilePolicy.checksums(besides: [mine], none) == [mine])
    }

    static let others: [(Int, [(String, String)])] = [
        (206, [("Content-Range", "bytes 0-98/100")]),
        (206, [("Content-Range", "bytes 1-99/100")]),
        (206, [("Content-Range", "bytes 0-99/*")]),
        (206, [("Content-Range", "bytes 0-1048575/1048576")]),
        (200, []),
        (200, [("Content-Length", "0")]),
        (200, [("Content-Length", "1048576")]),
        (200, [("Content-Length", "100"), ("Content-Encoding", "gzip")]),
        (200, [("Content-Length", "100"), ("Content-Encoding", "utf-8")]),
        (200, [("Content-Length", "1"), ("Transfer-Encoding", "chunked")]),
        (200, [("Content-Length", "1"), ("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")]),
        (206, [("Content-Range", "bytes 0-0/1"), ("Content-Digest", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:")]),
        (416, [("Content-Range", "bytes */0")]),
        (302, [("Location", "/b")]),
        (404, [("Content-Length", "10")]),
        (503, [("Content-Length", "10")]),
    ]

    /// An answer that needs a further decision is not a complete small file.
    @Test(arguments: others.indices) func allElseIsTheMachines(_ index: Int) throws {
        let (status, fields) = Self.others[index]
        #expect(SmallFilePolicy.file(in: try verdict(status, fields)) == nil)
    }
}
