import Glibc
import TestServers
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

/// A listener on another loopback address that never responds. Its owner must keep a reference.
private final class MuteListener {
    /// The kind of silence.
    enum Kind {
        /// The listener's queue is full: no connection is opened, as with a dead node.
        case silent
        /// Connections are opened, but no bytes are sent.
        case accepting
    }

    private var descriptors: [Int32] = []

    /// - Parameter last: The last number of an address in 127.0.77.0/24.
    init(last: UInt8, port: UInt16, _ kind: Kind) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptors.append(listener)
        let isBound = Self.withAddress(last, port) { bind(listener, $0, $1) == 0 }
        #expect(isBound && listen(listener, kind == .silent ? 0 : 16) == 0)
        guard kind == .silent else { return }
        for _ in 0..<3 {
            let client = socket(
                AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
            descriptors.append(client)
            _ = Self.withAddress(last, port) { connect(client, $0, $1) }
        }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    private static func withAddress<Result>(
        _ last: UInt8, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = (UInt32(0x7F00_4D00) | UInt32(last)).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

extension CurlTransportTests {
    /// Hosts with several addresses (RFC 8305). `--resolve` gives the addresses, so that no name server is needed.
    @Suite struct AddressRaceTests {
        private func options(
            _ server: ScriptedServer, _ addresses: [String], _ change: (inout ConnectionOptions) -> Void = { _ in }
        ) -> ConnectionOptions {
            .with {
                $0.fixedAddresses = [.init(host: "many.test", port: Int(server.port), addresses: addresses)]
                $0.connectTimeout = .seconds(60)
                change(&$0)
            }
        }

        private func url(_ server: ScriptedServer) -> String { "http://many.test:\(server.port)/" }

        @Test("Silent addresses do not delay an attempt", arguments: [1, 3])
        func silent(count: UInt8) async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let listeners = (1...count).map { MuteListener(last: $0, port: server.port, .silent) }
            let addresses = (1...count).map { "127.0.77.\($0)" } + ["127.0.0.1"]
            let clock = ContinuousClock.now
            let record = await run(.make(url(server), connection: options(server, addresses)))
            #expect(record.body == Array("body".utf8), "\(describe(record.end))")
            // libcurl alone spends half of the 60 s on the first address.
            #expect(clock.duration(to: .now) < .seconds(15))
            #expect(server.requestHeads.last?.contains("Host: many.test:\(server.port)\r\n") == true)
            withExtendedLifetime(listeners) {}
        }

        @Test("A refused address is skipped at once, and the first one that works stays in use")
        func refused() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let transport = CurlTransport()
            for _ in 0..<3 {
                let record = await run(
                    .make(url(server), connection: options(server, ["127.0.77.9", "127.0.0.1"])), on: transport)
                #expect(record.body.count == 4, "\(describe(record.end))")
            }
            await transport.shutdown()
        }

        @Test("An address that accepts and never responds comes last in the next attempt")
        func mute() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let listener = MuteListener(last: 4, port: server.port, .accepting)
            let options = options(server, ["127.0.77.4", "127.0.0.1"]) { $0.headTimeout = .milliseconds(200) }
            let transport = CurlTransport()
            let first = await run(.make(url(server), connection: options), on: transport)
            #expect(first.end?.failureKind == .headTimedOut)
            let second = await run(.make(url(server), connection: options), on: transport)
            #expect(second.body.count == 4, "\(describe(second.end))")
            await transport.shutdown()
            withExtendedLifetime(listener) {}
        }

        @Test("If all addresses are silent, the time limit ends the attempt, and no descriptor is left")
        func allSilent() async throws {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let listeners = (5...6).map { MuteListener(last: $0, port: server.port, .silent) }
            let transport = CurlTransport()
            let before = try openDescriptors()
            let options = options(server, ["127.0.77.5", "127.0.77.6"]) { $0.connectTimeout = .milliseconds(900) }
            let record = await run(.make(url(server), connection: options), on: transport)
            #expect(record.end?.failureKind == .connectTimedOut)
            // The thread of the transport and its two descriptors are new.
            #expect(try openDescriptors() <= before + 4)
            await transport.shutdown()
            withExtendedLifetime(listeners) {}
        }

        @Test("With IPv6 only, an IPv4 address is not used")
        func family() async {
            let server = ScriptedServer(responses: { _ in response("body") })
            defer { server.close() }
            let options = options(server, ["127.0.0.1"]) { $0.addressFamily = .ipv6 }
            let record = await run(.make(url(server), connection: options))
            #expect(record.end?.failureMessage?.contains("(-6)") == true, "\(describe(record.end))")
            #expect(server.connectionCount == 0)
        }
    }
}
