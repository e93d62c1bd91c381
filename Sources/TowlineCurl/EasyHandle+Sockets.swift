import CCurl
import Glibc

extension EasyHandle {
    /// A new socket must not leak into processes that the application starts: this libcurl opens it without
    /// `SOCK_CLOEXEC`.
    static let socketMade: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t, curlsocktype) -> Int32 = {
        _, socket, _ in
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        return Int32(CURL_SOCKOPT_OK)
    }

    /// Our place in OpenSSL's connections, the same for all.
    static let tlsIndex = ccurl_new_tls_index()

    /// Something happened to a TLS connection that is watched.
    static let tlsEvent: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { connection, what, value in
        guard let connection else { return }
        ccurl_note_tls_event(connection, tlsIndex, what, value)
    }
}
