import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("Facts that the transfers of a process share")
struct BoardTests {
    private let clock = ManualClock()

    private func origin(_ text: String) throws -> HTTPURL.Origin { try HTTPURL(parsing: text).origin }

    @Test("a host is not asked before the latest time that any transfer received")
    func leaveAlone() throws {
        let board = HostBoard(clock: clock.read)
        let host = try origin("https://example.org/a")
        #expect(board.notBefore(host) == nil)
        board.record(.leaveAlone(.seconds(60)), of: host)
        let first = clock.now + .seconds(60)
        #expect(board.notBefore(host) == first)
        clock.advance(.seconds(10))
        board.record(.leaveAlone(.seconds(20)), of: host)
        #expect(board.notBefore(host) == first, "a shorter wait does not shorten a longer one")
        board.record(.leaveAlone(.seconds(70)), of: host)
        #expect(board.notBefore(host) == first + .seconds(20))
    }

    @Test("hosts that only redirect use no memory, however many there are")
    func led() throws {
        let board = HostBoard(clock: clock.read)
        for number in 0..<12_000 {
            let host = try origin("https://h\(number).example/")
            #expect(board.admit(host, limit: 16))
            board.began(host)
            board.left(host)
            board.ended(host)
            board.answered(.small, from: host)
        }
        #expect(board.count <= 10_000)
    }

    @Test("overruling a host also overrules the host that it redirects to")
    func overruled() throws {
        let board = HostBoard(clock: clock.read)
        let (first, other) = (try origin("https://a.example/"), try origin("https://b.example/"))
        for host in [first, other] { board.record(.leaveAlone(.seconds(60)), of: host) }
        board.overrule(first)
        #expect(board.wait(of: first) == nil && board.wait(of: other) == .seconds(60))
        board.led(from: first, to: other)
        board.overrule(first)
        #expect(board.wait(of: other) == nil)
    }

    @Test("a host counts as working while other transfers get bytes from it")
    func work() throws {
        let board = HostBoard(clock: clock.read)
        let (host, other) = (try origin("https://a.example/"), try origin("https://b.example/"))
        board.works(from: nil, to: host)
        board.works(from: nil, to: host)
        #expect(board.working(at: host) == 2 && board.working(at: other) == 0)
        board.works(from: host, to: other)
        #expect(board.working(at: host) == 1 && board.working(at: other) == 1)
        board.works(from: host, to: nil)
        board.works(from: other, to: nil)
        #expect(board.count == 0)
    }

    @Test("a host that sent many small files without a checksum is not asked for one, until it sends one")
    func digests() throws {
        let board = HostBoard(clock: clock.read)
        let host = try origin("http://example.org/")
        func answer(_ fields: [(String, String)] = [], status: Int = 200, count: Int = 1) throws {
            let url = try HTTPURL(parsing: "http://example.org/")
            let plan = SmallFilePolicy.plan(TransferTerms(source: url), id: AttemptID(1), sharing: .none)
            let head = ResponseHead(
                status: status, fields: HTTPFields(fields + [("Content-Length", "10")]), version: .http1_1)
            let verdict = ResponseEvaluator.verdict(on: head, to: plan.question)
            for _ in 0..<count { board.answered(verdict, from: host) }
        }
        let digest = [("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:")]
        #expect(board.state(of: host).wantsDigest)
        // The same holds for a host that gets no requests in between.
        for _ in 0..<31 {
            board.began(host)
            board.ended(host)
            try answer()
        }
        #expect(board.state(of: host).wantsDigest)
        try answer(digest)
        try answer(count: 31)
        try answer(status: 404)
        #expect(board.state(of: host).wantsDigest)
        try answer()
        #expect(!board.state(of: host).wantsDigest)
        #expect(board.state(of: try origin("http://example.net/")).wantsDigest)
        try answer(count: 31)
        #expect(!board.state(of: host).wantsDigest)
        // The host gets another chance now and then.
        try answer()
        #expect(board.state(of: host).wantsDigest)
        try answer()
        #expect(!board.state(of: host).wantsDigest)
        try answer(digest)
        #expect(board.state(of: host).wantsDigest)
    }

    @Test("the fewest connections that any transfer found count, and one is always allowed")
    func ceiling() throws {
        let board = HostBoard(clock: clock.read)
        let host = try origin("http://example.org/")
        #expect(board.ceiling(host) == nil)
        board.record(.connections(4), of: host)
        board.record(.connections(9), of: host)
        #expect(board.ceiling(host) == 4)
        board.record(.connections(0), of: host)
        #expect(board.ceiling(host) == 1)
        board.record(.leaveAlone(.seconds(1)), of: host)
        #expect(board.ceiling(host) == 1, "one report does not undo the other")
    }

    @Test("a ceiling found from refusals expires, and the host is tried again")
    func ceilingsEnd() throws {
        let board = HostBoard(clock: clock.read)
        let host = try origin("http://example.org/")
        board.record(.connections(2), of: host)
        clock.advance(HostBoard.ceilingLife - .seconds(1))
        #expect(board.ceiling(host) == 2 && board.knowledge == [host: HostBoard.Knowledge(ceiling: 2)])
        clock.advance(.seconds(1))
        #expect(board.ceiling(host) == nil && board.knowledge.isEmpty)
        board.record(.connections(5), of: host)
        #expect(board.ceiling(host) == 5, "earlier findings no longer count")
    }

    @Test(
        "a report counts for its scheme, host and port, and no other",
        arguments: ["https://example.org/", "http://example.org:81/", "http://www.example.org/"])
    func origins(_ other: String) throws {
        let board = HostBoard(clock: clock.read)
        board.record(.connections(1), of: try origin("http://example.org/a?b"))
        board.record(.leaveAlone(.seconds(9)), of: try origin("http://EXAMPLE.org:80/c"))
        #expect(board.ceiling(try origin("http://example.org")) == 1)
        #expect(board.notBefore(try origin("http://example.org")) == clock.now + .seconds(9))
        #expect(board.ceiling(try origin(other)) == nil)
        #expect(board.notBefore(try origin(other)) == nil)
    }

    @Test("all reports from many threads are kept")
    func threads() async throws {
        let board = HostBoard(clock: clock.read)
        let hosts = try (0..<50).map { try origin("http://host\($0).example/") }
        await withTaskGroup(of: Void.self) { group in
            for number in 1...8 {
                group.addTask {
                    for host in hosts {
                        board.record(.connections(number), of: host)
                        board.record(.leaveAlone(.seconds(number)), of: host)
                    }
                }
            }
        }
        #expect(hosts.allSatisfy { board.ceiling($0) == 1 && board.notBefore($0) == clock.now + .seconds(8) })
    }

    @Test("a destination has one user until it is left")
    func places() {
        let board = PlaceBoard()
        let (place, other) = (Place(directory: "/d", name: "a"), Place(directory: "/e", name: "a"))
        let url = "http://example.org/1"
        #expect(!board.isTaken(place, besides: nil))
        board.occupy(place, by: url)
        #expect(board.isTaken(place, besides: nil) && board.isTaken(place, besides: "http://example.org/2"))
        #expect(!board.isTaken(place, besides: url) && !board.isTaken(other, besides: nil))
        // Two transfers of one URL are one too many.
        #expect(!board.take(place, by: url))
        board.leave(other, .overwrite)
        #expect(board.isTaken(place, besides: nil))
        board.leave(place, .overwrite)
        #expect(!board.isTaken(place, besides: nil))
    }

    @Test("a batch gives a destination that was left only to the same URL")
    func placesOfABatch() {
        let board = PlaceBoard(remembersEarlier: true)
        let place = Place(directory: "/d", name: "a")
        #expect(board.take(place, by: "http://example.org/1"))
        board.leave(place, .overwrite)
        #expect(!board.take(place, by: "http://example.org/2"))
        #expect(board.isTaken(place, besides: "http://example.org/2"))
        #expect(board.take(place, by: "http://example.org/1"))
        board.leave(place, .rename)
        #expect(board.take(place, by: "http://example.org/2"))
    }

    @Test("if many want a destination at the same time, one gets it")
    func placeForOne() async {
        let board = PlaceBoard()
        let place = Place(directory: "/d", name: "a")
        for round in 0..<50 {
            let taken = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<8 { group.addTask { board.take(place, by: "\(number)") } }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(taken == 1, "round \(round)")
            board.leave(place, .overwrite)
        }
    }

    @Test("destinations are taken and left by many threads")
    func placeThreads() async {
        let board = PlaceBoard()
        let right = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<8 {
                group.addTask {
                    (0..<200).allSatisfy { round in
                        let place = Place(directory: "/\(number)", name: "\(round)")
                        board.occupy(place, by: "\(number)")
                        defer { board.leave(place, .overwrite) }
                        return board.isTaken(place, besides: nil) && !board.isTaken(place, besides: "\(number)")
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(right)
    }

    @Test("streams of several connections count as those connections, streams of one connection do not count")
    func streams() throws {
        let board = HostBoard(clock: clock.read)
        let host = try origin("https://example.org/")
        board.began(host)
        board.began(host, .one)
        #expect(board.state(of: host).connections == 1)
        for _ in 0..<3 { board.began(host, .several) }
        #expect(board.state(of: host).connections == 4)
        for _ in 0..<100 { board.began(host, .several) }
        #expect(board.state(of: host).connections == 1 + ConnectionSharing.connections)
        for _ in 0..<101 { board.ended(host, .several) }
        board.ended(host, .one)
        board.ended(host)
        #expect(board.state(of: host).connections == 2)
    }

    @Test("facts about a host's small answers outlive its requests, and apply to that host only")
    func sharing() throws {
        let board = HostBoard(clock: clock.read)
        let (host, other) = (try origin("https://example.org/"), try origin("https://www.example.org/"))
        // The second transfer begins before the first has ended.
        #expect(board.admit(host, limit: 9) && board.admit(host, limit: 9) && board.admit(other, limit: 9))
        for _ in 0..<2 {
            board.began(host)
            board.answered(.small, from: host, after: .milliseconds(5))
            board.ended(host)
            board.left(host)
        }
        #expect(board.state(of: host).sharing == .one && board.state(of: other).sharing == .none)
        board.record(.sharingFailed, of: host)
        board.began(host)
        board.ended(host)
        for _ in 0..<3 { board.answered(.small, from: host, after: .milliseconds(5)) }
        #expect(board.state(of: host).sharing == .none, "a mistake is remembered")
        board.answered(.small, from: host, after: .milliseconds(5))
        #expect(board.state(of: host).sharing == .one)
    }

    @Test("a limited number of transfers are admitted to a host at one time, each until it ends")
    func admission() throws {
        let board = HostBoard(clock: clock.read)
        let (host, other) = (try origin("https://example.org/"), try origin("https://www.example.org/"))
        #expect(board.admit(host, limit: 2) && board.admit(host, limit: 2) && !board.admit(host, limit: 2))
        board.began(host)
        board.ended(host)
        #expect(!board.admit(host, limit: 2), "without a request, too")
        #expect(board.admit(other, limit: 2))
        board.left(host)
        #expect(board.admit(host, limit: 2) && !board.admit(host, limit: 2))
    }
}
