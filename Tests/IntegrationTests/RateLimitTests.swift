import FaultServer
import Foundation
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

    /// Each kill, pause and cancel loses the unread bytes.
    @Test(
        "at most 50 ms of the rate, or 512 KiB, lie unread in the kernel for each connection",
        arguments: [
            ["--limit-rate", "12M"], ["--limit-rate-total", "12M"], ["-x", "4", "--limit-rate", "12M"],
            ["--limit-rate", "2M", "--limit-rate-total", "40M"],
        ])
    func fewUnreadBytes(_ options: [String]) async throws {
        try await Site.with(try await Site(length: options.contains("2M") ? 6_000_000 : 24_000_000)) { site in
            let run = try ChildRun(site.command(options), directory: site.scratch.path)
            var most = 0
            var readings = 0
            while run.isRunning {
                let unread = try UnreadBytes.ofConnections(toPort: site.server.port)
                most = max(most, unread.max() ?? 0)
                readings += unread.isEmpty ? 0 : 1
                try await Task.sleep(for: .milliseconds(2))
            }
            try site.law(try await run.finish(), status: 0)
            #expect(readings > 50)
            #expect(most > 0 && most <= max(12_000_000 / 20, 512 << 10))
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

/// Reads how many received bytes wait in the kernel.
enum UnreadBytes {
    /// Returns the number of unread bytes of each open connection to a port of this machine, at the client's end
    /// (`rx_queue` of `/proc/net/tcp` in proc(5)). The kernel returns one page of the table for each read(2).
    static func ofConnections(toPort port: Int) throws -> [Int] {
        let hexadecimal = String(port, radix: 16, uppercase: true)
        // The end of the remote address, and the state of an open connection: all other lines are skipped unread. A
        // machine on which many tests ran has thousands of closed connections.
        let wanted = Data((":" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal + " 01 ").utf8)
        let table = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
        var text = Data()
        while let page = try table.read(upToCount: 4096), !page.isEmpty { text += page }
        var numbers: [Int] = []
        var rest = text.startIndex..<text.endIndex
        while let match = text.range(of: wanted, in: rest) {
            rest = match.upperBound..<text.endIndex
            // "tx_queue:rx_queue", each of eight hexadecimal digits
            let received = text[rest].prefix(17).suffix(8)
            numbers.append(try #require(Int(String(decoding: received, as: UTF8.self), radix: 16)))
        }
        return numbers
    }
}
