import Glibc
import NIOCore

/// Functions for sockets that child processes do not inherit. Child processes inherit SwiftNIO's own sockets: a port
/// closed here would still accept connections there, and a connection closed here would not end.
enum PrivateSocket {
    /// Prevents future child processes from inheriting an accepted socket. SwiftNIO cannot request this from
    /// accept4(2), so a process that starts between the two calls still inherits it. Call this function on the
    /// channel's event loop.
    static func keep(_ channel: any Channel) throws {
        try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
        }
    }

    /// Closes a listening socket with immediate effect. A process that is being started has the socket open until its
    /// program begins, and would still accept connections; shutdown(2) stops this in all processes.
    static func stopListening(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.flatSubmit {
            try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                _ = shutdown($0, CInt(SHUT_RDWR))
            }
            return channel.close()
        }
    }

    /// Returns a socket bound to the address. Throws an `IOError`.
    static func bound(host: String, port: Int) throws -> CInt {
        let address = try SocketAddress(ipAddress: host, port: port)
        return try make(address) { descriptor, pointer, length in
            var yes: CInt = 1
            // Without SO_REUSEADDR, bind may fail for a while after a restart.
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
            return bind(descriptor, pointer, length)
        }
    }

    /// Returns a socket connected to the address. Blocks while connecting, which is very short on the loopback. Throws
    /// an `IOError`.
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

/// A reservation of a port while no socket listens on it, so that the system refuses connections: a bound socket that
/// never listens.
///
/// The system does not assign a reserved port to a socket without a given port or to an outgoing connection, in any
/// process. A socket that binds this port with SO_REUSEADDR shares it and may listen (socket(7)).
final class PortReservation: Sendable {
    let port: Int
    private let descriptor: CInt

    /// Reserves a port; 0 means any free port. Throws an `IOError` if the port is taken.
    init(host: String, port: Int) throws {
        descriptor = try PrivateSocket.bound(host: host, port: port)
        self.port = port == 0 ? PortReservation.port(of: descriptor) : port
    }

    deinit { close(descriptor) }

    private static func port(of descriptor: CInt) -> Int {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            getsockname(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length)
            // The port has the same offset in an address of either family (ip(7), ipv6(7)).
            return Int(UInt16(bigEndian: start.assumingMemoryBound(to: sockaddr_in.self).pointee.sin_port))
        }
    }
}
