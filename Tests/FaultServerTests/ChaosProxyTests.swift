import FaultServer
import Testing

@Suite struct ChaosProxyTests {
    private static let request = "GET /file HTTP/1.1\r\nConnection: close\r\n\r\n"

    private func withProxy<Result>(
        _ options: ChaosOptions = ChaosOptions(), length: Int64 = 100_000, _ behaviour: Behaviour = .correct,
        _ body: (ChaosProxy, FaultServer) async throws -> Result
    ) async throws -> Result {
        try await withFile(length: length, behaviour) { server in
            let proxy = try await ChaosProxy.start(to: server.port, options)
            let result = try await body(proxy, server)
            await proxy.stop()
            return result
        }
    }

    private func get(_ proxy: ChaosProxy, silence: Double = 60) async -> Received {
        await RawClient.exchange(port: proxy.port, Self.request, silence: silence)
    }

    @Test func forwards() async throws {
        try await withProxy(length: 10_000_000) { proxy, _ in
            let received = await get(proxy)
            #expect(received.isContent(0..<10_000_000))
            #expect(received.ending == .closed)
            #expect(proxy.accepted == 1)
            #expect(proxy.bytesForwarded == [0: Int64(received.bytes.count)])
        }
    }

    @Test func delays() async throws {
        var options = ChaosOptions()
        options.latency = .milliseconds(100)
        try await withProxy(options) { proxy, _ in
            let start = ContinuousClock.now
            #expect(await get(proxy).isContent(0..<100_000))
            let time = ContinuousClock.now - start
            #expect(time >= .milliseconds(200))
        }
    }

    @Test func writesSingleBytes() async throws {
        var options = ChaosOptions()
        options.writeLength = 1
        try await withProxy(options, length: 5000) { proxy, _ in
            #expect(await get(proxy).isContent(0..<5000))
        }
    }

    @Test func resetsAfterSomeBytes() async throws {
        var options = ChaosOptions()
        options.reset = .after(1000)
        options.resets = 2
        try await withProxy(options) { proxy, _ in
            for _ in 0..<2 {
                let received = await get(proxy)
                #expect(received.ending == .reset)
                #expect(received.bytes.count <= 1000)
            }
            #expect(await get(proxy).isContent(0..<100_000))
            #expect(proxy.resets == 2)
            #expect(proxy.bytesForwarded[0] == 1000)
        }
    }

    @Test func aSeedDeterminesTheResets() async throws {
        var options = ChaosOptions()
        options.reset = .random(500...90_000, seed: 4)
        var runs: [[Int64?]] = []
        for _ in 0..<2 {
            let counts = try await withProxy(options) { proxy, _ in
                for _ in 0..<4 { #expect(await get(proxy).ending == .reset) }
                return (0..<4).map { proxy.bytesForwarded[$0] }
            }
            runs.append(counts)
        }
        #expect(runs[0] == runs[1])
        #expect(Set(runs[0]).count == 4)
    }

    @Test func swallowsAndGoesOn() async throws {
        let gate = Gate()
        try await withProxy(.always(.wait(after: 10, for: gate))) { proxy, server in
            async let received = get(proxy)
            await server.log.wait { $0.bodyBytesServed("/file") == 10 }
            proxy.swallow()
            gate.open()
            await server.log.wait { $0.bodyBytesServed("/file") == 100_000 }
            #expect(await get(proxy, silence: 0.2).ending == .silent)
            proxy.forward()
            #expect(await received.isContent(0..<100_000))
        }
    }

    @Test func abandonedConnectionsHearNothing() async throws {
        try await withProxy(.first(1, .stall(after: 10))) { proxy, server in
            async let received = get(proxy, silence: 2)
            await server.log.wait { $0.bodyBytesServed("/file") == 10 }
            await proxy.abandonConnections()
            await server.log.wait { $0.openConnections == 0 }
            #expect(await received.ending == .silent)
            #expect(await get(proxy).isContent(0..<100_000))
        }
    }

    @Test func theNetworkIsDownForAWhile() async throws {
        try await withProxy(.first(1, .stall(after: 10))) { proxy, server in
            async let received = get(proxy)
            await server.log.wait { $0.bodyBytesServed("/file") == 10 }
            await proxy.refuseConnections()
            #expect(await received.ending == .reset)
            #expect(await get(proxy).ending == .refused)
            try await proxy.acceptConnections()
            #expect(await get(proxy).isContent(0..<100_000))
        }
    }
}

extension ChaosProxyTests {
    private func withProxy<Result>(
        _ behaviour: Behaviour, _ body: (ChaosProxy, FaultServer) async throws -> Result
    ) async throws -> Result {
        try await withProxy(ChaosOptions(), length: 100_000, behaviour, body)
    }
}
