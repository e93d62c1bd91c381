import FaultServer
import Foundation
import Testing
import TowlineWire

/// Tests of requests that two HTTP parsers could read differently (RFC 9112 §11.2). Behind a proxy, the rest of such a
/// request would be a request of another user.
@Suite(.timeLimit(.minutes(1))) struct SmugglingTests {
    /// A request that adds nothing, and a second request that must not be answered.
    private static let second = "GET \(Wire.base)/health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// A request that is answered with 200 if it is accepted.
    private static func post(
        _ fields: String, _ body: String = "2\r\n{}\r\n0\r\n\r\n", version: String = "1.1"
    ) -> String {
        "PATCH \(Wire.base)/settings HTTP/\(version)\r\nHost: localhost\r\nContent-Type: application/json\r\n\(fields)\r\n\r\n\(body)"
    }

    static let refused: [(String, String)] = [
        ("two Host fields", "GET \(Wire.base)/health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
        ("no Host field", "GET \(Wire.base)/health HTTP/1.1\r\n\r\n"),
        (
            "an absolute target with another host",
            "GET http://other.example/api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ),
        ("an absolute target without a host", "GET http:///api/v1/health HTTP/1.1\r\nHost: \r\n\r\n"),
        ("a star as the target of GET", "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("a Host field with a user", "GET / HTTP/1.1\r\nHost: a@localhost\r\n\r\n"),
        ("a Host field with a path", "GET / HTTP/1.1\r\nHost: localhost/a\r\n\r\n"),
        ("a Host field with two names", "GET / HTTP/1.1\r\nHost: localhost, other.example\r\n\r\n"),
        ("a port with a sign", "GET / HTTP/1.1\r\nHost: localhost:+80\r\n\r\n"),
        ("a port out of range", "GET / HTTP/1.1\r\nHost: localhost:65536\r\n\r\n"),
        ("coding and length", post("Transfer-Encoding: chunked\r\nContent-Length: 4")),
        ("length and coding", post("Content-Length: 5\r\nTransfer-Encoding: chunked")),
        ("two lengths", post("Content-Length: 2\r\nContent-Length: 3", "{}")),
        ("a list of lengths", post("Content-Length: 2, 3", "{}")),
        ("a negative length", post("Content-Length: -2", "{}")),
        ("a length with a sign", post("Content-Length: +2", "{}")),
        ("a huge length", post("Content-Length: 99999999999999999999999", "{}")),
        ("a hexadecimal length", post("Content-Length: 0x2", "{}")),
        ("coding identity last", post("Transfer-Encoding: chunked, identity")),
        ("an unknown coding", post("Transfer-Encoding: xchunked")),
        ("a coding before chunked", post("Transfer-Encoding: gzip, chunked")),
        ("two codings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity")),
        ("chunked twice", post("Transfer-Encoding: chunked, chunked")),
        ("a space before the colon", post("Transfer-Encoding : chunked")),
        ("a vertical tab in the coding", post("Transfer-Encoding: \u{0B}chunked")),
        ("a folded field", post("Transfer-Encoding:\r\n chunked")),
        ("a NUL in a field", post("X-A: a\u{0}b\r\nContent-Length: 2", "{}")),
        ("a CR in a field", post("X-A: a\rb\r\nContent-Length: 2", "{}")),
        ("a coding in HTTP/1.0", post("Transfer-Encoding: chunked", version: "1.0")),
        ("a chunk without a size", post("Transfer-Encoding: chunked", "\r\n{}\r\n0\r\n\r\n")),
        ("a chunk with a letter as its size", post("Transfer-Encoding: chunked", "z\r\n{}\r\n0\r\n\r\n")),
        ("a negative chunk", post("Transfer-Encoding: chunked", "-2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk of 2^64 bytes", post("Transfer-Encoding: chunked", "10000000000000002\r\n{}\r\n0\r\n\r\n")),
        ("a chunk with 0x", post("Transfer-Encoding: chunked", "0x2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk that is longer than its size", post("Transfer-Encoding: chunked", "2\r\n{}}}\r\n0\r\n\r\n")),
        ("a bare LF after a chunk size", post("Transfer-Encoding: chunked", "2\n{}\n0\n\n")),
        ("a field without a name", post(": x\r\nContent-Length: 2", "{}")),
        ("a field name with a space", post("X A: x\r\nContent-Length: 2", "{}")),
        (
            "101 fields",
            "GET \(Wire.base)/health HTTP/1.1\r\nHost: localhost\r\n" + String(repeating: "A: b\r\n", count: 101)
                + "\r\n"
        ),
    ]

    /// Calls `body` with a connection to the service, on a thread that may block.
    private static func connected(
        _ site: ServiceSite, _ body: @escaping @Sendable (Int32) throws -> String
    ) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let descriptor = try RawExchange.connect(site.socket)
                        defer { close(descriptor) }
                        return try body(descriptor)
                    })
            }
        }
    }

    /// The end of the result of `exchange` if the service did not close the connection.
    private static let open = "(still open)"

    /// Sends bytes and returns all that the service sends until it closes the connection.
    private static func exchange(_ text: String, _ site: ServiceSite) async throws -> String {
        try await connected(site) { descriptor in
            RawExchange.write(Array(text.utf8), to: descriptor)
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65536)
            var count = Glibc.read(descriptor, &buffer, buffer.count)
            while count > 0 {
                bytes += buffer[..<count]
                count = Glibc.read(descriptor, &buffer, buffer.count)
            }
            return String(decoding: bytes, as: UTF8.self) + (count < 0 && errno == EAGAIN ? open : "")
        }
    }

    private static func statuses(_ text: String) -> [String] {
        text.components(separatedBy: "HTTP/1.").dropFirst().map { String($0.dropFirst(2).prefix(3)) }
    }

    @Test func anAmbiguousRequestIsRefusedAndEndsTheConnection() async throws {
        let site = try await ServiceSite { configuration in
            configuration.idleTimeout = .seconds(1)
            configuration.bodyTimeout = .seconds(1)
        }
        for (name, request) in Self.refused {
            let answer = try await Self.exchange(request + Self.second, site)
            #expect(["400", "431"].contains(Self.statuses(answer).last ?? ""), "\(name): \(answer.prefix(300))")
            #expect(Self.statuses(answer).count == 1, "\(name): \(answer.prefix(600))")
        }
        try await site.stop()
    }

    /// Sends each text and then reads until the service has sent the marker. Returns all that the service sent.
    private static func converse(_ steps: [(text: String, marker: String)], _ site: ServiceSite) async throws -> String
    {
        try await connected(site) { descriptor in
            var answer = ""
            for step in steps {
                let start = answer.utf8.count
                RawExchange.write(Array(step.text.utf8), to: descriptor)
                var buffer = [UInt8](repeating: 0, count: 65536)
                while !String(decoding: answer.utf8.dropFirst(start), as: UTF8.self).contains(step.marker) {
                    let count = Glibc.read(descriptor, &buffer, buffer.count)
                    guard count > 0 else { return answer + "(no \(step.marker))" }
                    answer += String(decoding: buffer[..<count], as: UTF8.self)
                }
            }
            return answer
        }
    }

    /// RFC 9112 §3.2.2: a server must accept the form that clients send to a proxy.
    @Test(arguments: ["http://localhost", "HTTP://LOCALHOST"]) func anAbsoluteTargetIsAccepted(_ url: String)
        async throws
    {
        let site = try await ServiceSite()
        for path in ["\(Wire.base)/health", "", "/"] {
            let request = "GET \(url)\(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            #expect(try await Self.statuses(Self.exchange(request, site)) == ["200"], "\(path)")
        }
        try await site.stop()
    }

    /// RFC 9110 §10.1.1: such a client sends the body only after a response.
    @Test func aClientThatWaitsForContinueGetsIt() async throws {
        let site = try await ServiceSite()
        let head = Self.post("Content-Length: 2\r\nExpect: 100-continue", "")
        let one = try await Self.converse([(head, "100 Continue\r\n\r\n"), ("{}", "maximumRunning")], site)
        #expect(Self.statuses(one) == ["100", "200"], "\(one)")
        // Not before the end of the response to an earlier request.
        let two = try await Self.converse(
            [(Self.second + head, "100 Continue\r\n\r\n"), ("{}", "maximumRunning")], site)
        #expect(Self.statuses(two) == ["200", "100", "200"], "\(two)")
        // The body is there, or the version does not have this response.
        let three = try await Self.exchange(head.replacing("1.1\r\n", with: "1.0\r\n") + "{}", site)
        #expect(Self.statuses(three) == ["200"], "\(three)")
        try await site.stop()
    }

    /// NIO reads nothing after such a request, so the client must not wait for another response on the connection. curl
    /// sends the field with the option `--http2`.
    @Test(arguments: ["h2c", "websocket"]) func aRequestToChangeTheProtocolIsTheLast(_ name: String) async throws {
        let site = try await ServiceSite()
        // A line end is one character.
        let request = Self.second.dropLast() + "Connection: Upgrade\r\nUpgrade: \(name)\r\n\r\n"
        let answer = try await Self.exchange(request + Self.second, site)
        #expect(Self.statuses(answer) == ["200"], "\(answer)")
        #expect(answer.lowercased().contains("\r\nconnection: close\r\n"), "\(answer)")
        try await site.stop()
    }

    /// RFC 9112 §7.1: HTTP/1.0 has no chunks.
    @Test func aStreamToHTTP10HasNoChunks() async throws {
        let site = try await ServiceSite()
        let request = "GET \(Wire.base)/events HTTP/1.0\r\nHost: localhost\r\n\r\n"
        let answer = try await Self.converse([(request, "event: totals\n")], site)
        #expect(Self.statuses(answer) == ["200"])
        #expect(answer.contains("\r\n\r\n: towline\n"), "\(answer)")
        #expect(!answer.lowercased().contains("transfer-encoding"), "\(answer)")
        try await site.stop()
    }

    @Test func aConnectionOfHTTP10Closes() async throws {
        // The service closes the connection; it does not wait for its idle timeout.
        let site = try await ServiceSite { $0.idleTimeout = .seconds(50) }
        let request = "GET \(Wire.base)/health HTTP/1.0\r\nHost: localhost\r\n\r\n"
        let answer = try await Self.exchange(request, site)
        #expect(Self.statuses(answer) == ["200"])
        #expect(!answer.hasSuffix(Self.open))
        try await site.stop()
    }
}
