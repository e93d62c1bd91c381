import FaultServer
import Foundation
import Synchronization
import Testing

/// Lists in which some downloads wait, for their next attempt or for their servers: the others continue meanwhile.
@Suite(.timeLimit(.minutes(2)))
struct WaitingListTests {
    private static let length: Int64 = 3000

    /// Counts concurrent requests, and remembers the queries of earlier ones.
    private final class Counter: Sendable {
        private let state = Mutex((most: 0, seen: Set<String>()))

        func note(_ count: Int) { state.withLock { $0.most = max($0.most, count) } }

        func isFirst(_ query: String) -> Bool { state.withLock { $0.seen.insert(query).inserted } }

        var most: Int { state.withLock { $0.most } }
    }

    /// Runs the list and expects its exit status.
    private func run(
        _ site: Site, _ urls: [String], _ options: [String] = [], status: Int32 = 0
    ) async throws -> ChildRun.Result {
        let lines = urls.enumerated().map { "\($1)\n  output=f\($0)\n" }
        try site.scratch.write("list", lines.joined())
        let result = try await ChildRun.run(
            [ChildRun.tow, "get", "--progress", "plain"] + options + ["-i", site.scratch.file("list")],
            directory: site.scratch.path)
        #expect(result.status == status, "\(result.stderr.suffix(2000))")
        return result
    }

    private func expectFiles(_ site: Site, _ numbers: Range<Int>, length: Int64 = Self.length) throws {
        let content = Version(length: length).content
        for number in numbers {
            #expect(try content.firstMismatch(inFile: site.scratch.file("f\(number)"), length: length) == nil)
        }
    }

    /// More downloads fail and wait than run at once: each of the others is requested before a failed one is retried.
    @Test(arguments: [[], ["-j", "2"]]) func othersGoOnMeanwhile(_ options: [String]) async throws {
        let bad = Resource(length: Self.length, behaviour: .always(.status(500)))
        try await Site.with(try await Site(length: Self.length, more: ["/bad": bad])) { site in
            let urls =
                (0..<8).map { site.server.url("/bad?\($0)") } + (8..<40).map { site.server.url(Site.path) + "?\($0)" }
            let result = try await run(
                site, urls, options + ["--max-tries", "2", "--retry-wait", "5"], status: 3)
            try expectFiles(site, 8..<40)
            let all = site.server.log.requests
            // The first request of each may be repeated at once without Range. The next one is the second try.
            var requested: Set<String> = []
            let retry = all.firstIndex {
                $0.info.field("Range") != nil && !requested.insert($0.info.query ?? "").inserted
            }
            #expect(requested.count == 40 && retry != nil, "\(all.map { "\($0.path)?\($0.info.query ?? "")" })")
            let expected = (8 * 2 + 32)...(8 * 3 + 32)
            #expect(expected.contains(all.count), "\(result.stderr.suffix(4000))")
            #expect(result.stderr.contains("32 done, 8 failed"), "\(result.stderr.suffix(2000))")
        }
    }

    /// Retried downloads also count toward the user's limit of concurrent downloads.
    @Test func whoComesBackHasItsTurn() async throws {
        let most = Counter()
        let behaviour = Behaviour { context in
            most.note(context.request.concurrent)
            let isFirst = most.isFirst(context.request.query ?? "")
            return isFirst ? Reply(500) : Reply([.pause(.milliseconds(100))] + context.correct.steps)
        }
        try await Site.with(try await Site(length: Self.length, behaviour)) { site in
            let urls = (0..<40).map { site.server.url(Site.path) + "?\($0)" }
            _ = try await run(site, urls, ["-j", "4", "--retry-wait", "0.6"])
            try expectFiles(site, 0..<40)
            #expect(most.most == 4 && site.requests.count == 80)
        }
    }

    /// With a limit of one, downloads run strictly one after the other.
    @Test func oneAtATimeWaits() async throws {
        let bad = Resource(length: Self.length, behaviour: .first(1, .status(500)))
        try await Site.with(try await Site(length: Self.length, more: ["/bad": bad])) { site in
            let urls = [site.server.url("/bad"), site.server.url(Site.path)]
            _ = try await run(site, urls, ["-j", "1", "--retry-wait", "1"])
            #expect(site.server.log.requests.map(\.path) == ["/bad", "/bad", Site.path])
        }
    }

    /// A server that has no room for the next file beside another has room once that file is complete. The wait for
    /// room does not use up the tries.
    @Test(arguments: [Fault.connectionLimit(1), .connectionLimitByReset(1)])
    func whoHasRoomForOneGetsOneAtATime(_ fault: Fault) async throws {
        let length: Int64 = 6_000_000
        let resource = Resource(length: length, rate: 2_000_000, behaviour: .always(fault))
        try await Site.with(try await Site(resource)) { site in
            let urls = (0..<3).map { site.server.url(Site.path) + "?\($0)" }
            _ = try await run(site, urls, ["-x", "1", "--max-tries", "3", "--retry-wait", "0.1"])
            try expectFiles(site, 0..<3, length: length)
        }
    }

    /// A host that asked for a wait gets no request during it, even if other downloads are redirected to the host.
    @Test func whoIsLeftAloneIsNotLedTo() async throws {
        let target = Resource(length: Self.length, behaviour: .first(1, .retryAfter("2", status: 429)))
        try await Site.with(try await Site(target)) { site in
            let url = site.server.url(Site.path)
            let leading = Behaviour { context in
                let query = context.request.query ?? ""
                let reply = Reply(302, [("Location", "\(url)?\(query)")])
                // The other redirects are sent after the first download was asked to wait.
                return query == "0" ? reply : Reply([.pause(.milliseconds(500))] + reply.steps)
            }
            try await Site.with(try await Site(length: 1, leading)) { other in
                _ = try await run(site, (0..<6).map { other.server.url(Site.path) + "?\($0)" })
            }
            try expectFiles(site, 0..<6)
            let times = site.requests.map(\.time)
            #expect(site.requests.count == 7)
            #expect(times[1] - times[0] >= .milliseconds(1900), "\(times)")
        }
    }

    /// A download that takes its slot back, and is then asked to wait, does not hold up others either.
    @Test func whoIsToWaitOnceMoreKeepsNoPlace() async throws {
        let late = Fault("late") { _ in Reply([.pause(.milliseconds(1500))] + Reply(429, [("Retry-After", "6")]).steps)
        }
        let bad = Resource(length: Self.length, behaviour: .first(1, .status(500)))
        let resource = Resource(length: 6_000_000, rate: 700_000, behaviour: .on([1], late))
        let slow = Behaviour { Reply([.pause(.seconds(3))] + $0.correct.steps) }
        let others = ["/slow": Resource(length: Self.length, behaviour: slow)]
        try await Site.with(try await Site(resource, more: ["/bad": bad])) { site in
            try await Site.with(try await Site(length: Self.length, more: others)) { other in
                let urls =
                    [site.server.url(Site.path), site.server.url("/bad"), other.server.url("/slow")]
                    + (0..<5).map { other.server.url(Site.path) + "?\($0)" }
                let start = ContinuousClock.now
                async let run = run(site, urls, ["-j", "2", "-x", "2"])
                await other.server.log.wait { !$0.requests(Site.path).isEmpty }
                #expect(ContinuousClock.now - start < .seconds(6))
                _ = try await run
                #expect(site.requests.count > 1 && site.server.log.requests("/bad").count == 2)
            }
        }
    }
}
