import Glibc

/// The error of a failed system call.
package struct SocketFailure: Error, CustomStringConvertible {
    /// The name of the call and the description of errno.
    package let description: String

    init(_ call: String) { description = "\(call) failed: \(String(cString: strerror(errno)))" }
}

/// Functions for nonblocking sockets on the loopback.
enum Sockets {
    /// Returns a listening socket on 127.0.0.1 and its port.
    static func listen(port: UInt16) throws(SocketFailure) -> (socket: Int32, port: UInt16) {
        let listener = try stream()
        set(listener, SOL_SOCKET, SO_REUSEADDR, Int32(1))
        var address = loopback(port)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        guard withGeneric(&address, { bind(listener, $0, size) }) == 0 else {
            throw SocketFailure("bind")
        }
        guard Glibc.listen(listener, 4096) == 0 else { throw SocketFailure("listen") }
        var length = size
        guard withGeneric(&address, { getsockname(listener, $0, &length) }) == 0 else {
            throw SocketFailure("getsockname")
        }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    /// Returns a socket that is connected, or connecting, to a port of 127.0.0.1.
    static func connect(port: UInt16) throws(SocketFailure) -> Int32 {
        let socket = try stream()
        var address = loopback(port)
        let result = withGeneric(&address) {
            Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        guard result == 0 || errno == EINPROGRESS else {
            let failure = SocketFailure("connect")
            close(socket)
            throw failure
        }
        return socket
    }

    /// Accepts the next client; `nil` if no client waits.
    ///
    /// - Parameter sendBuffer: The size in bytes of the kernel's send buffer; `nil` for the default.
    static func accept(_ listener: Int32, sendBuffer: Int?) -> Int32? {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { return nil }
        prepare(client)
        if let sendBuffer { set(client, SOL_SOCKET, SO_SNDBUF, Int32(clamping: sendBuffer)) }
        return client
    }

    /// Makes a later close send a reset to the peer instead of a normal end.
    static func resetOnClose(_ socket: Int32) { set(socket, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }

    private static func stream() throws(SocketFailure) -> Int32 {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard made >= 0 else { throw SocketFailure("socket") }
        prepare(made)
        return made
    }

    private static func prepare(_ socket: Int32) {
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        set(socket, Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1))
    }

    private static func set<Value>(_ socket: Int32, _ level: Int32, _ name: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) {
            setsockopt(socket, level, name, $0.baseAddress, socklen_t($0.count))
        }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func withGeneric(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> Int32)
        -> Int32
    {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
