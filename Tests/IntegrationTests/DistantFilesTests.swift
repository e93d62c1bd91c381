import FaultServer
import Foundation
import Synchronization
import Testing

/// Tests small files over connections of their own from a host with slow answers: as many at once as pay off. These
/// tests run alone (`scripts/run-tests`).
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DistantFilesTests {
    private static let length: Int64 = 3000

    /// Counts the concurrent requests.
    private final class Crowd: Sendable {
        private let state = Mutex([Int]())

        func note(_ count: Int) { state.withLock { $0.append(count) } }

        /// The number of concurrent requests at each request.
        var counts: [Int] { state.withLock { $0 } }
        var most: Int { counts.max() ?? 0 }
        var lately: Int { counts.suffix(100).max() ?? 0 }
    }

    /// The target of another site's redirects.
    private final class Target: Sendable {
        let url = Mutex("")
    }

    private let target = Target()

    /// Fetches `count` files whose answers take `wait`; `fault`, if not `nil`, makes the answers, and `other` redirects
    /// to them.
    private func fetch(
        _ count: Int, after wait: Duration, _ fault: Fault? = nil, _ options: [String] = [], from other: Site? = nil
    ) async throws -> (crowd: Crowd, requests: Int) {
        let crowd = Crowd()
        let behaviour = Behaviour { context in
            crowd.note(context.request.concurrent)
            let reply = fault?.make(context) ?? context.correct
            return Reply([.pause(wait)] + reply.steps)
        }
        return try await Site.with(try await Site(length: Self.length, behaviour)) { site in
            target.url.withLock { $0 = site.server.url(Site.path) }
            let first = (other ?? site).server.url(Site.path)
            let lines = (0..<count).map { "\(first)?\($0)\n output=f\($0)\n" }
            try site.scratch.write("list", lines.joined())
            let result = try await ChildRun.run(
                [ChildRun.tow, "get", "--retry-wait", "0.5", "--max-tries", "10", "--progress", "plain"] + options
                    + ["-i", site.scratch.file("list")], directory: site.scratch.path)
            #expect(result.status == 0, "\(result.stderr.suffix(2000))")
            let content = Data(Version(length: Self.length).content.bytes(in: 0..<Self.length))
            for number in 0..<count {
                let file = FileManager.default.contents(atPath: site.scratch.file("f\(number)"))
                #expect(file == content, "f\(number)")
            }
            return (crowd, site.requests.count)
        }
    }

    @Test func manyAreUnderWay() async throws {
        let (crowd, requests) = try await fetch(300, after: .milliseconds(100))
        #expect((33...64).contains(crowd.most) && requests == 300, "\(crowd.most)")
    }

    @Test func manyAreLedElsewhere() async throws {
        let leading = Behaviour { [target] context in
            let location = "\(target.url.withLock { $0 })?\(context.request.query ?? "")"
            return Reply([.pause(.milliseconds(50))] + Reply(302, [("Location", location)]).steps)
        }
        let other = try await Site(length: 1, leading)
        let (crowd, requests) = try await Site.with(other) {
            try await fetch(300, after: .milliseconds(100), from: $0)
        }
        #expect((33...64).contains(crowd.most) && requests == 300, "\(crowd.most), \(requests)")
    }

    @Test func whatTheUserSaysStays() async throws {
        let (crowd, _) = try await fetch(150, after: .milliseconds(100), nil, ["-j", "12"])
        #expect(crowd.most == 12)
    }

    @Test func nearbySixteenDo() async throws {
        let (crowd, requests) = try await fetch(300, after: .milliseconds(5))
        #expect((6...16).contains(crowd.most) && requests == 300, "\(crowd.most)")
    }

    /// A server that handles a limited number at once, and lets the others wait, is soon asked for no more.
    @Test func moreThatBringNothingAreTakenBack() async throws {
        let gates = Mutex([ContinuousClock.Instant](repeating: .now, count: 16))
        let queue = Fault("queue") { context in
            // The first of sixteen servers to be free handles the next request.
            let wait = gates.withLock { gates in
                let next = gates.indices.min { gates[$0] < gates[$1] }!
                gates[next] = max(gates[next], .now) + .milliseconds(100)
                return gates[next] - .now
            }
            return Reply([.pause(wait)] + context.correct.steps)
        }
        let (crowd, _) = try await fetch(600, after: .zero, queue)
        #expect(crowd.most > 33 && crowd.lately <= 32, "\(crowd.most), \(crowd.lately)")
    }

    /// A server that refuses more than a number, by an answer or by a reset, is soon asked for no more.
    @Test(arguments: [Fault.connectionLimit(24), .connectionLimitByReset(24)])
    func whoRefusesThemIsAskedForLess(_ fault: Fault) async throws {
        let (crowd, requests) = try await fetch(400, after: .milliseconds(80), fault)
        #expect(
            crowd.most > 24 && crowd.lately <= (fault.name == "connectionLimit" ? 16 : 24),
            "\(crowd.most), \(crowd.lately)")
        #expect(requests < 650, "\(requests)")
    }

    /// A server that refused requests is not asked for as many again, however long the list is.
    @Test(.enabled(if: getenv("TOWLINE_TORTURE") != nil)) func whatWasTooMuchIsNotTriedAgain() async throws {
        let (crowd, _) = try await fetch(7000, after: .milliseconds(80), .connectionLimit(24))
        #expect(crowd.most > 24 && crowd.counts.dropFirst(1000).max() == 16, "\(crowd.most)")
    }
}
