import FaultServer
import ShapingProxy
import Testing

@Suite(.serialized) struct ShapingProxyTests {
    private static let request = "GET /file HTTP/1.1\r\nConnection: close\r\n\r\n"

    private func withProxy<Result>(
        _ options: ShapingOptions = ShapingOptions(), length: Int64 = 100_000,
        _ body: (ShapingProxy) async throws -> Result
    ) async throws -> Result {
        try await withFile(length: length) { server in
            let proxy = try ShapingProxy(to: UInt16(server.port), options)
            async let failure = blocking { () -> SocketFailure? in
                do throws(SocketFailure) {
                    try proxy.run()
                    return nil
                } catch { return error }
            }
            let result = try await body(proxy)
            proxy.stop()
            #expect(await failure == nil)
            return result
        }
    }

    private func get(_ proxy: ShapingProxy, silence: Double = 60, limit: Int = 1 << 24) async -> Received {
        await RawClient.exchange(port: Int(proxy.port), Self.request, silence: silence, limit: limit)
    }

    /// Measures the time that `body` takes to receive the first `length` bytes of the file with each client. A busy
    /// machine can only increase the time. Each time must be at least `least`; the measurement is repeated, up to ten
    /// times, until one time is at most `most`.
    private func expectTime(
        atLeast least: Duration, atMost most: Duration, length: Int64, _ body: () async throws -> [Received]
    ) async throws {
        var times: [Duration] = []
        repeat {
            // A link accumulates 50 ms of unused rate. Each measurement begins with the full amount.
            try await Task.sleep(for: .milliseconds(60))
            let start = ContinuousClock.now
            let received = try await body()
            times.append(ContinuousClock.now - start)
            // The comparison takes time too, so it is not part of the measured time.
            for one in received where length > 0 { #expect(one.isContent(0..<length)) }
        } while times[times.count - 1] > most && times.count < 10
        #expect(times.allSatisfy { $0 >= least }, "\(times)")
        #expect(times.contains { $0 <= most }, "\(times)")
    }

    @Test func forwards() async throws {
        try await withProxy(length: 10_000_000) { proxy in
            let received = await get(proxy)
            #expect(received.isContent(0..<10_000_000))
            #expect(received.ending == .closed)
            proxy.stop()
            await stopped(proxy)
            #expect(proxy.statistics.accepted == 1)
            #expect(proxy.statistics.mostOpen == 1)
            #expect(proxy.statistics.bytes == Int64(received.bytes.count))
        }
    }

    /// The link of a connection accumulates at most 50 ms of unused rate while the server prepares its response.
    @Test func keepsTheRateOfAConnection() async throws {
        var options = ShapingOptions()
        options.rate = 4_000_000
        try await withProxy(options, length: 2_000_000) { proxy in
            try await expectTime(atLeast: .milliseconds(450), atMost: .milliseconds(525), length: 2_000_000) {
                [await get(proxy)]
            }
        }
    }

    /// An idle link accumulates 50 ms of unused rate. The link is idle for longer before each measurement.
    @Test func connectionsShareTheTotalRate() async throws {
        var options = ShapingOptions()
        options.totalRate = 8_000_000
        try await withProxy(options, length: 1_000_000) { proxy in
            try await expectTime(atLeast: .milliseconds(450), atMost: .milliseconds(500), length: 1_000_000) {
                await withTaskGroup(of: Received.self) { group in
                    for _ in 0..<4 { group.addTask { await get(proxy) } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
            }
        }
    }

    @Test func aRoundTripForTheHandshakeAndOneForTheAnswer() async throws {
        var options = ShapingOptions()
        options.delay = 100_000_000
        try await withProxy(options) { proxy in
            // The server, a debug build, may take a few milliseconds.
            try await expectTime(atLeast: .milliseconds(199), atMost: .milliseconds(212), length: 0) {
                [await get(proxy, limit: 1)]
            }
        }
    }

    @Test func aWindowLimitsAConnection() async throws {
        var options = ShapingOptions()
        options.delay = 50_000_000
        options.window = 100_000
        // Ten windows, each one round trip after the previous window. The first window takes two round trips.
        try await withProxy(options, length: 990_000) { proxy in
            try await expectTime(atLeast: .milliseconds(545), atMost: .milliseconds(590), length: 990_000) {
                [await get(proxy)]
            }
        }
    }

    @Test func slowStartDoublesTheWindowEachRoundTrip() async throws {
        var options = ShapingOptions()
        options.delay = 50_000_000
        options.slowStart = true
        // 14,600 × (1 + 2 + 4 + 8) bytes need four windows: three round trips more than the first byte.
        try await withProxy(options, length: 200_000) { proxy in
            try await expectTime(atLeast: .milliseconds(245), atMost: .milliseconds(275), length: 200_000) {
                [await get(proxy)]
            }
        }
    }

    @Test func oneConnectionIsSlow() async throws {
        var options = ShapingOptions()
        options.rate = 10_000_000
        options.slow = [2: 0.02]
        try await withProxy(options, length: 500_000) { proxy in
            // The other rates are below the accumulated amount of a link, so these may take no time.
            for range in [0...2000, 2375...60_000, 0...2000] {
                let start = ContinuousClock.now
                #expect(await get(proxy).isContent(0..<500_000))
                let time = ContinuousClock.now - start
                #expect(time >= .milliseconds(range.lowerBound) && time <= .milliseconds(range.upperBound))
            }
        }
    }

    @Test func oneConnectionFallsSilent() async throws {
        var options = ShapingOptions()
        options.stalled = [1: 5000]
        try await withProxy(options) { proxy in
            let received = await get(proxy, silence: 0.3)
            #expect(received.ending == .silent)
            #expect(received.bytes.count == 5000)
            #expect(await get(proxy).isContent(0..<100_000))
        }
    }

    @Test func resetsAreThoseOfTheSeed() async throws {
        var options = ShapingOptions()
        options.resetAfter = 500...90_000
        options.resets = 4
        options.seed = 4
        let expected = (1...5).map { options.reset(of: $0) }
        #expect(Set(expected).count == 5)
        #expect(expected[4] == nil)
        try await withProxy(options) { proxy in
            var total: Int64 = 0
            for number in 0..<4 {
                let received = await get(proxy)
                #expect(received.ending == .reset)
                total += expected[number] ?? 0
                #expect(Int64(received.bytes.count) <= expected[number] ?? 0)
            }
            #expect(await get(proxy).isContent(0..<100_000))
            proxy.stop()
            await stopped(proxy)
            #expect(proxy.statistics.resets == 4)
            #expect(proxy.statistics.bytes > total + 100_000)
        }
        options.seed = 5
        #expect((1...5).map { options.reset(of: $0) } != expected)
    }

    @Test func diesForGood() async throws {
        var options = ShapingOptions()
        options.diesAfter = 50_000
        options.rate = 1_000_000
        try await withProxy(options) { proxy in
            #expect(await get(proxy).ending == .reset)
            #expect(await get(proxy).ending == .refused)
        }
    }

    /// Waits until the proxy has no open connections, so that its statistics are final.
    private func stopped(_ proxy: ShapingProxy) async {
        while proxy.statistics.open > 0 { await Task.yield() }
    }
}
