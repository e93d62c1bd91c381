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
}
