import Glibc
import NIOCore

/// Sockets that a child process does not inherit. SwiftNIO's own stay open in each process started meanwhile: a port
/// that was closed here would go on to take connections there, and a connection closed here would not end.
enum PrivateSocket {
    /// A socket bound to the address. Throws an `IOError`.
    static func bound(host: String, port: Int) throws -> CInt {
        let address = try SocketAddress(ipAddress: host, port: port)
        return try make(address) { descriptor, pointer, length in
            var yes: CInt = 1
            // Without it the port may stay taken for a while after a restart; bind says so.
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
            return bind(descriptor, pointer, length)
        }
    }

    /// A socket connected to the address. It blocks while connecting, which on the loopback is no time. Throws an
    /// `IOError`.
    static func connected(host: String, port: Int) throws -> CInt {
        try make(try SocketAddress(ipAddress: host, port: port)) { connect($0, $1, $2) }
    }

    private static func make(
        _ address: SocketAddress, _ use: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) throws -> CInt {
        let kind = CInt(bitPattern: SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.protocol == .inet6 ? AF_INET6 : AF_INET, kind, 0)
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        let result = address.withSockAddr { pointer, length in use(descriptor, pointer, socklen_t(length)) }
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw IOError(errnoCode: code, reason: "\(address)")
        }
        return descriptor
    }
}
