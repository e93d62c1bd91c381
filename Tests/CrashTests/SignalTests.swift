import FaultServer
import Glibc
import Testing

/// SIGINT and SIGTERM end a run soon and lose no bytes.
@Suite(.serialized) struct SignalTests {
    /// The maximum cost of a signal for each connection in bytes: the compared overlap, and unread bytes in a socket.
    private static let costPerConnection: Int64 = (16 + 64) << 10

    @Test(arguments: [SIGINT, SIGTERM], [1, 8])
    func nothingIsLost(_ signal: Int32, _ connections: Int) async throws {
        let version = Version(seed: 11, length: 6 << 20)
        let server = try await FaultServer.start(["/file": Resource(version, rate: 4 << 20 / Int64(connections))])
        let place = try Workplace()
        let arguments = ["get", "-q", "-x", "\(connections)", "-o", place.file("file"), server.url("/file")]
        let tow = try ChildProcess("tow", arguments)
        await server.log.wait { $0.bodyBytesServed("/file") > 2 << 20 }
        let start = ContinuousClock.now
        tow.signal(signal)
        let ending = await tow.end()
        #expect(start.duration(to: .now) < .seconds(2) + .milliseconds(300))
        #expect(ending.status == 128 + signal, "\(ending)")
        #expect(place.has("file.tow") && !place.has("file"))
        let rest = try await ChildProcess.run("tow", arguments)
        #expect(rest.isSuccess, "\(rest)")
        #expect(place.problem("file", version) == nil)
        await server.log.wait { $0.openConnections == 0 }
        let rework = server.log.bodyBytesServed("/file") - version.length
        print("signal \(signal), -x \(connections): \(rework / 1024) KiB came twice")
        #expect(rework <= Int64(connections) * Self.costPerConnection)
        await server.stop()
    }

    /// Unread standard output delays an orderly end. A second signal ends the process at once.
    @Test func aSecondSignalQuitsNow() async throws {
        let server = try await FaultServer.start(["/file": Resource(length: 64 << 20)])
        let ends = try ChildProcess.pipe()
        defer { for end in ends { close(end) } }
        let tow = try ChildProcess("tow", ["get", "-q", "-o", "-", server.url("/file")], stdout: ends[1])
        await server.log.wait { $0.bodyBytesServed("/file") > 128 << 10 }
        let start = ContinuousClock.now
        tow.signal(SIGTERM)
        // The kernel merges two pending signals into one, and reports only on request when a signal is delivered.
        while tow.hasPendingSignals { await Task.yield() }
        // A signal within 0.1 seconds of the first signal is treated as its duplicate.
        try await Task.sleep(for: .milliseconds(200))
        tow.signal(SIGTERM)
        let ending = await tow.end()
        #expect(start.duration(to: .now) < .seconds(1))
        #expect(ending.status == 143, "\(ending)")
        await server.stop()
    }
}
