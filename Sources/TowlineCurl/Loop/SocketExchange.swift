import CCurl
import Glibc
internal import TowlineCore
internal import TowlineThreads

/// An HTTP client for a service on this machine, which listens on a Unix socket and runs as this user or as root.
package struct SocketExchange: Sendable {
    private let socket: String
    private let timeout: Duration

    /// An HTTP request to the service on this machine.
    package struct Request: Hashable, Sendable {
        /// The HTTP method, such as `GET`.
        package var method: String
        /// The path and query of the URL, such as `/path?name=value`.
        package var target: String
        /// The body of the request, in JSON; `nil` for a request without a body.
        package var body: [UInt8]?

        /// Creates a request with a method, the path and query, and a body in JSON; `nil` for no body.
        package init(_ method: String, _ target: String, body: [UInt8]? = nil) {
            self.method = method
            self.target = target
            self.body = body
        }
    }

    /// A complete HTTP response of the service on this machine.
    package struct Answer: Hashable, Sendable {
        /// The HTTP status code, such as 200.
        package var status: Int
        /// The bytes of the response's body.
        package var body: [UInt8]
    }

    /// The reason why the service's response to a request was not received.
    package enum Failure: Error, Hashable, Sendable {
        /// No process listens on the socket.
        case nobodyListens
        /// The process that listens belongs to another user, with this user ID. The request was not sent.
        case foreignOwner(UInt32)
        /// Any other failure, as a text for users.
        case other(String)
    }

    /// Creates a client. Does not connect.
    ///
    /// - Parameters:
    ///   - socket: the path of the socket.
    ///   - timeout: the time limit for a whole exchange, from the connection to the end of the response.
    package init(socket: String, timeout: Duration = .seconds(60)) {
        self.socket = socket
        self.timeout = timeout
    }

    /// Sends a request and returns the complete response, whatever its status. Runs on its own thread. Throws the
    /// reason if no response was received; for a timeout and a cancelled task, the reason is `.other`.
    package func send(_ request: Request) async throws(Failure) -> Answer {
        try await perform(request, .whole(timeout), nil)
    }

    /// Sends a request and passes the bytes of the response's body to `receive` as they arrive, on the thread of the
    /// exchange, until the service ends the response, `receive` returns `false`, or the task is cancelled. Returns the
    /// HTTP status code.
    ///
    /// - Parameter silence: the time without a byte after which the exchange fails, in whole seconds.
    package func stream(
        _ request: Request, silence: Duration, _ receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
    ) async throws(Failure) -> Int {
        try await perform(request, .silence(silence), receive).status
    }

    private func perform(
        _ request: Request, _ limit: Exchange.Limit, _ receive: (@Sendable (UnsafeRawBufferPointer) -> Bool)?
    ) async throws(Failure) -> Answer {
        let result: Result<Result<Answer, Failure>, TowlineError>
        do throws(TowlineError) {
            result = .success(
                try await WorkThread.run { (flag) throws(TowlineError) in
                    Exchange(flag: flag, receiver: receive).perform(request, socket, limit)
                })
        } catch {
            result = .failure(error)
        }
        switch result {
        case .success(let answer): return try answer.get()
        case .failure(let error): throw .other(error.message)
        }
    }
}

/// One exchange with the service: an HTTP request and its response. Confined to the thread that calls `perform`, which
/// blocks until the response ends.
private final class Exchange {
    /// The time limit of an exchange: for all of it, or for the time without a byte.
    enum Limit: Sendable {
        case whole(Duration)
        case silence(Duration)
    }

    private let flag: CancelFlag
    /// The function that gets the bytes of the body; `nil` collects them in `body`.
    private let receiver: (@Sendable (UnsafeRawBufferPointer) -> Bool)?
    private var body: [UInt8] = []
    private var handle: UnsafeMutableRawPointer?
    private var descriptor: curl_socket_t = -1
    /// The user ID of the process that listens on the socket, if it is neither this user nor root; otherwise `nil`.
    private var foreignOwner: UInt32?
    /// The maximum length in bytes of the response's body.
    private static let maximumBody = 64 << 20

    init(flag: CancelFlag, receiver: (@Sendable (UnsafeRawBufferPointer) -> Bool)?) {
        (self.flag, self.receiver) = (flag, receiver)
    }

    func perform(_ request: SocketExchange.Request, _ socket: String, _ limit: Limit)
        -> Result<SocketExchange.Answer, SocketExchange.Failure>
    {
        // libcurl calls a path that is too long for a socket (unix(7), `sun_path`) a host without an address.
        guard socket.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
            return .failure(.nobodyListens)
        }
        guard CurlLibrary.initialisation == CURLE_OK, let handle = curl_easy_init() else {
            return .failure(.other(FailureTable.cannotStart))
        }
        self.handle = handle
        defer { curl_easy_cleanup(handle) }
        var list = curl_slist_append(nil, "Content-Type: application/json")
        // The service is local, so 100-continue would only cost time.
        list = curl_slist_append(list, "Expect:")
        defer { curl_slist_free_all(list) }
        guard list != nil, prepare(handle, request, socket, list) else {
            return .failure(.other(FailureTable.outOfMemory))
        }
        switch limit {
        case .whole(let time): _ = ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, time.curlMilliseconds)
        case .silence(let time):
            _ = ccurl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
            _ = ccurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, Int(time.components.seconds))
        }
        let code = withExtendedLifetime(self) { curl_easy_perform(handle) }
        switch code {
        case CURLE_OK: return .success(SocketExchange.Answer(status: status(), body: body))
        case CURLE_COULDNT_CONNECT: return .failure(.nobodyListens)
        case CURLE_ABORTED_BY_CALLBACK where foreignOwner != nil: return .failure(.foreignOwner(foreignOwner ?? 0))
        default: return .failure(.other(FailureTable.rows[code.rawValue]?.reason ?? CurlLibrary.text(code)))
        }
    }

    private func prepare(
        _ handle: UnsafeMutableRawPointer, _ request: SocketExchange.Request, _ socket: String,
        _ list: UnsafeMutablePointer<curl_slist>?
    ) -> Bool {
        let context = Unmanaged.passUnretained(self).toOpaque()
        for (option, value) in [(CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 0), (CURLOPT_HTTP09_ALLOWED, 0)] {
            _ = ccurl_set_long(handle, option, value)
        }
        if let body = request.body {
            let isCopied = body.withUnsafeBufferPointer { bytes in
                ccurl_set_long(handle, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
                    && bytes.withMemoryRebound(to: CChar.self) {
                        ccurl_set_string(handle, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) == CURLE_OK
                    }
            }
            guard isCopied else { return false }
        }
        return ccurl_set_string(handle, CURLOPT_UNIX_SOCKET_PATH, socket) == CURLE_OK
            // The proxy of the environment must not be used.
            && ccurl_set_string(handle, CURLOPT_PROXY, "") == CURLE_OK
            && ccurl_set_string(handle, CURLOPT_URL, "http://localhost" + request.target) == CURLE_OK
            && ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, request.method) == CURLE_OK
            && ccurl_set_list(handle, CURLOPT_HTTPHEADER, list) == CURLE_OK
            && ccurl_set_pointer(handle, CURLOPT_SOCKOPTDATA, context) == CURLE_OK
            && ccurl_set_socket_callback(handle, Self.socketMade) == CURLE_OK
            && ccurl_set_pointer(handle, CURLOPT_PREREQDATA, context) == CURLE_OK
            && ccurl_set_prerequest_callback(handle, Self.connected) == CURLE_OK
            && ccurl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, Self.written) == CURLE_OK
            && ccurl_set_progress_callback(handle, Self.progress) == CURLE_OK
            && ccurl_set_pointer(handle, CURLOPT_WRITEDATA, context) == CURLE_OK
            && ccurl_set_pointer(handle, CURLOPT_XFERINFODATA, context) == CURLE_OK
    }

    private func status() -> Int {
        var status = 0
        guard let handle, ccurl_get_long(handle, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK else { return 0 }
        return status
    }

    /// Returns whether the listening process belongs to this user or to root. Asks the kernel before anything is sent
    /// (`SO_PEERCRED`, unix(7)): the path may lead to another user's socket, for example after su(1).
    private func trustsListener() -> Bool {
        // `struct ucred`, which Swift does not import.
        var peer = (process: pid_t(), user: uid_t(), group: gid_t())
        var size = socklen_t(MemoryLayout.size(ofValue: peer))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 else { return false }
        guard peer.user == geteuid() || peer.user == 0 else {
            foreignOwner = peer.user
            return false
        }
        return true
    }

    private static let socketMade: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t, curlsocktype) -> Int32 = {
        context, socket, _ in
        guard let context else { return Int32(CURL_SOCKOPT_ERROR) }
        // This libcurl opens the socket without `SOCK_CLOEXEC`.
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue().descriptor = socket
        return Int32(CURL_SOCKOPT_OK)
    }

    /// The callback that checks the owner of the listening process. libcurl calls it when the connection exists and
    /// before it sends the request.
    private static let connected:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int32, Int32
        ) -> Int32 = { context, _, _, _, _ in
            guard let context else { return Int32(CURL_PREREQFUNC_ABORT) }
            let isTrusted = Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue().trustsListener()
            return Int32(isTrusted ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
        }

    private func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if let receiver { return receiver(bytes) }
        body.append(contentsOf: bytes)
        return body.count <= Self.maximumBody
    }

    private static let written:
        @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
            bytes, size, count, context in
            guard let context else { return 0 }
            let exchange = Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
            return exchange.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }

    /// The callback that aborts the exchange if it was cancelled. libcurl calls it at least once a second.
    private static let progress:
        @convention(c) (UnsafeMutableRawPointer?, curl_off_t, curl_off_t, curl_off_t, curl_off_t) -> Int32 = {
            context, _, _, _, _ in
            guard let context else { return 1 }
            return Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue().flag.isSet ? 1 : 0
        }
}
