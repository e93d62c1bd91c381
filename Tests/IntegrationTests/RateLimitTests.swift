import FaultServer
import Testing

/// Tests `--limit-rate` with the built command. The limit determines the rate, so one connection is enough. Each
/// further connection would lose the bytes that a server has sent and no attempt has read. These tests run alone
/// (`scripts/run-tests`).
@Suite(.serialized, .timeLimit(.minutes(2)))
struct RateLimitTests {
    @Test("no connections are opened that a limit would hold back, and no byte is fetched twice")
    func oneConnection() async throws {
        try await Site.with(try await Site(length: 3_000_000)) { site in
            let start = ContinuousClock.now
            let run = try ChildRun(site.command(["--limit-rate", "1M"]), directory: site.scratch.path)
            try site.law(try await run.finish(), status: 0)
            #expect(site.requests.count == 1)
            #expect(site.served == 3_000_000)
            #expect(ContinuousClock.now - start > .seconds(2), "the limit holds")
        }
    }

    @Test("if each connection is slower than the limit, more are opened")
    func severalWhereTheyPay() async throws {
        let resource = Resource(length: 6_000_000, rate: 500_000)
        try await Site.with(try await Site(resource)) { site in
            let start = ContinuousClock.now
            let run = try ChildRun(site.command(["--limit-rate", "3M"]), directory: site.scratch.path)
            try site.law(try await run.finish(), status: 0)
            #expect(site.requests.count > 1)
            #expect(ContinuousClock.now - start < .seconds(8), "twelve over one connection")
        }
    }

    @Test("limits of the highest numbers are limits")
    func asHighAsNumbersGo() async throws {
        try await Site.with(try await Site()) { site in
            let arguments = ["--limit-rate", "9223372036854775807", "--limit-rate-total", "9223372036854775807"]
            let run = try ChildRun(site.command(arguments), directory: site.scratch.path)
            try site.law(try await run.finish(), status: 0)
        }
    }
}
