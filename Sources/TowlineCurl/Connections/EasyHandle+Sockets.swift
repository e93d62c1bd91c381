import CCurl
import Glibc
internal import TowlineCore

/// The callbacks of an easy handle for the sockets that libcurl opens and closes, and for the end of TLS connections.
extension EasyHandle {
    /// The callback for a new socket. Sets the close-on-exec flag, which libcurl 7.88 does not set, so that the socket
    /// does not leak into processes that the application starts. Reports the socket to the handle's `SocketWatch`.
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

    /// Makes libcurl report to `watch` when a socket of a connection is created and closed. `watch` must outlive the
    /// connections.
    func tellSockets(to watch: SocketWatch) {
        let context = Unmanaged.passUnretained(watch).toOpaque()
        _ = ccurl_set_pointer(pointer, CURLOPT_SOCKOPTDATA, context)
        _ = ccurl_set_pointer(pointer, CURLOPT_CLOSESOCKETDATA, context)
        _ = ccurl_set_close_socket_callback(pointer, Self.socketCloses)
    }

    /// Makes the handle report each address that libcurl connects to, to its attempt. Opens no socket for an address
    /// that the options forbid (`publicAddressesOnly`).
    ///
    /// The check belongs here: a name server could change its reply between an earlier check and the connection.
    func watchAddresses() { _ = ccurl_set_open_socket_callback(pointer, Self.openSocket) }

    private static let openSocket:
        @convention(c) (UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t =
            { context, _, place in
                guard let place, let context, let address = address(of: place) else { return -1 }
                let attempt = Unmanaged<Attempt>.fromOpaque(context).takeUnretainedValue()
                guard !attempt.pool.options.publicAddressesOnly || address.isPublic else {
                    attempt.addresses.hasRefused = true
                    return -1
                }
                let descriptor = open(place.pointee)
                guard descriptor >= 0 else { return descriptor }
                attempt.connects(descriptor, to: address)
                return descriptor
            }

    /// Makes libcurl connect only to public addresses, for a handle that runs no `Attempt`, such as that of a webhook.
    func refusePrivateAddresses() { _ = ccurl_set_open_socket_callback(pointer, Self.openPublicSocket) }

    private static let openPublicSocket:
        @convention(c) (UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t =
            { _, _, place in
                guard let place, let address = address(of: place), address.isPublic else { return -1 }
                return open(place.pointee)
            }

    private static func address(of place: UnsafeMutablePointer<curl_sockaddr>) -> SocketAddress? {
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
        let start = UnsafeRawPointer(place) + offset
        return SocketAddress(Array(UnsafeRawBufferPointer(start: start, count: Int(place.pointee.addrlen))))
    }

    private static func open(_ place: curl_sockaddr) -> curl_socket_t {
        socket(place.family, place.socktype | Int32(SOCK_CLOEXEC.rawValue), place.protocol)
    }

    /// The index under which OpenSSL stores, for each connection, the record of how it ended (`watchCloseNotify`).
    static let tlsIndex = ccurl_new_tls_index()

    /// The callback that records whether the peer sent close_notify, the regular end of TLS. OpenSSL calls it with each
    /// event of a connection that `watchCloseNotify` watches.
    static let tlsEvent: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { connection, what, value in
        guard let connection else { return }
        ccurl_note_tls_event(connection, tlsIndex, what, value)
    }
}
