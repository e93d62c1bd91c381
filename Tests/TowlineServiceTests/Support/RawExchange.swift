import Foundation

/// One HTTP exchange on a separate socket. The bytes of the test are sent unchanged.
struct RawExchange {
    /// The address of the server.
    enum Place {
        case socket(String)
        case port(Int)
        /// The loopback address 127.0.0.N with the number N.
        case loopback(UInt8, port: Int)
    }

    /// The response of the server.
    struct Answer {
        let status: Int
        let fields: [String: String]
        let body: Data

        var object: [String: Any] {
            (try? JSONSerialization.jsonObject(with: body) as? [String: Any]) ?? [:]
        }
    }

    struct Unreachable: Error { let number: Int32 }

    /// Connects to the server and returns the descriptor, which the caller must close.
    static func connect(_ place: Place) throws -> Int32 {
        var result: Int32
        let descriptor: Int32
        switch place {
        case .port(let port): return try connect(.loopback(1, port: port))
        case .loopback(let number, let port):
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(UInt16(port)).bigEndian
            address.sin_addr.s_addr = (in_addr_t(0x7F00_0000) + in_addr_t(number)).bigEndian
            result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        case .socket(let path):
            descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        guard result == 0 else {
            let number = errno
            close(descriptor)
            throw Unreachable(number: number)
        }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads until the server closes the connection or the connection times out, and returns the bytes.
    static func readAll(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Sends a request and returns the response. Runs on a separate thread, which may block.
    static func send(
        _ method: String, _ target: String, to place: Place, fields: [String: String] = [:], body: [UInt8] = []
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try perform(method, target, place, fields, body) })
            }
        }
    }

    private static func perform(
        _ method: String, _ target: String, _ place: Place, _ fields: [String: String], _ body: [UInt8]
    ) throws -> Answer {
        let descriptor = try connect(place)
        defer { close(descriptor) }
        var fields = fields
        if fields["Host"] == nil {
            if case .port(let port) = place {
                fields["Host"] = "127.0.0.1:\(port)"
            } else {
                fields["Host"] = "localhost"
            }
        }
        fields["Connection"] = "close"
        if !body.isEmpty { fields["Content-Length"] = String(body.count) }
        var head = "\(method) \(target) HTTP/1.1\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        write(Array((head + "\r\n").utf8) + body, to: descriptor)
        return parse(readAnswer(descriptor))
    }

    /// Reads one complete response, or all bytes until the server closes the connection.
    private static func readAnswer(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            let answer = parse(bytes)
            if let length = answer.fields["content-length"].flatMap({ Int($0) }), answer.body.count >= length {
                return bytes
            }
        }
    }

    static func parse(_ bytes: [UInt8]) -> Answer {
        let data = Data(bytes)
        guard let end = data.range(of: Data("\r\n\r\n".utf8)) else { return Answer(status: 0, fields: [:], body: data) }
        let lines = String(decoding: data[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return Answer(status: status, fields: fields, body: data[end.upperBound...])
    }
}
