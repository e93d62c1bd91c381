import CCurl
import Glibc
internal import TowlineCore

extension EasyHandle {
    /// A new socket must not leak into processes that the application starts: this libcurl opens it without
    /// `SOCK_CLOEXEC`.
    static let socketMade: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t, curlsocktype) -> Int32 = {
        context, socket, _ in
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        if let context { Unmanaged<SocketWatch>.fromOpaque(context).takeUnretainedValue().opened(socket) }
        return Int32(CURL_SOCKOPT_OK)
    }

    private static let socketCloses: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = {
        context, socket in
        if let context { Unmanaged<SocketWatch>.fromOpaque(context).takeUnretainedValue().closed(socket) }
        return Glibc.close(socket)
    }

    /// Tells of every socket that is made for a connection, and of its end. `watch` must outlive the connections.
    func tellSockets(to watch: SocketWatch) {
        let context = Unmanaged.passUnretained(watch).toOpaque()
        _ = ccurl_set_pointer(pointer, CURLOPT_SOCKOPTDATA, context)
        _ = ccurl_set_pointer(pointer, CURLOPT_CLOSESOCKETDATA, context)
        _ = ccurl_set_close_socket_callback(pointer, Self.socketCloses)
    }

    /// Opens no socket for an address that is not public. What a name leads to is known here and not before: looking it up
    /// and connecting later would leave the time in between to whoever answers for the name.
    func refusePrivateAddresses() { _ = ccurl_set_open_socket_callback(pointer, Self.publicSocket) }

    private static let publicSocket:
        @convention(c) (UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t =
            { context, _, place in
                guard let place, let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return -1 }
                let address = UnsafeRawBufferPointer(
                    start: UnsafeRawPointer(place) + offset, count: Int(place.pointee.addrlen))
                let number = bytes(of: address, place.pointee.family)
                let isPublic = LocalAddresses.current().map { PublicAddress.isPublic(number, beside: $0) } ?? false
                guard isPublic, !LocalAddresses.isLocal(number) else {
                    if let context { Unmanaged<Attempt>.fromOpaque(context).takeUnretainedValue().refuseAddress() }
                    return -1
                }
                return socket(
                    place.pointee.family, place.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), place.pointee.protocol)
            }

    /// The address of a `sockaddr_in` or `sockaddr_in6`, in network order.
    private static func bytes(of address: UnsafeRawBufferPointer, _ family: Int32) -> [UInt8] {
        switch family {
        case AF_INET where address.count >= 8: Array(address[4..<8])
        case AF_INET6 where address.count >= 24: Array(address[8..<24])
        default: []
        }
    }

    /// Our place in OpenSSL's connections, the same for all.
    static let tlsIndex = ccurl_new_tls_index()

    /// Something happened to a TLS connection that is watched.
    static let tlsEvent: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { connection, what, value in
        guard let connection else { return }
        ccurl_note_tls_event(connection, tlsIndex, what, value)
    }
}
