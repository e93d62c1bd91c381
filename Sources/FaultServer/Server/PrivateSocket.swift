import Glibc
import NIOCore

/// Sockets that a child process does not inherit. SwiftNIO's own stay open in each process started meanwhile: a port
/// that was closed here would go on to take connections there, and a connection closed here would not end.
enum PrivateSocket {
    /// Keeps an accepted socket from the processes started from now on. SwiftNIO leaves no way to ask accept4(2) for
    /// it, so one that starts between the two calls still inherits the socket. On the channel's event loop.
    static func keep(_ channel: any Channel) throws {
        try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
        }
    }

    /// Closes a listening socket, with effect at once: a process that is just being started has it open until its
    /// program begins, and would go on to take connections (shutdown(2) ends that for everybody).
    static func stopListening(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.flatSubmit {
            try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                _ = shutdown($0, CInt(SHUT_RDWR))
            }
            return channel.close()
        }
    }

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

/// Keeps a port while nobody listens at it, so that the system refuses connections there: a bound socket that never
/// listens.
///
/// The system gives its port to nobody who asks for any, of this process or another, and to no connection that goes
/// out. A socket that asks for just this port with SO_REUSEADDR shares it and may listen (socket(7)).
final class PortReservation: Sendable {
    let port: Int
    private let descriptor: CInt

    /// Takes a port, any free one for 0. Throws an `IOError` if it is taken.
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
            // The port is at the same place in an address of either family (ip(7), ipv6(7)).
            return Int(UInt16(bigEndian: start.assumingMemoryBound(to: sockaddr_in.self).pointee.sin_port))
        }
    }
}
