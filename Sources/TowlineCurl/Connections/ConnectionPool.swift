import CCurl
internal import TowlineCore
internal import TowlineEngine

/// A multi handle of libcurl with its open connections, which attempts with equal options reuse.
///
/// libcurl compares TLS settings before it reuses a connection, but not everything that distinguishes two users (for
/// example the password for a proxy tunnel). A pool per `ConnectionOptions` needs no comparison. Confined to one engine
/// thread, a thread that runs libcurl.
final class ConnectionPool {
    /// The use of the pool: the number of its running attempts, or the time since which none runs.
    private enum Use {
        /// No attempt has used the pool since the given time.
        case idle(since: MonotonicTime)
        /// The pool runs the given number of attempts: their handles were added to libcurl and not removed.
        case running(Int)
    }

    /// The attempts that received body bytes in the current call of libcurl, which are notified when it returns.
    private struct Fed {
        /// The attempt that received bytes last in this call of libcurl; `nil` if no attempt did.
        var last: Attempt?
        /// The attempts that the loop must act on because all available bytes were delivered: their receivers stopped
        /// them in `flush`, or libcurl is paused so that the kernel can move the rest of the body (`Splicing`).
        var rested: [Attempt] = []
    }

    /// The options of the pool's connections, with credentials only if requests may send them.
    let options: ConnectionOptions
    /// The proxy that all connections of the pool go through; `nil` if they go to the server directly.
    let proxy: ProxyAddress?
    /// The rule for sharing connections: each attempt has its own, or attempts are HTTP/2 streams of one or several.
    let sharing: ConnectionSharing
    /// The number that each event of the pool's sockets carries, so that the event loop finds the pool.
    let tag: UInt32
    /// The multi handle of libcurl, which runs the requests and keeps the connections.
    let multi: UnsafeMutableRawPointer
    /// The time at which libcurl must be called even if no socket is ready; `never` if libcurl has no timer.
    var timer = MonotonicTime.never
    /// `true` if libcurl was called since the event loop last asked for finished attempts with `nextFinished`.
    var isTouched = false
    /// `true` if no further attempt may start in the pool, because the server on its shared connection fell silent.
    var isRetired = false
    /// `true` after a rate limit made the receive buffer of a connection small.
    var hasSmallBuffers = false
    private var use = Use.idle(since: .now)
    private var fed = Fed()
    /// The number of calls of libcurl that may have read from any of its sockets, or sent on one. After each of them,
    /// `Splicing` (bodies moved by the kernel) checks that libcurl read no bytes of the body.
    private(set) var callCount = 0 { didSet { watch.mayHaveSent = true } }

    /// The record of the thread's sockets and the events that they are watched for.
    private let watch: SocketWatch
    private let idleHandles: IdleHandles
    /// The maximum number of open connections, idle or not, that was last set in libcurl.
    private var connectionLimit = 128

    /// Creates a pool without connections. Throws `tlsFileUnusable` or `local` if a file named in the options cannot be
    /// read, `local` if memory ran out, and `proxyUnusable` if the proxy's URL is not valid.
    init(
        options: ConnectionOptions, sharing: ConnectionSharing, tag: UInt32, watch: SocketWatch
    ) throws(TransportFailure) {
        try Self.check(options)
        proxy = try options.checkedProxy()
        guard CurlLibrary.initialisation == CURLE_OK, let multi = curl_multi_init() else {
            throw TransportFailure(.local, FailureTable.cannotStart)
        }
        guard let idleHandles = IdleHandles() else {
            curl_multi_cleanup(multi)
            throw TransportFailure(.local, FailureTable.outOfMemory)
        }
        self.options = options
        self.sharing = sharing
        self.tag = tag
        self.watch = watch
        self.multi = multi
        self.idleHandles = idleHandles
        setUp()
    }

    deinit {
        idleHandles.removeAll()
        curl_multi_cleanup(multi)
    }

    private func setUp() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, context)
        _ = ccurl_multi_set_socket_callback(multi, Self.socketChanged)
        _ = ccurl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, context)
        _ = ccurl_multi_set_timer_callback(multi, Self.timerChanged)
        // Several segments over one TCP connection gain nothing: a running attempt has its own connection, unless it
        // asks for sharing. In libcurl 7.88, one paused stream blocks its whole connection.
        _ = ccurl_multi_set_long(
            multi, CURLMOPT_PIPELINING, Int(sharing == .none ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX))
        limitConnections(connectionLimit)
        // Without these limits, each attempt that finds no free stream would open another connection.
        switch sharing {
        case .none: break
        case .one: _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 2)
        case .several:
            _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, ConnectionSharing.connections)
            _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, ConnectionSharing.streams)
        }
    }

    /// The number of attempts that run in this pool.
    private var runningCount: Int { if case .running(let count) = use { count } else { 0 } }

    /// The time at which the last running attempt was removed, or the pool was created; `nil` if attempts run.
    var idleSince: MonotonicTime? { if case .idle(let time) = use { time } else { nil } }

    /// Sets the maximum number of open connections, including idle ones. libcurl's default follows the number of
    /// running attempts: libcurl would close good connections whenever few attempts run for a moment.
    private func limitConnections(_ limit: Int) {
        connectionLimit = limit
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, limit)
    }

    /// Returns an easy handle with the pool's settings, reused or new, for the next attempt (`add`); `nil` if memory
    /// ran out.
    func takeHandle() -> EasyHandle? {
        idleHandles.take { handle in
            handle.tellSockets(to: watch)
            options.apply(to: handle)
            // Attempts wait for the first connection instead of opening another one; several connections are opened at
            // once.
            if sharing == .one { handle.set(CURLOPT_PIPEWAIT, 1) }
        }
    }

    /// Passes the handle of an attempt to libcurl, which then runs the request. Throws `local` if libcurl does not
    /// accept the handle.
    func add(_ handle: EasyHandle) throws(TransportFailure) {
        callCount += 1
        let code = curl_multi_add_handle(multi, handle.pointer)
        guard code == CURLM_OK else { throw Self.failure(code) }
        let count = runningCount + 1
        use = .running(count)
        isTouched = true
        if count * 2 > connectionLimit { limitConnections(count * 4) }
    }

    /// Removes the handle of an ended attempt from libcurl and keeps it for reuse. If its response is incomplete,
    /// libcurl closes the connection.
    func remove(_ handle: EasyHandle) {
        // An ended attempt must not receive `rests`.
        if fed.last?.handle === handle { fed.last = nil }
        fed.rested.removeAll { $0.handle === handle }
        callCount += 1
        curl_multi_remove_handle(multi, handle.pointer)
        use = runningCount > 1 ? .running(runningCount - 1) : .idle(since: .now)
        isTouched = true
        handle.dropCookies()
        // libcurl keeps the Digest nonce in the handle, and treats an expired nonce as a wrong password unless the
        // server sends `stale` (RFC 7616 §3.3). Not all servers do, so each attempt gets a new handle.
        idleHandles.add(handle, isReusable: !options.waitsForChallenge)
    }

    /// Repeats the request of a handle over a new connection, because the reused one was faulty.
    ///
    /// - Returns: `false` if libcurl does not accept the handle again; the caller must end the attempt.
    func repeatOnFreshConnection(_ handle: EasyHandle) -> Bool {
        if fed.last?.handle === handle { fed.last = nil }
        callCount += 1
        curl_multi_remove_handle(multi, handle.pointer)
        handle.requireFreshConnection()
        isTouched = true
        return curl_multi_add_handle(multi, handle.pointer) == CURLM_OK
    }

    /// Reports to libcurl that a socket is ready for the events `ready`. Throws `local` if libcurl's multi handle
    /// failed; the caller must then close the pool.
    func socketIsReady(_ socket: Int32, _ ready: EventPoll.Interest) throws(TransportFailure) {
        var events: Int32 = 0
        // libcurl finds an error or a hang-up when it reads and writes: bytes may be waiting before it.
        let isBroken = !ready.isDisjoint(with: [.error, .hangUp])
        if isBroken || ready.contains(.read) { events |= CURL_CSELECT_IN }
        if isBroken || ready.contains(.write) { events |= CURL_CSELECT_OUT }
        try act(socket, events)
    }

    /// Reports to libcurl that its timer expired. Throws `local` if libcurl's multi handle failed; the caller must then
    /// close the pool.
    func timerIsDue() throws(TransportFailure) {
        timer = .never
        try act(CURL_SOCKET_TIMEOUT, 0)
    }

    private func act(_ socket: Int32, _ events: Int32) throws(TransportFailure) {
        isTouched = true
        callCount += 1
        var running: Int32 = 0
        let code = curl_multi_socket_action(multi, socket, events, &running)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    /// Returns whether bytes arrived on the connection with the given local port while it was idle. They belong to no
    /// response.
    func hasBytes(onPort port: Int32) -> Bool { watch.hasBytes(onPort: UInt16(truncatingIfNeeded: port)) }

    /// Combines the sends on the connection of an attempt into fewer TCP segments (`SocketWatch.gatherSends`), if the
    /// pool shares connections: the request of each HTTP/2 stream is a separate small send.
    func carriesStreams(of attempt: Attempt) {
        if sharing != .none, let socket = attempt.connection.socket { watch.gatherSends(of: socket) }
    }

    /// Records that libcurl is about to deliver bytes to an attempt. Notifies the attempt that received bytes before
    /// (`Attempt.rests`) that no more are available now.
    func feeds(_ attempt: Attempt) {
        guard fed.last !== attempt else { return }
        rest()
        fed.last = attempt
    }

    /// Notifies the attempt that last received bytes that all available bytes were delivered (`Attempt.rests`). Called
    /// when libcurl has returned.
    ///
    /// - Returns: the attempts that the receiver stopped (`Attempt.decidedEnd`), which the caller must end, and those
    ///   whose rest the kernel can move, which the caller must splice.
    func takeRested() -> [Attempt] {
        rest()
        guard !fed.rested.isEmpty else { return [] }
        defer { fed.rested = [] }
        return fed.rested
    }

    private func rest() {
        guard let attempt = fed.last else { return }
        fed.last = nil
        if !attempt.rests() || attempt.body?.splicing?.isOffered == true { fed.rested.append(attempt) }
    }

    /// Makes libcurl resume a paused attempt, and deliver within this call the bytes that it holds. Returns libcurl's
    /// result.
    func unpause(_ attempt: Attempt) -> CURLcode {
        isTouched = true
        callCount += 1
        return curl_easy_pause(attempt.handle.pointer, CURLPAUSE_CONT)
    }

    /// Returns the next attempt that libcurl has finished, and libcurl's result code; `nil` after the last finished
    /// one.
    func nextFinished() -> (Attempt, CURLcode)? {
        var remaining: Int32 = 0
        while let message = curl_multi_info_read(multi, &remaining) {
            var code = CURLE_OK
            if let handle = ccurl_finished(message, &code), let attempt = EasyHandle.attempt(of: handle) {
                return (attempt, code)
            }
        }
        return nil
    }

    private static func failure(_ code: CURLMcode) -> TransportFailure {
        let text = curl_multi_strerror(code).map { String(cString: $0) } ?? "unknown error"
        return TransportFailure(.local, "libcurl cannot start the request: error \(code.rawValue) (\(text))")
    }

    private static let socketChanged:
        @convention(c) (
            UnsafeMutableRawPointer?, curl_socket_t, Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32 = { handle, socket, what, context, _ in
            guard let context else { return -1 }
            let pool = Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue()
            let attempt = handle.flatMap(EasyHandle.attempt)
            if attempt?.splicedSocket != nil { return 0 }
            let interest: EventPoll.Interest
            switch what {
            case CURL_POLL_IN: interest = .read
            case CURL_POLL_OUT: interest = .write
            case CURL_POLL_INOUT: interest = [.read, .write]
            default:
                pool.watch.dismiss(socket)
                return 0
            }
            attempt?.waits(for: socket)
            return pool.watch.want(interest, of: socket, tag: pool.tag) ? 0 : -1
        }

    private static let timerChanged: @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32 =
        {
            _, milliseconds, context in
            guard let context else { return -1 }
            let pool = Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue()
            pool.timer = milliseconds < 0 ? .never : .now.advanced(by: .milliseconds(milliseconds))
            return 0
        }
}
