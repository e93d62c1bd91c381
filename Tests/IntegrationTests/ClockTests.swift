import FaultServer
import Foundation
import Testing

/// Catalogue F with the built command: a wall clock that is wrong, or is set while a download runs (rows 111–114). The
/// server and this process, whose clocks are right, measure the time.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ClockTests {
    private static let hour: Int64 = 3600
    private static let day: Int64 = 86_400

    /// Row 111: the clock is set during the wait after a failed attempt. The wait is neither longer nor shorter.
    @Test(arguments: [hour, -hour, day, -day]) func row111JumpInBackoff(_ jump: Int64) async throws {
        let clock = try await WallClock()
        try await Site.with(try await Site(.first(2, .status(429)))) { site in
            let waits = ["-x", "1", "--retry-wait", "2", "--max-tries", "5"]
            let run = try ChildRun(
                site.command(waits), directory: site.scratch.path, environment: clock.environment)
            await site.server.log.wait { $0.requests(Site.path).count >= 1 }
            try clock.set(jump)
            await site.server.log.wait { $0.requests(Site.path).count >= 2 }
            try clock.set(0)
            try site.law(try await run.finish(), status: 0)
            // The waits are two and four seconds, each up to a quarter longer or shorter.
            let times = site.requests.map(\.time)
            try #require(
                times.count == 3,
                "\(site.requests.map { ($0.time, $0.status ?? 0, $0.bodyBytes, $0.info.field("Range") ?? "-") })")
            #expect(times[1] - times[0] > .milliseconds(1400) && times[1] - times[0] < .seconds(20))
            #expect(times[2] - times[1] > .milliseconds(2900) && times[2] - times[1] < .seconds(30))
        }
    }

    /// Row 111: the clock is set while bytes arrive: no stall is detected, no byte is requested again, the rate limit
    /// holds.
    @Test(arguments: [hour, -hour]) func row111JumpWhileBytesCome(_ jump: Int64) async throws {
        let clock = try await WallClock()
        try await Site.with(try await Site(length: 6_000_000)) { site in
            let start = ContinuousClock.now
            let run = try ChildRun(
                site.command(["-x", "1", "--limit-rate", "2M"]), directory: site.scratch.path,
                environment: clock.environment)
            for (held, shift) in [(1_500_000, jump), (3_000_000, 0), (4_000_000, -jump)] as [(Int64, Int64)] {
                await site.server.log.wait { $0.bodyBytesServed(Site.path) > held }
                try clock.set(shift)
            }
            try site.law(try await run.finish(), status: 0)
            #expect(site.requests.count == 1)
            #expect(ContinuousClock.now - start > .milliseconds(1500), "the limit holds")
        }
    }

    /// Row 112: a Retry-After date counts from the server's own Date, whatever the client's clock shows, and even if
    /// that clock is set during the wait.
    @Test(arguments: [0, hour, -hour], [hour, -hour]) func row112RetryAfterDate(
        _ before: Int64, _ jump: Int64
    ) async throws {
        let clock = try await WallClock()
        try clock.set(before)
        try await Site.with(try await Site(.first(1, .retryAfterDate(secondsFromNow: 3)))) { site in
            let run = try ChildRun(
                site.command(["-x", "1"]), directory: site.scratch.path, environment: clock.environment)
            await site.server.log.wait { $0.requests(Site.path).count >= 1 }
            try clock.set(before + jump)
            try site.law(try await run.finish(), status: 0)
            let times = site.requests.map(\.time)
            try #require(
                times.count == 2,
                "\(site.requests.map { ($0.time, $0.status ?? 0, $0.bodyBytes, $0.info.field("Range") ?? "-") })")
            // A date has whole seconds: three of them are more than two.
            #expect(times[1] - times[0] > .milliseconds(1950) && times[1] - times[0] < .seconds(30))
        }
    }

    /// Rows 111, 113: the clock is set between two runs, by an hour or to another year: held bytes still count.
    @Test(arguments: [hour, -hour, -60 * 365 * day]) func row113JumpBetweenRuns(_ jump: Int64) async throws {
        let clock = try await WallClock()
        try await Site.with(try await Site(Resource(length: 8_000_000, rate: 3_000_000))) { site in
            let run = try ChildRun(
                site.command(["-x", "1"]), directory: site.scratch.path, environment: clock.environment)
            await site.server.log.wait { $0.bodyBytesServed(Site.path) > 4_000_000 }
            run.signal(SIGKILL)
            _ = try await run.finish()
            try clock.set(jump)
            let before = site.served
            let second = try await site.tow(environment: clock.environment)
            try site.law(second, status: 0)
            #expect(site.served - before < 8_000_000 - 2_000_000)
            // Another run knows the file as finished, and sends no request.
            let requests = site.requests.count
            try clock.set(0)
            #expect(try await site.tow(environment: clock.environment).status == 0)
            #expect(site.requests.count == requests)
        }
    }

    /// Row 114: years outside the range of 32 bits, with a wait in between.
    @Test(arguments: ["2039-01-01T12:00:00Z", "1971-01-01T12:00:00Z", "2107-01-01T00:00:00Z"])
    func row114OtherYears(_ text: String) async throws {
        let date = try #require(ISO8601DateFormatter().date(from: text))
        let clock = try await WallClock()
        try clock.set(Int64(date.timeIntervalSinceNow))
        try await Site.with(try await Site(.first(2, .shortBody(after: 1_000_000)))) { site in
            site.server.set(
                .script([.status(429), .shortBody(after: 1_000_000), .status(429)]), for: Site.path)
            // The test uses one connection, because the number of added ones depends on the speed of the machine.
            try site.law(try await site.tow(["-x", "1"], environment: clock.environment), status: 0)
            #expect(site.requests.count == 4)
        }
    }

    /// Row 111: no timer of the program follows the wall clock. The replaced clock does not reach the kernel's timers,
    /// so the test reads the calls to the kernel: timers, and waits with a limit (futex(2)). A change of the clock does
    /// not affect a relative sleep (clock_nanosleep(2)).
    @Test(.enabled(if: DiskFaultTests.canTrace)) func row111NoTimerFollowsTheWallClock() async throws {
        try await Site.with(try await Site(.first(2, .closeBeforeHead))) { site in
            let calls = "timerfd_create,timerfd_settime,timer_create,clock_nanosleep,alarm,setitimer,futex"
            let log = site.scratch.file("calls")
            let strace = ["/usr/bin/strace", "-f", "-qq", "-o", log, "-e", "trace=" + calls]
            try site.law(try await site.tow(["-x", "4"], prefix: strace), status: 0)
            let lines = site.scratch.read("calls").split(separator: "\n").filter {
                !["timerfd_settime", " resumed>", "clock_nanosleep(CLOCK_REALTIME, 0, "].contains(where: $0.contains)
            }
            let (waits, timers) = (lines.filter { $0.contains("futex(") }, lines.filter { !$0.contains("futex(") })
            // A wait names the wall clock, and no clock for the monotonic one. The retries of this download wait.
            let limited = waits.filter { $0.contains("FUTEX_WAIT") && $0.contains("{tv_sec") }
            #expect(!limited.isEmpty)
            // The settings of a timer name its descriptor. Other calls name their clock, unless that is the wall clock.
            let others =
                limited.filter { $0.contains("FUTEX_CLOCK_REALTIME") }
                + timers.filter { !$0.contains("CLOCK_MONOTONIC") && !$0.contains("CLOCK_BOOTTIME") }
            #expect(others.isEmpty, "\(others)")
        }
    }
}
