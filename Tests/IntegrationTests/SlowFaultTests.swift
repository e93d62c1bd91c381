import FaultServer
import Foundation
import Glibc
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineDisk

/// Catalogue 45, 50, 55 and 61: slow bytes, closed windows, digests of one response, and connections that stall one
/// after the other.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct SlowFaultTests {
    /// Sends the body up to an offset at the resource's rate, the rest at `rate` bytes per second.
    private static func crawl(after offset: Int64, rate: Int64) -> Fault {
        Fault("crawl") { context in
            let content = context.version.content
            let first = context.asked.lowerBound..<min(offset, context.asked.upperBound)
            return context.correct.body([
                .content(content, first), .rate(rate), .content(content, first.upperBound..<context.asked.upperBound),
            ])
        }
    }

    // MARK: Row 45

    /// Row 45: the only connection becomes very slow. It is replaced although bytes arrive, and no byte is lost.
    @Test func row45OnlyConnectionFallsToATrickle() async throws {
        let resource = Resource(
            length: 5_000_000, rate: 2_000_000, behaviour: .first(1, Self.crawl(after: 3_000_000, rate: 2000)))
        try await Site.with(try await Site(resource)) { site in
            let clock = ContinuousClock()
            let start = clock.now
            let outcome = try await site.download { $0.stallTimeout = .seconds(60) }
            try site.expectFile(outcome)
            #expect(clock.now - start < .seconds(60), "the rest would take a quarter of an hour")
            #expect(site.requests.count == 2)
            #expect(site.served < 5_000_000 + 200_000)
            #expect(
                outcome.notices.contains { $0.message.contains("a connection to the server is slow") },
                "\(outcome.notices)")
        }
    }

    /// Row 45: the only connection is very slow from its first byte: few bytes within a stall timeout count as a stall.
    @Test func row45OnlyConnectionCrawlsFromTheStart() async throws {
        try await Site.with(try await Site(.first(1, .slowBody(bytesPerSecond: 200)))) { site in
            let clock = ContinuousClock()
            let start = clock.now
            try site.expectFile(try await site.download())
            #expect(clock.now - start < .seconds(60))
            #expect(site.requests.count == 2)
        }
    }

    /// Row 45: the others are done, and the rest is too large to be fetched twice: the last one is replaced.
    @Test func row45LastConnectionCrawls() async throws {
        let resource = Resource(
            length: 6_000_000, rate: 1_000_000, behaviour: .on([1], .slowBody(bytesPerSecond: 1000)))
        try await Site.with(try await Site(resource)) { site in
            let clock = ContinuousClock()
            let start = clock.now
            try site.expectFile(
                try await site.download {
                    $0.connections = 2
                    $0.stallTimeout = .seconds(60)
                })
            #expect(clock.now - start < .seconds(60), "256 KiB at that speed take over four minutes")
        }
    }

    // MARK: Row 61

    /// Row 61: the server fails slowly. Its connections stall one after the other, and so do their replacements, so
    /// that there is always one that may recover: the tries are used up nevertheless.
    @Test func row61StallsInTurn() async throws {
        let behaviour = Behaviour { context in
            let (index, content) = (context.request.index, context.version.content)
            guard index < 3 else { return context.correct.body([.stall]) }
            let first = context.asked.lowerBound..<context.asked.lowerBound + 150_000
            return context.correct.body([
                .content(content, first), .pause(.milliseconds(400 * index)),
                .content(content, first.upperBound..<first.upperBound + 50_000), .stall,
            ])
        }
        try await Site.with(try await Site(behaviour)) { site in
            let outcome = try await site.download {
                $0.connections = 3
                $0.maximumTries = 3
                $0.stallTimeout = .seconds(1)
            }
            try site.expectFailure(outcome, .transient)
            #expect(outcome.message.contains(". 3 attempts failed"), "\(outcome.message)")
            #expect(site.requests.count < 30, "\(site.requests.count) requests")
            let before = site.served
            try await site.expectRecovery()
            #expect(site.served - before < site.length)
        }
    }

    // MARK: Row 50

    /// Row 50: the server grants no bytes of its window (RFC 9113 §6.5.2, SETTINGS_INITIAL_WINDOW_SIZE 0). A request
    /// consists of a head, which no window holds back.
    @Test func row50ZeroWindowOfHTTP2() async throws {
        var options = ServerOptions()
        options.http2 = true
        options.http2InitialWindow = 0
        try await Site.with(try await Site(Resource(length: 3_000_000), options: options)) { site in
            try site.expectFile(
                try await site.download {
                    $0.connection.httpProtocol = .http2PriorKnowledge
                    $0.connections = 4
                })
            #expect(site.requests.allSatisfy { $0.info.isHTTP2 })
        }
    }

    /// Row 50: a peer that accepts and does not read, so that its TCP window closes before the request is sent. The
    /// head's deadline ends the attempt; once a server answers, the file arrives.
    @Test func row50ZeroWindowOfTCP() async throws {
        try await Site.with(try await Site()) { site in
            let deaf = try DeafListener()
            let download = Download(
                try site.options {
                    $0.url = (try? HTTPURL(parsing: "http://127.0.0.1:\(deaf.port)\(Site.path)")) ?? $0.url
                    // The request is larger than any socket buffer here.
                    for index in 0..<15 {
                        $0.userFields.append(name: "X-Fill-\(index)", value: String(repeating: "a", count: 60_000))
                    }
                    $0.connection.headTimeout = .seconds(3)
                    $0.stallTimeout = .seconds(30)
                    $0.maximumTries = 2
                })
            async let outcome = download.run()
            #expect(try await deaf.windowIsClosed(), "the peer's buffer is full")
            let end = await outcome
            deaf.close()
            try site.expectFailure(end, .transient)
            try await site.expectRecovery()
        }
    }

    // MARK: Row 55

    private static func digest(_ bytes: [UInt8]) -> String {
        let digest = MessageDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return "sha-256=:\(Data(digest.finish(.sha256)).base64EncodedString()):"
    }

    /// Row 55: a bit flips in one response with a Content-Digest: only that segment is fetched again. A response with a
    /// digest is not cut for another connection, because a cut response cannot be checked.
    @Test(arguments: [1, 4]) func row55BitFlip(connections: Int) async throws {
        let behaviour = Behaviour { context in
            // With several connections, the response to a part: the digest of a response that covers the file is that
            // of the file.
            let isBad = context.request.index == (connections > 1 ? 1 : 0)
            return (isBad ? Fault.contentDigestWithFlip(Self.digest) : .contentDigest(Self.digest)).make(context)
        }
        let resource = Resource(length: 4_000_000, rate: 4_000_000, behaviour: behaviour)
        try await Site.with(try await Site(resource)) { site in
            let result = try await site.tow(["-x", "\(connections)"])
            try site.law(result, status: 0)
            let told = "do not match the checksum that the server sent (Content-Digest)"
            #expect(result.stderr.contains(told), "\(result.stderr)")
            #expect(site.served < 8_200_000)
        }
    }

    /// Row 55: each response is wrong: after two tries the exit status is 5, no file is published, and the bytes are
    /// kept.
    @Test func row55EveryResponseFlips() async throws {
        try await Site.with(try await Site(.always(.contentDigestWithFlip(Self.digest)))) { site in
            // A further connection would be a third request.
            let result = try await site.tow(["-x", "1"])
            try site.law(result, status: 5)
            #expect(result.stderr.contains("Content-Digest"), "\(result.stderr)")
            #expect(site.requests.count == 2)
            #expect(site.scratch.isThere("file.bin.tow-bad"))
            site.server.set(.correct, for: Site.path)
            try site.law(try await site.tow(), status: 0)
        }
    }
}

/// Listens, never accepts, and takes few bytes: the system completes connections for the listener, fills its small
/// buffers and closes the window.
///
/// `@unchecked Sendable`: one test uses it, in order.
private final class DeafListener: @unchecked Sendable {
    private let socket: Int32
    let port: Int

    init() throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.socket = socket
        var small: Int32 = 2048
        setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(socket, pointer, length) == 0 && listen(socket, 16) == 0
                    && getsockname(socket, pointer, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        try #require(isBound && port > 0)
    }

    /// Returns whether the first connection to the listener received some bytes, and then no more, though more should
    /// follow.
    func windowIsClosed() async throws -> Bool {
        let connection = try await nextConnection()
        defer { Glibc.close(connection) }
        var (before, now) = (-1, 0)
        // The peer fills the window at once; half a second without a byte shows that it cannot send more.
        while now == 0 || now != before {
            try await Task.sleep(for: .milliseconds(500))
            before = now
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            now = recv(connection, &buffer, buffer.count, Int32(MSG_DONTWAIT) | Int32(MSG_PEEK))
        }
        return now > 0 && now < 800_000
    }

    private func nextConnection() async throws -> Int32 {
        for _ in 0..<1000 {
            var request = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            if poll(&request, 1, 0) == 1 { return accept(socket, nil, nil) }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw CancellationError()
    }

    func close() { Glibc.close(socket) }
}
