import FaultServer
import Foundation
import Synchronization
import Testing

@Suite struct ServerTests {
    @Test func aFileChangesAtTheNthRequest() async throws {
        let old = Version(seed: 1, length: 1000)
        let resource = Resource(old, switches: [ContentSwitch(.atRequest(1), to: old.replaced(seed: 2))])
        try await withServer(["/file": resource]) { server in
            #expect(await RawClient.get(server).isContent(0..<1000, seed: 1))
            let changed = await RawClient.get(server)
            #expect(changed.isContent(0..<1000, seed: 2))
            #expect(changed.field("ETag") == "\"2-1000\"")
            server.replace("/file", with: Version(seed: 3, length: 5, etag: .absent))
            #expect(await RawClient.get(server).isContent(0..<5, seed: 3))
            #expect(server.version("/file")?.seed == 3)
        }
    }

    @Test func aFileChangesAfterSomeBytesButNotWithinAResponse() async throws {
        let old = Version(seed: 1, length: 1_000_000)
        let resource = Resource(old, switches: [ContentSwitch(.afterBodyBytes(500_000), to: old.replaced(seed: 2))])
        try await withServer(["/file": resource]) { server in
            #expect(await RawClient.get(server, "/file", ["Range: bytes=0-99"]).isContent(0..<100))
            #expect(await RawClient.get(server).isContent(0..<1_000_000, seed: 1))
            #expect(await RawClient.get(server).isContent(0..<1_000_000, seed: 2))
        }
    }

    @Test func aRateIsKept() async throws {
        try await withFile(length: 100_000, rate: 200_000) { server in
            let start = ContinuousClock.now
            #expect(await RawClient.get(server).isContent(0..<100_000))
            let time = ContinuousClock.now - start
            #expect(time > .milliseconds(450))
        }
    }

    @Test func aRateOfAllIsKeptUntilItIsLifted() async throws {
        var options = ServerOptions()
        options.sharedRate = 400_000
        try await withFile(length: 8_000_000, options: options) { server in
            let start = ContinuousClock.now
            async let response = RawClient.get(server)
            await server.log.wait { $0.bodyBytesServed("/file") >= 200_000 }
            #expect(ContinuousClock.now - start > .milliseconds(300))
            server.liftSharedRate()
            #expect(await response.isContent(0..<8_000_000))
            // With the limit, the response would take twenty seconds.
            #expect(ContinuousClock.now - start < .seconds(10))
        }
    }

    @Test func onlySoManyRequestsAtOneTime() async throws {
        let gate = Gate()
        let behaviour = Behaviour { context in
            let limited = Fault.connectionLimit(1).make(context)
            return limited.status == 503 ? limited : Fault.wait(after: 10, for: gate).make(context)
        }
        try await withFile(length: 1000, behaviour) { server in
            async let first = RawClient.get(server)
            await server.log.wait { $0.bodyBytesServed("/file") == 10 }
            #expect(await RawClient.get(server).status == 503)
            gate.open()
            #expect(await first.isContent(0..<1000))
            await server.log.allEnded()
            #expect(await RawClient.get(server).isContent(0..<1000))
        }
    }

    /// A client that sends its next request after the complete response has one request at a time, even if the server's
    /// last write returns late.
    @Test(arguments: [0, 1000, 600_000]) func aReceivedResponseDoesNotCountAsRunning(_ length: Int64) async throws {
        let most = Atomic(0)
        let behaviour = Behaviour { context in
            most.max(context.request.concurrent, ordering: .relaxed)
            return context.correct
        }
        try await withFile(length: length, behaviour) { server in
            let whole = await RawClient.get(server).bytes.count
            await withTaskGroup { clients in
                for _ in 0..<3 {
                    clients.addTask {
                        for _ in 0..<200 { _ = await RawClient.get(server, limit: whole) }
                    }
                }
            }
            #expect(most.load(ordering: .relaxed) <= 3)
        }
    }

    @Test func aConnectionCanBeTurnedAwayOnArrival() async throws {
        var options = ServerOptions()
        options.onAccept = { $0.number == 0 ? [.reset] : nil }
        try await withFile(length: 10, options: options) { server in
            #expect(await RawClient.get(server).ending == .reset)
            #expect(await RawClient.get(server).status == 200)
        }
    }

    @Test func connectionsAreRefusedForAWhile() async throws {
        try await withFile(length: 10) { server in
            await server.refuseConnections()
            #expect(await RawClient.get(server).ending == .refused)
            try await server.acceptConnections()
            #expect(await RawClient.get(server).status == 200)
        }
    }

    @Test func aPortThatRefusesIsNobodyElses() async throws {
        try await withFile(length: 10) { server in
            await server.refuseConnections()
            #expect(RawClient.isTaken(port: server.port))
            for _ in 0..<3 {
                try await server.acceptConnections()
                #expect(await RawClient.get(server).status == 200)
                await server.refuseConnections()
                #expect(await RawClient.get(server).ending == .refused)
            }
        }
    }

    /// A child process has a copy of every socket between its fork and its exec.
    @Test func aChildThatIsBeingStartedTakesNoConnection() async throws {
        try await withFile(length: 10) { server in
            let copy = try #require(RawClient.copyOfListener(port: server.port))
            defer { close(copy) }
            await server.refuseConnections()
            #expect(await RawClient.get(server).ending == .refused)
        }
    }

    @Test func aChildProcessKeepsNoConnection() async throws {
        try await withFile(length: 1000, .always(.stall(after: 10))) { server in
            async let received = RawClient.get(server)
            await server.log.wait { $0.bodyBytesServed("/file") == 10 }
            // The child runs until its input ends, and would keep an inherited connection open.
            let child = try #require(popen("exec cat >/dev/null", "w"))
            await server.closeConnections(reset: false)
            #expect(await received.ending == .closed)
            pclose(child)
        }
    }

    @Test func aSignedLinkExpires() async throws {
        let link = SignedLink(to: "/signed", uses: 2)
        let resources = [
            "/file": Resource(length: 10, behaviour: link.entrance),
            "/signed": Resource(length: 10, behaviour: link.exit),
        ]
        try await withServer(resources) { server in
            let first = try #require(await RawClient.get(server).field("Location"))
            #expect(await RawClient.get(server, first).status == 200)
            #expect(await RawClient.get(server, first).status == 200)
            #expect(await RawClient.get(server, first).status == 403)
            let second = try #require(await RawClient.get(server).field("Location"))
            #expect(second != first)
            #expect(await RawClient.get(server, second).status == 200)
            link.expire()
            #expect(await RawClient.get(server, second).status == 403)
        }
    }

    @Test func theLogIsWrittenAsJSONLines() async throws {
        try await withDirectory { directory in
            var options = ServerOptions()
            options.logFile = LogFile(path: directory + "/log")
            #expect(options.logFile != nil)
            try await withFile(length: 1000, options: options) { server in
                _ = await RawClient.get(server, "/file?a=\"b\\", ["Range: bytes=0-9"])
            }
            let text = try String(contentsOfFile: directory + "/log", encoding: .utf8)
            let events = try text.split(separator: "\n").map {
                try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            #expect(events.map { $0["event"] as? String } == ["connection", "request", "end", "closed"])
            #expect(events[1]["target"] as? String == "/file?a=\"b\\")
            #expect(events[2]["bodyBytes"] as? Int == 10)
            #expect(events[2]["status"] as? Int == 206)
        }
    }
}
