import Foundation
import Synchronization
import TestServers

/// A server on the loopback interface that handles each connection exactly as a test says, byte by byte: with blocking
/// sockets, and a thread for each connection.
final class ScriptedServer: Sendable {
    /// One accepted connection. Only one thread uses it.
    final class Connection: Sendable {
        let descriptor: Int32
        let index: Int

        fileprivate init(descriptor: Int32, index: Int) {
            self.descriptor = descriptor
            self.index = index
        }

        /// Reads up to the empty line that ends a request head; returns the bytes received so far if the peer closes.
        func readHead() -> String { String(decoding: readHeadBytes(), as: UTF8.self) }

        /// Reads a request head as bytes, like `readHead`.
        func readHeadBytes() -> [UInt8] {
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]), recv(descriptor, &byte, 1, 0) == 1 {
                bytes.append(byte)
            }
            return bytes
        }

        /// Reads exactly `count` bytes, or fewer if the peer closes.
        func read(_ count: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            let got = recv(descriptor, &bytes, count, Int32(MSG_WAITALL))
            return Array(bytes.prefix(max(got, 0)))
        }

        /// Reads an HTTP/2 connection's preface and frames up to the HEADERS frame of the first request.
        func readHTTP2Request(sending settings: [UInt8]) {
            _ = read(24)
            send(settings)
            while case let head = read(9), head.count == 9 {
                _ = read(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
                if head[3] == 1 { break }
            }
        }

        /// Sends all bytes; returns `false` if the peer closed the connection.
        @discardableResult
        func send(_ text: String) -> Bool { send(Array(text.utf8)) }

        /// Sends all bytes; returns `false` if the peer closed the connection.
        @discardableResult
        func send(_ bytes: [UInt8]) -> Bool {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// Ends the sent bytes (FIN), and continues to read: closing with unread bytes would reset the connection.
        func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

        /// Waits until the peer closes or resets.
        func waitForPeer() {
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
        }

        /// Makes the end of the script a reset (RST) instead of an orderly close (FIN).
        func resetOnClose() {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
    }

    let port: UInt16
    private let listener: Int32
    private let heads = Mutex<[String]>([])
    private let connections = Mutex<[Int: Int32]>([:])
    private let count = Atomic<Int>(0)
    private let signal = DispatchSemaphore(value: 0)

    /// Resumes one script that waits in `waitForTest`.
    func proceed() { signal.signal() }

    /// Waits until the test calls `proceed`, at most ten seconds, so that a failed test does not hang.
    func waitForTest() { _ = signal.wait(timeout: .now() + 10) }

    /// The number of connections that were accepted.
    var connectionCount: Int { count.load(ordering: .relaxed) }
    /// The number of connections that are open.
    var openConnectionCount: Int { connections.withLock { $0.count } }
    /// The request heads that `serve` scripts read, in order.
    var requestHeads: [String] { heads.withLock { $0 } }

    /// Listens and runs `script` for each connection, which is closed when the script returns.
    init(_ script: @escaping @Sendable (Connection, ScriptedServer) -> Void) {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        port = Loopback.bind(listener)
        listen(listener, 512)
        let thread = Thread { [self] in acceptAll(script) }
        thread.stackSize = 256 * 1024
        thread.start()
    }

    /// Reads one request head after another and answers each with `response`, until the peer closes.
    convenience init(responses response: @escaping @Sendable (String) -> String) {
        self.init { connection, server in
            while let head = server.head(from: connection) { connection.send(response(head)) }
        }
    }

    /// Reads a request head and records it; `nil` if the peer closed.
    func head(from connection: Connection) -> String? {
        let head = connection.readHead()
        guard !head.isEmpty else { return nil }
        heads.withLock { $0.append(head) }
        return head
    }

    /// Stops listening and closes every connection.
    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
        connections.withLock { for descriptor in $0.values { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    deinit { Glibc.close(listener) }

    func url(_ path: String = "/file") -> String { "http://127.0.0.1:\(port)\(path)" }

    private func acceptAll(_ script: @escaping @Sendable (Connection, ScriptedServer) -> Void) {
        while true {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let index = count.add(1, ordering: .relaxed).oldValue
            connections.withLock { $0[index] = descriptor }
            let thread = Thread { [self] in
                script(Connection(descriptor: descriptor, index: index), self)
                connections.withLock { $0[index] = nil }
                Glibc.close(descriptor)
            }
            thread.stackSize = 256 * 1024
            thread.start()
        }
    }
}
