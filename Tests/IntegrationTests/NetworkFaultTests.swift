import FaultServer
import Foundation
import Testing
import TowlineCore
import TowlineEngine

/// Catalogue B with a proxy in this process: lost packets, resets at any byte, latency (rows 61–64, 68, 70, 71).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct NetworkFaultTests {
    /// Runs `body` with a site behind a chaos proxy.
    private static func through(
        _ resource: Resource = Resource(length: 6_000_000, rate: 3_000_000), _ options: ChaosOptions = ChaosOptions(),
        _ body: (Site, ChaosProxy) async throws -> Void
    ) async throws {
        try await Site.with(try await Site(resource)) { site in
            let proxy = try await ChaosProxy.start(to: site.server.port, options)
            do {
                try await body(site, proxy)
            } catch {
                await proxy.stop()
                throw error
            }
            await proxy.stop()
        }
    }

    private static func options(
        _ site: Site, _ proxy: ChaosProxy, _ change: (inout DownloadOptions) -> Void = { _ in }
    ) throws -> DownloadOptions {
        let url = try HTTPURL(parsing: "http://127.0.0.1:\(proxy.port)\(Site.path)")
        return try site.options {
            $0.url = url
            change(&$0)
        }
    }

    /// Row 61: packets vanish without an error: the stall timeout detects it, and new connections fetch the rest.
    @Test(arguments: [1, 4]) func row61Swallow(connections: Int) async throws {
        try await Self.through { site, proxy in
            let download = Download(
                try Self.options(site, proxy) {
                    $0.connections = connections
                    $0.maximumTries = 0
                    $0.connection.headTimeout = .seconds(2)
                })
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > 1_000_000 }
            let before = proxy.accepted
            proxy.swallow()
            await download.observer.wait { _ in proxy.accepted > before }
            // The withheld bytes belong to connections that the client has closed by now.
            await proxy.resetConnections()
            proxy.forward()
            let end = await outcome
            try site.expectFile(end)
            #expect(Double(end.received) < 1.5 * Double(site.length))
        }
    }

    /// Row 62: hundreds of resets at random bytes: the cost of each one is bounded.
    @Test func row62ResetsAtRandomBytes() async throws {
        let resets = Thoroughness.isTorture ? 1000 : 200
        var options = ChaosOptions()
        options.reset = .random(1...120_000, seed: 62)
        options.resets = resets
        let length = Int64(resets) * 70_000
        try await Self.through(Resource(length: length), options) { site, proxy in
            let outcome = await Download(
                try Self.options(site, proxy) {
                    $0.connections = 4
                    $0.maximumTries = 0
                    $0.retryWait = .milliseconds(1)
                }
            ).run(deadline: .seconds(300))
            try site.expectFile(outcome)
            #expect(proxy.resets > 0)
            // Counts the client's side: forwarded bytes, with the overlap, beyond one file.
            let forwarded = proxy.bytesForwarded.values.reduce(0, +)
            #expect(forwarded - length < Int64(proxy.resets + 8) * (256 << 10), "\(proxy.resets) resets")
        }
    }

    /// Row 62, one connection at a time: each connection is reset, and the download survives each reset.
    @Test func row62EveryConnectionIsReset() async throws {
        let resets = Thoroughness.isTorture ? 1000 : 200
        var options = ChaosOptions()
        options.reset = .random(1...90_000, seed: 1)
        options.resets = resets
        try await Self.through(Resource(length: Int64(resets) * 60_000), options) { site, proxy in
            let outcome = await Download(
                try Self.options(site, proxy) {
                    $0.maximumTries = 0
                    $0.retryWait = .milliseconds(1)
                }
            ).run(deadline: .seconds(300))
            try site.expectFile(outcome)
            #expect(proxy.resets == resets, "\(proxy.resets) resets")
        }
    }

    /// Row 63: the server forgot the connection, and the client receives no packet.
    @Test(arguments: [1, 4]) func row63HalfOpen(connections: Int) async throws {
        try await Self.through { site, proxy in
            let download = Download(try Self.options(site, proxy) { $0.connections = connections })
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > 1_000_000 }
            await proxy.abandonConnections()
            try site.expectFile(await outcome)
        }
    }

    /// Row 64: a long round trip to the server.
    @Test func row64Latency() async throws {
        var options = ChaosOptions()
        options.latency = .milliseconds(100)
        try await Self.through(Resource(length: 3_000_000), options) { site, proxy in
            let outcome = await Download(try Self.options(site, proxy) { $0.connections = 4 }).run()
            try site.expectFile(outcome)
        }
    }

    /// Row 70: every byte in a packet of its own.
    @Test func row70OneByteAtATime() async throws {
        var options = ChaosOptions()
        options.writeLength = 1
        try await Self.through(Resource(length: 60_000), options) { site, proxy in
            try site.expectFile(await Download(try Self.options(site, proxy)).run())
        }
    }

    /// Row 71: there is no network at the start, but later there is one.
    @Test func row71NetworkComesLater() async throws {
        try await Self.through { site, proxy in
            await proxy.refuseConnections()
            let download = Download(try Self.options(site, proxy) { $0.maximumTries = 0 })
            async let outcome = download.run()
            await download.observer.wait { $0.wait != nil }
            try await proxy.acceptConnections()
            try site.expectFile(await outcome)
        }
    }

    /// Row 71: a notification that the network is back ends a wait of ten minutes at once.
    @Test(.enabled("lists are not told", { !Download.isBatch })) func row71NudgeEndsTheWait() async throws {
        try await Self.through { site, proxy in
            await proxy.refuseConnections()
            let download = Download(try Self.options(site, proxy) { $0.retryWait = .seconds(600) })
            async let outcome = download.run(deadline: .seconds(60))
            await download.observer.wait { $0.state == .waiting(.retry) }
            try await proxy.acceptConnections()
            download.nudge()
            try site.expectFile(await outcome)
        }
    }

    /// Row 71: if the network never returns, the download fails and leaves no files.
    @Test func row71NetworkNeverComes() async throws {
        try await Self.through { site, proxy in
            await proxy.refuseConnections()
            let outcome = await Download(try Self.options(site, proxy)).run()
            try site.expectFailure(outcome, .transient)
            #expect(site.scratch.names.isEmpty)
        }
    }

    /// The network fails midway (all connections at once, with resets) and returns.
    @Test func row60NetworkAwayAndBack() async throws {
        try await Self.through { site, proxy in
            let download = Download(
                try Self.options(site, proxy) {
                    $0.connections = 4
                    $0.maximumTries = 0
                })
            async let outcome = download.run()
            await download.observer.wait { $0.heldBytes > 1_000_000 }
            await proxy.refuseConnections()
            await download.observer.wait { $0.wait != nil }
            try await proxy.acceptConnections()
            try site.expectFile(await outcome)
            #expect(Double(site.served) < 2 * Double(site.length))
        }
    }

    /// Row 68: a proxy that requires a password, and one that cuts forwarded bytes.
    @Test func row68ProxyWantsPassword() async throws {
        let proxyReply = Resource(length: 10, behaviour: .always(.proxyAuthenticationRequired))
        try await Site.with(try await Site(more: ["*": proxyReply])) { site in
            let proxy = try await FaultServer.start(["*": proxyReply])
            let port = proxy.port
            let outcome = try await site.download { $0.connection.proxy = "http://127.0.0.1:\(port)" }
            await proxy.stop()
            #expect(!outcome.succeeded)
            #expect(outcome.message.contains("407"), "\(outcome.message)")
            try site.law(outcome)
            #expect(site.requests.isEmpty)
        }
    }

    @Test func row68ProxyTruncates() async throws {
        // A server that receives the absolute form answers as a proxy would.
        try await Site.with(try await Site(.first(4, .shortBody(after: 400_000)))) { site in
            let port = site.server.port
            let outcome = try await site.download {
                $0.url = (try? HTTPURL(parsing: "http://files.invalid\(Site.path)")) ?? $0.url
                $0.connection.proxy = "http://127.0.0.1:\(port)"
            }
            try site.expectFile(outcome)
            #expect(site.requests.allSatisfy { $0.info.target.hasPrefix("http://files.invalid/") })
        }
    }
}
