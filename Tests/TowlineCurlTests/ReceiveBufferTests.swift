import Glibc
import Synchronization
import TestServers
import Testing
import TowlineCore
import TowlineEngine

@testable import TowlineCurl

extension CurlTransportTests {
    /// The receive buffer of a connection follows the rate limit of its receiver.
    @Suite struct ReceiveBufferTests {
        /// Takes 16 KiB in 5 ms while it has a limit, and everything at once otherwise.
        private final class LimitedReceiver: AttemptReceiver {
            private let limit: Atomic<Int64>
            private let count = Atomic<Int>(0)
            private let isTurn = Atomic<Bool>(false)
            private let hasEnded = Atomic<Bool>(false)

            init(limit: Int64) { self.limit = Atomic(limit) }

            var rateLimit: Int64? { limit.load(ordering: .relaxed) == 0 ? nil : limit.load(ordering: .relaxed) }
            var received: Int { count.load(ordering: .relaxed) }
            var isOver: Bool { hasEnded.load(ordering: .relaxed) }
            func setLimit(_ rate: Int64) { limit.store(rate, ordering: .relaxed) }

            func receivedHead(_ head: ResponseHead) -> HeadDisposition { .proceed }

            func receivedBody(_ bytes: UnsafeRawBufferPointer) -> BodyDisposition {
                let mayTake = isTurn.exchange(false, ordering: .relaxed)
                guard rateLimit == nil || mayTake else {
                    isTurn.store(true, ordering: .relaxed)
                    return .pauseFor(.milliseconds(5))
                }
                count.add(bytes.count, ordering: .relaxed)
                return .consumed
            }

            func ended(_ end: AttemptEnd) { hasEnded.store(true, ordering: .relaxed) }
        }

        /// Sends bytes without an end.
        private static func endless() -> ScriptedServer {
            ScriptedServer { connection, server in
                guard server.head(from: connection) != nil else { return }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                while connection.send([UInt8](repeating: 7, count: 256 << 10)) {}
            }
        }

        /// The receive buffer of a connection: its size and the number of unread bytes, and whether the system chooses
        /// the size. How far the system then increases it depends on the speed of the machine.
        private struct Buffer {
            var size: Int32 = 0
            var unread: Int32 = 0
            var isAdapted = false
        }

        /// Returns the receive buffer of this process's connection to a port; `nil` if there is no connection.
        private func buffer(toPort port: UInt16) -> Buffer? {
            for descriptor in Int32(3)..<1024 {
                var address = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let code = withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
                }
                guard code == 0, address.sin_family == AF_INET, address.sin_port == port.bigEndian else { continue }
                var buffer = Buffer()
                var lock = Int32(0)
                var count = socklen_t(MemoryLayout<Int32>.size)
                getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer.size, &count)
                // SO_BUF_LOCK (Linux 5.14) with the bit SOCK_RCVBUF_LOCK. Before, only a larger size shows it.
                let hasLock = getsockopt(descriptor, SOL_SOCKET, 72, &lock, &count) == 0
                buffer.isAdapted = hasLock ? lock & 2 == 0 : buffer.size > 1 << 20
                _ = ioctl(descriptor, UInt(FIONREAD), &buffer.unread)
                return buffer
            }
            return nil
        }

        private func wait(until condition: () -> Bool) async {
            let clock = ContinuousClock()
            let start = clock.now
            while !condition() {
                guard clock.now - start < .seconds(60) else {
                    Issue.record("still not so after a minute")
                    return
                }
                try? await Task.sleep(for: .milliseconds(2))
            }
        }

        @Test("a limit that is set during a response makes the buffer small; without it the system chooses")
        func limitComesAndGoes() async {
            let server = Self.endless()
            defer { server.close() }
            let transport = CurlTransport()
            let receiver = LimitedReceiver(limit: 0)
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: receiver)
            await wait { buffer(toPort: server.port)?.isAdapted ?? false }
            receiver.setLimit(3_000_000)
            await wait {
                guard let buffer = buffer(toPort: server.port) else { return false }
                return !buffer.isAdapted && buffer.size <= 512 << 10 && buffer.unread > 0 && buffer.unread <= 512 << 10
            }
            receiver.setLimit(0)
            await wait { buffer(toPort: server.port)?.isAdapted ?? false }
            transport.cancel(request.id)
            await wait { receiver.isOver }
            await transport.shutdown()
        }

        @Test("a response with a limit never has more unread bytes than promised, from its first byte")
        func limitFromTheStart() async {
            let server = Self.endless()
            defer { server.close() }
            let transport = CurlTransport()
            let receiver = LimitedReceiver(limit: 3_000_000)
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: receiver)
            var most: Int32 = 0
            await wait {
                most = max(most, buffer(toPort: server.port)?.unread ?? 0)
                return receiver.received > 4_000_000
            }
            #expect(most > 0 && most <= 512 << 10, "\(most)")
            transport.cancel(request.id)
            await transport.shutdown()
        }

        @Test("a connection that a limited response leaves is not slow for the next response")
        func reusedConnection() async {
            let server = ScriptedServer { connection, server in
                guard server.head(from: connection) != nil else { return }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                connection.send([UInt8](repeating: 7, count: 1_000_000))
                guard server.head(from: connection) != nil else { return }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                while connection.send([UInt8](repeating: 7, count: 256 << 10)) {}
            }
            defer { server.close() }
            let transport = CurlTransport()
            let limited = LimitedReceiver(limit: 3_000_000)
            transport.start(.make(server.url()), receiver: limited)
            await wait { limited.isOver }
            #expect(buffer(toPort: server.port)?.isAdapted == false)
            let receiver = LimitedReceiver(limit: 0)
            let request = AttemptRequest.make(server.url())
            transport.start(request, receiver: receiver)
            await wait { buffer(toPort: server.port)?.isAdapted ?? false }
            #expect(server.connectionCount == 1)
            transport.cancel(request.id)
            await transport.shutdown()
        }
    }
}
