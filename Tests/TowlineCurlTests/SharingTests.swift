import FaultServer
import Glibc
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    /// Tests which attempts are streams of one connection.
    @Suite(.enabled(if: Programs.areThere(Programs.openssl))) struct SharingTests {
        private static func withServer(
            _ faults: [String: Fault] = [:], _ body: (Site, CurlTransport) async throws -> Void
        ) async throws {
            let folder = try TemporaryFolder()
            let certificates = try Certificates(in: folder)
            var options = ServerOptions()
            options.http2 = true
            options.tls = ServerOptions.TLS(
                certificateChain: folder.path + "/good.pem", privateKey: folder.path + "/good.key")
            var files = ["/small": Resource(length: 1000)]
            for (path, fault) in faults { files[path] = Resource(length: 100_000, behaviour: .always(fault)) }
            let server = try await FaultServer.start(files, options: options)
            let transport = CurlTransport()
            try await body(Site(server: server, authority: certificates.authority), transport)
            await transport.shutdown()
            await server.stop()
        }

        private struct Site {
            let server: FaultServer
            let authority: String

            func request(_ path: String, _ sharing: ConnectionSharing = .one) -> AttemptRequest {
                AttemptRequest.make(
                    server.url(path), connection: .with { $0.certificateAuthorityFile = authority },
                    sharing: sharing)
            }

            /// Returns the connection of each request for the path, in order.
            func connections(_ path: String) -> [Int] { server.log.requests(path).map(\.info.connection) }
        }

        @Test(
            "attempts that may share a connection do, also concurrently, and no others",
            arguments: [(.none, 8, 8), (.one, 8, 1), (.several, 264, ConnectionSharing.connections)]
                as [(ConnectionSharing, Int, Int)])
        func together(_ sharing: ConnectionSharing, _ count: Int, _ expected: Int) async throws {
            let gate = Gate()
            try await Self.withServer(["/gated": .wait(after: 500, for: gate)]) { site, transport in
                let receivers = (0..<count).map { _ in RecordingReceiver() }
                for receiver in receivers {
                    transport.start(site.request("/gated", sharing), receiver: receiver)
                }
                await site.server.log.wait { $0.requests("/gated").count == count }
                gate.open()
                for receiver in receivers { #expect(await receiver.finished().body.count == 100_000) }
                let streams = Dictionary(grouping: site.connections("/gated")) { $0 }.mapValues(\.count)
                #expect(streams.count == expected, "\(streams)")
                #expect(sharing != .several || streams.values.allSatisfy { $0 <= ConnectionSharing.streams })
            }
        }

        @Test(
            "bytes sent by streams of one connection are gathered briefly, and no longer", arguments: [false, true])
        func gathered(isShared: Bool) async throws {
            try await Self.withServer { site, transport in
                var quickest = Duration.seconds(60)
                for number in 0..<6 {
                    let receiver = RecordingReceiver()
                    let start = ContinuousClock.now
                    transport.start(site.request("/small", isShared ? .one : .none), receiver: receiver)
                    #expect(await receiver.finished().body.count == 1000)
                    // The first answer shows that streams share the connection.
                    if number > 0 { quickest = min(quickest, ContinuousClock.now - start) }
                }
                // The kernel would send the bytes after 200 ms (tcp(7)).
                #expect(quickest < .milliseconds(150))
                #expect(Self.corked(port: site.server.port) == (isShared ? [true] : [false]))
            }
        }

        /// Returns for each of this process's connections to a port whether the kernel holds back sent bytes
        /// (TCP_CORK).
        private static func corked(port: Int) -> [Bool] {
            (3..<1024).compactMap { (descriptor: Int32) -> Bool? in
                var address = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let code = withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
                }
                guard code == 0, address.sin_family == AF_INET, Int(UInt16(bigEndian: address.sin_port)) == port else {
                    return nil
                }
                var (value, size): (Int32, socklen_t) = (0, 4)
                return getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &value, &size) == 0 && value != 0
            }
        }

        @Test("each stream is notified when no more of its bytes are available, and can then end alone")
        func rests() async throws {
            let gate = Gate()
            try await Self.withServer(["/gated": .wait(after: 60_000, for: gate)]) { site, transport in
                let receivers = (0..<6).map { number in
                    RecordingReceiver(onRest: { number > 0 || $0.body.count < 30_000 })
                }
                for receiver in receivers { transport.start(site.request("/gated"), receiver: receiver) }
                for receiver in receivers.dropFirst() { await receiver.until { $0.restedAt == 60_000 } }
                #expect(await receivers[0].finished().end?.isStopped == true)
                gate.open()
                for receiver in receivers.dropFirst() { #expect(await receiver.finished().body.count == 100_000) }
                for receiver in receivers { expectInOrder(receiver) }
            }
        }

        @Test("a connection with a stalled stream gets no more streams", arguments: ["/before", "/after"])
        func silent(_ path: String) async throws {
            let faults = ["/before": Fault.stallBeforeHead, "/after": Fault.stall(after: 500)]
            try await Self.withServer(faults) { site, transport in
                let receiver = RecordingReceiver()
                let request = site.request(path)
                transport.start(request, receiver: receiver)
                await site.server.log.wait { $0.requests(path).count == 1 }
                if path == "/after" {
                    await receiver.until { $0.body.count == 500 }
                    // A response counts as silent after a second without a byte.
                    try await Task.sleep(for: .milliseconds(1100))
                }
                transport.cancel(request.id)
                _ = await receiver.finished()
                _ = await run(site.request("/small"), on: transport)
                let old = site.connections(path)
                #expect(old != site.connections("/small"))
                // The connection receives no more bytes: it is not kept for a minute as others are.
                let began = ContinuousClock.now
                await site.server.log.wait { $0.connections[old[0]].closed != nil }
                #expect(ContinuousClock.now - began < .seconds(20))
            }
        }

        @Test("one connection for each attempt with HTTP/2 prior knowledge: libcurl 7.88 cannot reuse one")
        func unasked() async throws {
            var options = ServerOptions()
            options.http2 = true
            let server = try await FaultServer.start(["/small": Resource(length: 1000)], options: options)
            let transport = CurlTransport()
            for sharing in [ConnectionSharing.one, .several, .none, .none] {
                let record = await run(
                    .make(
                        server.url("/small"), connection: .with { $0.httpProtocol = .http2PriorKnowledge },
                        sharing: sharing), on: transport)
                #expect(record.body.count == 1000, "\(record.end as Any)")
            }
            #expect(Set(server.log.requests("/small").map(\.info.connection)).count == 4)
            await transport.shutdown()
            await server.stop()
        }

        @Test("a stream that ends midway does not cost its connection")
        func ended() async throws {
            try await Self.withServer(["/slow": .stall(after: 500)]) { site, transport in
                let receiver = RecordingReceiver()
                let request = site.request("/slow")
                transport.start(request, receiver: receiver)
                await receiver.until { $0.body.count == 500 }
                transport.cancel(request.id)
                _ = await receiver.finished()
                let stopping = RecordingReceiver(onHead: { _ in .stop })
                transport.start(site.request("/slow"), receiver: stopping)
                let stopped = await stopping.finished().end;
                #expect(describe(stopped) == "stopped", "\(stopped as Any)")
                let record = await run(site.request("/small"), on: transport)
                #expect(record.body.count == 1000, "\(record.end as Any)")
                let used = site.connections("/slow") + site.connections("/small")
                #expect(Set(used).count == 1, "\(used)")
            }
        }
    }
}
