import FaultServer
import Foundation
import Testing
import Towline
import TowlineWire

/// Clients that do not read their responses, and the memory that the kernel holds for a client.
@Suite(.timeLimit(.minutes(1))) struct UnreadResponseTests {
    /// A connection over TCP. Its calls run on a separate thread, because the service needs the cooperative threads.
    private struct Client: Sendable {
        let descriptor: Int32
        let site: ServiceSite

        /// - Parameter isSmall: `true` for a small receive buffer, which unread responses fill soon.
        init(_ site: ServiceSite, isSmall: Bool = true) throws {
            self.site = site
            descriptor = try RawExchange.connect(.port(site.port))
            guard isSmall else { return }
            var size: Int32 = 4096
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }

        private func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: body()) }
            }
        }

        /// Returns a GET request, or a POST request with a body.
        static func request(_ target: String, _ fields: String = "", body: String = "") -> String {
            let length = body.isEmpty ? "" : "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
            let method = body.isEmpty ? "GET" : "POST"
            return "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(fields)\(length)\r\n\(body)"
        }

        func send(_ text: String, closing: Bool = false) async {
            await blocking {
                RawExchange.write(Array(text.utf8), to: descriptor)
                if closing { shutdown(descriptor, Int32(SHUT_WR)) }
            }
        }

        /// Reads until the response contains a text, or until the service closes the connection.
        func read(until text: String) async -> String {
            await blocking {
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 65536)
                while !Data(bytes.suffix(65536 + text.utf8.count)).contains(text) {
                    let count = Glibc.read(descriptor, &buffer, buffer.count)
                    guard count > 0 else { break }
                    bytes += buffer[..<count]
                }
                return String(decoding: bytes, as: UTF8.self)
            }
        }

        /// Reads until the service closes the connection, and returns the number of bytes.
        func readAll() async -> Int { await blocking { RawExchange.readAll(descriptor).count } }

        /// Waits until the service resets the connection, and reads nothing.
        func isReset() async -> Bool {
            await blocking {
                var entry = pollfd(fd: descriptor, events: 0, revents: 0)
                return poll(&entry, 1, 20_000) == 1 && entry.revents & Int16(POLLERR | POLLHUP) != 0
            }
        }

        /// Returns a socket option of the service's end of the connection, which is in this process.
        func serverOption(_ name: Int32) throws -> Int32 {
            let own = Self.port(descriptor, getsockname)
            for peer in Int32(3)..<4096 where Self.port(peer, getpeername) == own {
                guard Self.port(peer, getsockname) == site.port else { continue }
                var value: Int32 = 0
                var size = socklen_t(MemoryLayout<Int32>.size)
                guard getsockopt(peer, SOL_SOCKET, name, &value, &size) == 0 else { break }
                return value
            }
            throw RawExchange.Unreachable(number: errno)
        }

        private static func port(
            _ descriptor: Int32,
            _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
        ) -> Int? {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, &size) }
            }
            return result == 0 && address.sin_family == AF_INET ? Int(UInt16(bigEndian: address.sin_port)) : nil
        }

        func close() { Glibc.close(descriptor) }
    }

    private static func token(_ site: ServiceSite) -> String {
        "Authorization: Bearer \(site.service.token.text)\r\n"
    }

    /// Fills the connection of a stranger with unread responses, and waits until the service resets it.
    private static func expectReset(_ site: ServiceSite, _ request: String) async throws {
        let stranger = try Client(site)
        await stranger.send(String(repeating: request, count: 4000))
        #expect(await stranger.isReset())
        stranger.close()
    }

    private static func site(stranger: Duration, authenticated: Duration) async throws -> ServiceSite {
        try await ServiceSite(["/film.mkv": Resource(length: 32 << 20)]) {
            $0.strangerStallTimeout = stranger
            $0.stallTimeout = authenticated
        }
    }

    @Test func aStrangerThatReadsNothingIsDisconnected() async throws {
        let site = try await Self.site(stranger: .milliseconds(300), authenticated: .seconds(600))
        for request in [
            Client.request("/page/addDialog.js"), Client.request("/"), Client.request("/api/v1/totals"),
            Client.request("/api/v1/session", body: #"{"token":"x"}"#),
        ] { try await Self.expectReset(site, request) }
        try await site.stop()
    }

    /// A player that pauses a film reads nothing for minutes, and then continues.
    @Test func aPausedFilmContinues() async throws {
        let site = try await Self.site(stranger: .milliseconds(300), authenticated: .seconds(600))
        let id = try await site.add("/film.mkv")
        try await site.wait(id, for: .finished)
        let player = try Client(site, isSmall: false)
        await player.send(Client.request("/api/v1/downloads/\(id)/content", Self.token(site) + "Connection: close\r\n"))
        var film = await player.read(until: "\r\n\r\n").utf8.count
        try await Self.expectReset(site, Client.request("/page/addDialog.js"))
        film += await player.readAll()
        #expect(film > 32 << 20)
        player.close()
        try await site.stop()
    }

    @Test func anAuthenticatedClientHasALimitToo() async throws {
        let site = try await Self.site(stranger: .milliseconds(100), authenticated: .milliseconds(500))
        let id = try await site.add("/film.mkv")
        try await site.wait(id, for: .finished)
        try await Self.expectReset(site, Client.request("/api/v1/downloads/\(id)/content", Self.token(site)))
        try await site.stop()
    }

    /// A stream without events has no unread bytes. It stays open for longer than the limits of responses.
    @Test func anIdleEventStreamStaysOpen() async throws {
        let site = try await Self.site(stranger: .milliseconds(100), authenticated: .milliseconds(100))
        let listener = try Client(site)
        await listener.send(Client.request("/api/v1/events", Self.token(site)))
        #expect(await listener.read(until: "event: totals").contains(" 200 "))
        for _ in 0..<3 { try await Self.expectReset(site, Client.request("/page/addDialog.js")) }
        _ = try await site.add("/film.mkv")
        #expect(await listener.read(until: "event: added").contains("event: added"))
        listener.close()
        try await site.stop()
    }

    /// 64 KiB for strangers. With the token or a session, the kernel adapts the size.
    @Test func theKernelHoldsLittleForStrangers() async throws {
        let site = try await ServiceSite()
        let cookie = "Cookie: \(try await site.cookie())\r\n"
        let signIn = Client.request("/api/v1/session", body: #"{"token":"\#(site.service.token.text)"}"#)
        let requests: [(text: String, isAuthenticated: Bool)] = [
            (Client.request("/"), false), (Client.request("/api/v1/health"), false),
            (Client.request("/api/v1/totals"), false),
            (Client.request("/api/v1/totals", "Authorization: Bearer x\r\n"), false),
            (Client.request("/api/v1/totals", Self.token(site)), true), (Client.request("/", cookie), true),
            (Client.request("/api/v1/downloads/x", cookie), true), (signIn, true),
        ]
        let bufferLock: Int32 = 72
        for (text, isAuthenticated) in requests {
            let client = try Client(site)
            await client.send(Client.request("/api/v1/health"))
            _ = await client.read(until: "\r\n\r\n")
            #expect(try client.serverOption(SO_SNDBUF) <= 64 << 10)
            #expect(try client.serverOption(SO_RCVBUF) <= 64 << 10)
            await client.send(text)
            _ = await client.read(until: "\r\n\r\n")
            #expect(try (client.serverOption(bufferLock) == 0) == isAuthenticated, "\(text)")
            client.close()
        }
        try await site.stop()
    }

    /// A client that keeps its side open after the last response, and has sent another request, is disconnected.
    @Test func theConnectionOfALastResponseIsClosed() async throws {
        let site = try await ServiceSite { $0.idleTimeout = .milliseconds(200) }
        let last = Client.request("/api/v1/health", "Connection: close\r\n")
        for more in ["", Client.request("/api/v1/health")] {
            let client = try Client(site)
            await client.send(last + more)
            #expect(await client.read(until: "(never)").components(separatedBy: "HTTP/1.1 200 OK").count == 2)
            while (try? client.serverOption(SO_TYPE)) != nil { try await Task.sleep(for: .milliseconds(10)) }
            client.close()
        }
        try await site.stop()
    }

    /// A client may send all its requests and close its side before it reads.
    @Test func pipelinedRequestsAreAllAnswered() async throws {
        let site = try await ServiceSite()
        let client = try Client(site)
        await client.send(String(repeating: Client.request("/api/v1/health"), count: 300), closing: true)
        let answers = await client.read(until: "(never)")
        #expect(answers.components(separatedBy: "HTTP/1.1 200 OK").count == 301)
        client.close()
        try await site.stop()
    }
}

extension Data {
    fileprivate func contains(_ text: String) -> Bool { range(of: Data(text.utf8)) != nil }
}
