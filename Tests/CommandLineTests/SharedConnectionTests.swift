import FaultServer
import Foundation
import ShapingProxy
import TestServers
import Testing
import TowlineCurl

/// Tests small files of an HTTP/2 server, from outside: they are streams of few connections, and each file is right.
@Suite(.serialized, .timeLimit(.minutes(2)), .enabled(if: Programs.areThere(Programs.nginx, Programs.openssl)))
struct SharedConnectionTests {
    private let nginx: Nginx
    private let place: TestDirectory

    init() async throws {
        nginx = try await Nginx()
        place = try TestDirectory()
    }

    /// Lengths around the limit of small files, and the most common ones.
    private static func length(_ number: Int) -> Int {
        switch number % 50 {
        case 10: 0
        case 20: 262_144
        case 30: 262_143
        default: 200 + number * 131 % 12_000
        }
    }

    private func content(_ number: Int) -> [UInt8] {
        FaultContent(seed: UInt64(number)).bytes(in: 0..<Int64(Self.length(number)))
    }

    /// Creates files on the server. Returns their links, which redirect if they are `under` a path.
    private func files(
        _ numbers: Range<Int>, certificate: String = "http2", under way: String = ""
    ) throws -> [String] {
        try numbers.map { number in
            try Data(content(number)).write(to: URL(fileURLWithPath: "\(nginx.folder.path)/s\(number)"))
            return nginx.url("\(way)s\(number)", certificate: certificate)
        }
    }

    /// Writes a list of links next to the files that nginx serves.
    private func listFile(_ urls: [String]) throws -> String {
        try nginx.folder.write("list", urls.joined(separator: "\n") + "\n")
    }

    private func get(_ urls: [String], _ options: [String] = []) async throws -> CommandRun.Result {
        try await CommandRun.run(
            ["get", "--cacert", nginx.certificates.authority, "-i", "-"] + options,
            input: urls.joined(separator: "\n") + "\n", directory: place.url)
    }

    private func expectFiles(_ numbers: Range<Int>) throws {
        for number in numbers {
            #expect(try Data(contentsOf: place.file("s\(number)")) == Data(content(number)), "s\(number)")
        }
    }

    /// Fetches files and expects that each arrives without a counted failure.
    private func expectNoFailure(_ numbers: Range<Int>, certificate: String) async throws {
        let result = try await get(try files(numbers, certificate: certificate))
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(numbers)
        #expect(!result.stderr.contains("retrying in"), "\(result.stderr)")
    }

    /// The number of part files.
    private var running: Int { place.names.count { $0.hasSuffix(".tow") } }

    /// The number of requests that were streams of shared connections.
    private var sharedCount: Int { nginx.log.count { $0.range == "bytes=0-262143" } }

    // This test and the next run alone (`scripts/run-tests`).
    @Test func theyShareFewConnections() async throws {
        let result = try await get(try files(0..<400))
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<400)
        let connections = Dictionary(grouping: nginx.log, by: \.connection)
        // Five begin before any answer is known; then each of two threads has one shared connection.
        #expect(connections.count <= 7, "\(connections.mapValues(\.count))")
        let shared = connections.values.map(\.count).sorted().suffix(2)
        #expect(shared.reduce(0, +) > 300, "\(connections.mapValues(\.count))")
        #expect(nginx.log.count == 400)
    }

    @Test func overHTTP1EachHasAConnectionAtATime() async throws {
        let result = try await get(try files(0..<200, certificate: "good"))
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<200)
        #expect(nginx.log.count == 200 && nginx.log.allSatisfy { $0.range == "bytes=0-" })
        #expect((2...16).contains(Set(nginx.log.map(\.connection)).count))
    }

    /// A file that proves to be long costs a request for 256 KiB and gets connections of its own.
    @Test func aLongOneAmongThemGetsItsOwn() async throws {
        let small = try files(0..<100)
        let result = try await get(small + [nginx.url("large", certificate: "http2")])
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<100)
        #expect(try Nginx.content.firstMismatch(inFile: place.path("large"), length: Nginx.largeLength) == nil)
        let large = nginx.log.filter { $0.path == "/large" }
        let probes = large.filter { $0.range == "bytes=0-262143" }
        #expect(probes.count == 1 && probes[0].bodyBytes <= 262_144, "\(large)")
        let shared = try #require(probes.first).connection
        #expect(large.filter { $0.connection == shared }.count == 1, "\(large)")
    }

    /// Files do not share a connection if other files of the host would have to be stopped there.
    @Test func amongLongerOnesNothingIsShared() async throws {
        let small = try files(0..<8)
        let medium = try (0..<8).map { number in
            try Data(count: 300_000).write(to: URL(fileURLWithPath: "\(nginx.folder.path)/m\(number)"))
            return nginx.url("m\(number)", certificate: "http2")
        }
        let result = try await get(zip(small, medium).flatMap { [$0, $1] }, ["-j", "1"])
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<8)
        #expect(sharedCount == 0 && nginx.log.count == 16)
    }

    /// Under a rate limit every stream would wait for every other, and HTTP/1.1 has no streams.
    @Test(arguments: [["--limit-rate-total", "2M"], ["--limit-rate", "1M"], ["--http1"]])
    func nothingIsSharedWhereItCannotBe(_ options: [String]) async throws {
        let result = try await get(try files(0..<60), options)
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<60)
        #expect(sharedCount == 0 && nginx.log.count == 60)
    }

    /// After a hundred concurrent small files, at most sixteen long files run at once.
    @Test(arguments: [("", ""), ("near/", "near/"), ("near/", "good/")])
    func longOnesAfterThemAreNoMoreThanAHostIsAskedFor(_ way: String, _ longWay: String) async throws {
        for number in 0..<40 {
            try FileManager.default.createSymbolicLink(
                atPath: "\(nginx.folder.path)/l\(number)", withDestinationPath: "\(nginx.folder.path)/large")
        }
        let long = (0..<40).map { nginx.url("\(longWay)slow/l\($0)", certificate: "http2") }
        let list = try listFile(try files(0..<300, under: way) + long)
        let arguments = ["get", "--cacert", nginx.certificates.authority, "-i", list, "-x", "1", "--json"]
        let run = try CommandRun(arguments, directory: place.url)
        defer { run.signal(SIGKILL) }
        for _ in 0..<400 where running < 16 {
            try await Task.sleep(for: .milliseconds(20))
        }
        // No seventeenth file may begin. Each long file takes eight seconds.
        try await Task.sleep(for: .milliseconds(1500))
        #expect(running == 16)
        #expect(sharedCount > 100)
    }

    /// A server that ends a connection after some requests (GOAWAY, RFC 9113 §6.8) does not cost any of them.
    @Test func aConnectionThatIsEndedLosesNothing() async throws {
        try await expectNoFailure(0..<300, certificate: "http2-brief")
        #expect(sharedCount > 50)
    }

    /// A server that allows three streams on a connection is not asked over many connections instead.
    @Test func aServerOfFewStreamsIsNotCrowded() async throws {
        try await expectNoFailure(0..<200, certificate: "http2-narrow")
        #expect(sharedCount > 150)
        // Five connections at first, two shared ones, and at most sixteen for streams refused before the limit is
        // known.
        #expect(Set(nginx.log.map(\.connection)).count <= 23)
    }

    /// Runs `body` with links that lead to nginx through a simulated network.
    private func through(
        _ options: ShapingOptions, _ urls: [String], _ body: ([String]) async throws -> Void
    ) async throws {
        let port = try #require(URL(string: urls[0])?.port)
        let proxy = try ShapingProxy(to: UInt16(port), options)
        Thread.detachNewThread { try? proxy.run() }
        defer { proxy.stop() }
        try await body(urls.map { $0.replacing(":\(port)/", with: ":\(proxy.port)/") })
    }

    /// The connection of most files falls silent: its files are requested again over other connections, and it gets no
    /// further files.
    @Test(arguments: [0, 50]) func aSharedConnectionThatFallsSilentIsGivenUp(_ delay: Int) async throws {
        var network = ShapingOptions()
        network.delay = Int64(delay) * 1_000_000
        for number in 6...8 { network.stalled[number] = 100_000 }
        // The connection of most files differs with the load of the machine.
        for _ in 0..<6 {
            for name in place.names { try FileManager.default.removeItem(atPath: place.path(name)) }
            var fellSilent = false
            try await through(network, try files(0..<200)) { urls in
                let result = try await get(urls, ["--stall-timeout", "2", "--retry-wait", "0.2", "--progress", "none"])
                #expect(result.status == 0, "\(result.stderr)")
                #expect(!result.stderr.contains("(try 2 of"), "\(result.stderr)")
                fellSilent = result.stderr.contains("no data received from the server for 2 s")
            }
            try expectFiles(0..<200)
            if fellSilent { return }
        }
        Issue.record("none fell silent")
    }

    /// Each connection is reset somewhere, with all of its streams.
    @Test(arguments: [1, 2, 3], [0, 50]) func sharedConnectionsThatAreResetLoseNothing(
        _ seed: UInt64, _ delay: Int
    ) async throws {
        var network = ShapingOptions()
        network.delay = Int64(delay) * 1_000_000
        network.resetAfter = 30_000...300_000
        network.seed = seed
        try await through(network, try files(0..<200)) { urls in
            let result = try await get(urls, ["--retry-wait", "0.1", "--progress", "none"])
            #expect(result.status == 0, "\(result.stderr)")
        }
        try expectFiles(0..<200)
        #expect(sharedCount > 0)
    }

    /// Redirected files share connections both to the redirecting host and to the target host.
    @Test func redirectedOnesShareTheSame() async throws {
        let result = try await get(try files(0..<300, under: "near/"))
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<300)
        #expect(nginx.log.count == 600 && nginx.log.count { $0.status == "302" } == 300)
        #expect(sharedCount > 450)
        let connections = Dictionary(grouping: nginx.log, by: \.connection)
        #expect(connections.count <= 9, "\(connections.mapValues(\.count))")
    }

    /// The target server has only HTTP/1.1, or three streams for a connection.
    @Test(arguments: ["good", "narrow"]) func redirectedOnesHeedTheOtherServer(_ way: String) async throws {
        // With a fixed number: on a busy machine, the server seems distant, and more downloads would run.
        let result = try await get(try files(0..<200, under: way + "/"), ["--progress", "none", "-j", "16"])
        #expect(result.status == 0 && !result.stderr.contains("retrying in"), "\(result.stderr)")
        try expectFiles(0..<200)
        // The first server sends only redirects, which are small.
        let led = nginx.log.filter { $0.status == "302" }
        #expect(led.count >= 200 && led.count { $0.range == "bytes=0-262143" } > 150)
        let there = nginx.log.filter { $0.status == "206" }
        #expect(Set(there.map(\.port)).count == 1)
        #expect(Set(there.map(\.connection)).count <= (way == "good" ? 16 : 23))
    }

    /// Files whose length the server does not state also share; a long one among them is requested again. libcurl
    /// before 8.1 cannot distinguish the end of a stream from a reset: such a server is asked over HTTP/1.1, whose
    /// chunks mark the end.
    @Test func thoseWithoutALengthShareToo() async throws {
        let urls = try files(0..<300, under: "chunked/") + [nginx.url("chunked/large", certificate: "http2")]
        // With a fixed number: on a busy machine, the server seems distant, and more downloads would run.
        let result = try await get(urls, ["--progress", "none", "-j", "16"])
        #expect(result.status == 0, "\(result.stderr)")
        try expectFiles(0..<300)
        #expect(try Nginx.content.firstMismatch(inFile: place.path("large"), length: Nginx.largeLength) == nil)
        if CurlLibrary.provesStreamEnd {
            #expect(sharedCount > 200)
        } else {
            // Each file is requested once over HTTP/1.1. The first ones, which showed the missing lengths, were also
            // requested over HTTP/2.
            let small = nginx.log.filter { $0.path.contains("/chunked/") && !$0.path.hasSuffix("/large") }
            let again = small.count - 300
            #expect((0..<100).contains(again), "\(again)")
            #expect(Set(small.map(\.connection)).count <= 40, "\(Set(small.map(\.connection)).count)")
        }
        let large = nginx.log.filter { $0.path == "/chunked/large" }
        #expect(large.count <= 2, "\(large)")
    }

    /// Each redirect is a round trip, over connections that are reset somewhere.
    @Test(arguments: [1, 2], [0, 50]) func redirectedOnesThatAreResetLoseNothing(_ seed: UInt64, _ delay: Int)
        async throws
    {
        var network = ShapingOptions()
        network.delay = Int64(delay) * 1_000_000
        network.resetAfter = 30_000...300_000
        network.seed = seed
        try await through(network, try files(0..<200, under: "near/")) { urls in
            let result = try await get(urls, ["--retry-wait", "0.1", "--progress", "none"])
            #expect(result.status == 0, "\(result.stderr)")
        }
        try expectFiles(0..<200)
    }

    /// Over a long round trip, the number of concurrent requests determines the rate.
    @Test func farAwayManyRedirectedAreUnderWay() async throws {
        var network = ShapingOptions()
        network.delay = 200_000_000
        try await through(network, try files(0..<300, under: "near/")) { urls in
            let began = ContinuousClock.now
            let result = try await get(urls, ["--quiet"])
            #expect(result.status == 0, "\(result.stderr)")
            // Sixteen at a time would take 38 round trips: 7.6 s.
            #expect(ContinuousClock.now - began < .milliseconds(6400))
        }
        try expectFiles(0..<300)
    }

    /// The same for files without redirects.
    @Test func farAwayManyAreUnderWay() async throws {
        var network = ShapingOptions()
        network.delay = 200_000_000
        try await through(network, try files(0..<600)) { urls in
            let began = ContinuousClock.now
            let result = try await get(urls, ["--quiet"])
            #expect(result.status == 0, "\(result.stderr)")
            // Sixteen at a time would take 38 round trips: 7.6 s.
            #expect(ContinuousClock.now - began < .milliseconds(6400))
        }
        try expectFiles(0..<600)
        // Each connection's window grows separately, and the host has no more than sixteen connections.
        let shared = Dictionary(grouping: nginx.log.filter { $0.range == "bytes=0-262143" }, by: \.connection)
        #expect(shared.values.count { $0.count >= 20 } == 11, "\(shared.mapValues(\.count))")
        #expect(Set(nginx.log.map(\.connection)).count <= 16)
    }

    /// A distant server may do to several connections at once what a near server does to one.
    @Test(arguments: ["http2-brief", "http2-narrow"]) func farAwayOddServersLoseNothing(_ kind: String) async throws {
        var network = ShapingOptions()
        network.delay = 50_000_000
        try await through(network, try files(0..<400, certificate: kind)) { urls in
            let result = try await get(urls, ["--progress", "none"])
            #expect(result.status == 0 && !result.stderr.contains("retrying in"), "\(result.stderr)")
        }
        try expectFiles(0..<400)
        #expect(sharedCount > 50)
        // Each connection to the narrow server has three streams; files refused before that is known use connections of
        // their own.
        if kind == "http2-narrow" { #expect(Set(nginx.log.map(\.connection)).count <= 5 + 11 + 16) }
    }

    @Test(arguments: [SIGKILL, SIGINT]) func killedTheyAreWholeOrNotThere(_ signal: Int32) async throws {
        let urls = try files(0..<400)
        let list = try listFile(urls)
        let arguments = ["get", "--cacert", nginx.certificates.authority, "-i", list]
        for _ in 0..<4 {
            let run = try CommandRun(arguments, directory: place.url)
            // The random time of the signal is the purpose of the test.
            try await Task.sleep(for: .milliseconds(Int.random(in: 40...250)))
            run.signal(signal)
            _ = try await run.finish()
            for name in place.names where !name.contains(".tow") {
                let number = try #require(Int(name.dropFirst()))
                #expect(try Data(contentsOf: place.file(name)) == Data(content(number)), "\(name)")
            }
        }
        let last = try await CommandRun.run(arguments, directory: place.url)
        #expect(last.status == 0, "\(last.stderr)")
        try expectFiles(0..<400)
        #expect(place.names.count == 400)
    }
}
