import FaultServer
import Foundation
import Testing

/// The way a connection ended, as seen by a client that reads to the end.
enum Ending: Equatable {
    case closed
    case reset
    /// No byte arrived within the timeout.
    case silent
    /// The client reached its limit of bytes.
    case enough
    /// The connection was refused.
    case refused
}

/// The bytes that a client received on a connection, and the way the connection ended.
struct Received {
    var bytes: [UInt8]
    var ending: Ending

    /// The bytes up to the first empty line.
    var head: String { String(decoding: bytes[..<headEnd], as: UTF8.self) }
    /// The bytes after the first empty line.
    var body: [UInt8] { Array(bytes[min(bytes.count, headEnd + 4)...]) }
    var status: Int? { head.split(separator: " ").dropFirst().first.flatMap { Int($0) } }

    func field(_ name: String) -> String? {
        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    private var headEnd: Int {
        bytes.indices.first { bytes[$0...].starts(with: [13, 10, 13, 10]) } ?? bytes.count
    }
}

/// A client with blocking sockets, each on a separate thread, because the server needs the cooperative threads.
enum RawClient {
    /// Sends a GET with `Connection: close` and reads to the end. Only tests that expect silence use a short `silence`,
    /// because a server on a busy machine may need seconds to respond.
    static func get(
        _ server: FaultServer, _ target: String = "/file", _ fields: [String] = [], silence: Double = 60,
        limit: Int = 1 << 24
    ) async -> Received {
        let lines = ["GET \(target) HTTP/1.1", "Host: test", "Connection: close"] + fields
        return await exchange(
            port: server.port, lines.joined(separator: "\r\n") + "\r\n\r\n", silence: silence, limit: limit)
    }

    /// Sends text and reads until the end, `limit` bytes, or `silence` seconds without a byte.
    static func exchange(port: Int, _ text: String, silence: Double = 60, limit: Int = 1 << 24) async -> Received {
        await blocking {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var time = timeval(tv_sec: Int(silence), tv_usec: Int(silence.truncatingRemainder(dividingBy: 1) * 1e6))
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
            let connected = withAddress(port) { connect(descriptor, $0, $1) }
            guard connected == 0 else {
                return Received(bytes: [], ending: errno == ECONNREFUSED ? .refused : .reset)
            }
            let request = Array(text.utf8)
            let sent = send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
            // Only `send` reports a reset before the request. `recv` would then report an orderly end.
            let wasReset = sent < 0 && errno == ECONNRESET
            var received = read(descriptor, limit)
            if wasReset { received.ending = .reset }
            return received
        }
    }

    /// Returns whether a new socket, without address sharing, cannot bind to the port.
    static func isTaken(port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        return withAddress(port) { bind(descriptor, $0, $1) } != 0
    }

    /// Returns a duplicate of the descriptor that listens on the port; `nil` if no descriptor listens.
    static func copyOfListener(port: Int) -> Int32? {
        (3..<1024).lazy.filter { listens($0, port) }.map { fcntl($0, F_DUPFD_CLOEXEC, 3) }.first { $0 >= 0 }
    }

    private static func listens(_ descriptor: Int32, _ port: Int) -> Bool {
        var listening: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0, listening != 0 else {
            return false
        }
        var address = sockaddr_in()
        length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        } == 0 && Int(UInt16(bigEndian: address.sin_port)) == port
    }

    private static func withAddress(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func read(_ descriptor: Int32, _ limit: Int) -> Received {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < limit {
            let count = recv(descriptor, &piece, piece.count, 0)
            if count == 0 { return Received(bytes: bytes, ending: .closed) }
            if count < 0 { return Received(bytes: bytes, ending: errno == EAGAIN ? .silent : .reset) }
            bytes += piece[..<count]
        }
        return Received(bytes: bytes, ending: .enough)
    }
}

extension ServerLog {
    /// Waits until every started response has ended. The log counts bytes after the kernel accepted them, so a client
    /// that knows the length may have received all bytes earlier.
    func allEnded() async { await wait { $0.requests.allSatisfy { $0.ended != nil } } }
}

/// Runs a shell command, and returns its exit status and its standard output.
func shell(_ command: String) async -> (status: Int32, output: String) {
    await blocking {
        guard let pipe = popen(command, "r") else { return (-1, "") }
        var output: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&piece, 1, piece.count, pipe), count > 0 { output += piece[..<count] }
        return (pclose(pipe) >> 8 & 0xFF, String(decoding: output, as: UTF8.self))
    }
}

/// Runs blocking code on a separate thread.
func blocking<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// Starts a server, calls `body` with the server, and stops it.
func withServer<Result>(
    _ resources: [String: Resource], options: ServerOptions = ServerOptions(),
    _ body: (FaultServer) async throws -> Result
) async throws -> Result {
    let server = try await FaultServer.start(resources, options: options)
    do {
        let result = try await body(server)
        await server.stop()
        return result
    } catch {
        await server.stop()
        throw error
    }
}

/// Starts a server with one file at `/file`, calls `body` with the server, and stops it.
func withFile<Result>(
    length: Int64 = 100_000, rate: Int64? = nil, _ behaviour: Behaviour = .correct,
    options: ServerOptions = ServerOptions(), _ body: (FaultServer) async throws -> Result
) async throws -> Result {
    try await withServer(
        ["/file": Resource(length: length, rate: rate, behaviour: behaviour)], options: options, body)
}

/// Creates an empty directory, calls `body` with its path, and deletes the directory.
func withDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let path = NSTemporaryDirectory() + "fault-server-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
}

extension Received {
    /// Returns whether the body is this range of the content with this seed.
    func isContent(_ range: Range<Int64>, seed: UInt64 = 1) -> Bool {
        body == FaultContent(seed: seed).bytes(in: range)
    }
}
