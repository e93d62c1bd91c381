import CCurl
internal import TowlineCore
internal import TowlineEngine

/// One multi handle of libcurl: the connections that attempts of equal settings may share.
///
/// libcurl compares TLS settings before it reuses a connection, but not everything that makes two users different
/// (the password given to a proxy for a tunnel, for one). A pool per `ConnectionOptions` leaves nothing to compare.
/// Confined to its engine thread.
final class ConnectionPool {
    /// What the pool's connections were made with; credentials are in it only if they may be sent.
    let options: ConnectionOptions
    /// The proxy of all its connections.
    let proxy: ProxyAddress?
    /// Whether its attempts may be streams of one connection, or of several.
    let sharing: ConnectionSharing
    /// Names the pool among those of an `EventPoll`.
    let tag: UInt32
    let multi: UnsafeMutableRawPointer
    /// When libcurl wants to be called although no socket is ready.
    var timer = MonotonicTime.never
    /// Whether libcurl was called since its finished attempts were asked for.
    var isTouched = false
    /// Whether no further attempt begins in it.
    var isRetired = false
    /// How many attempts run.
    private(set) var runningCount = 0
    /// Since when no attempt runs.
    private(set) var idleSince = MonotonicTime.now

    /// Whose body came last in the call of libcurl's that is under way.
    private var fed: Attempt?
    /// Those that want no more since they rest.
    private var full: [Attempt] = []
    /// Those whose rest the kernel may move.
    private var offered: [Attempt] = []
    /// How often libcurl was called: each time it might have read from any of its sockets, or sent on it.
    private(set) var callCount = 0 { didSet { watch.mayHaveSent = true } }
    private var readAhead = ReadAhead()

    private let watch: SocketWatch
    private let share: UnsafeMutableRawPointer
    private var idleHandles: [EasyHandle] = []
    private var connectionLimit = 128

    /// Idle handles kept for the next attempts: making one costs some 20 µs and 5 KiB.
    private static let maximumIdleHandles = 64

    /// Throws `local` if a file named in the options cannot be read, or memory ran out; `proxyUnusable` if the proxy's
    /// URL is not valid.
    init(
        options: ConnectionOptions, sharing: ConnectionSharing, tag: UInt32, watch: SocketWatch
    ) throws(TransportFailure) {
        try Self.check(options)
        proxy = try options.checkedProxy()
        guard CurlLibrary.initialisation == CURLE_OK, let multi = curl_multi_init() else {
            throw TransportFailure(.local, FailureTable.cannotStart)
        }
        guard let share = curl_share_init() else {
            curl_multi_cleanup(multi)
            throw TransportFailure(.local, FailureTable.outOfMemory)
        }
        self.options = options
        self.sharing = sharing
        self.tag = tag
        self.watch = watch
        self.multi = multi
        self.share = share
        setUp()
    }

    deinit {
        idleHandles.removeAll()
        curl_multi_cleanup(multi)
        curl_share_cleanup(share)
    }

    private func setUp() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = ccurl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, context)
        _ = ccurl_multi_set_socket_callback(multi, Self.socketChanged)
        _ = ccurl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, context)
        _ = ccurl_multi_set_timer_callback(multi, Self.timerChanged)
        // Segments over one TCP connection gain nothing: a running attempt has its connection to itself, unless it says
        // otherwise. In libcurl 7.88 one stream that is paused holds up its whole connection.
        _ = ccurl_multi_set_long(
            multi, CURLMOPT_PIPELINING, Int(sharing == .none ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX))
        limitConnections(connectionLimit)
        // Each that finds no room for its stream would otherwise open another connection.
        switch sharing {
        case .none: break
        case .one: _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 2)
        case .several:
            _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, ConnectionSharing.connections)
            _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, ConnectionSharing.streams)
        }
        // Further connections to a host resume the first one's TLS session. No lock: one thread uses the share.
        _ = ccurl_share_data(share, CURL_LOCK_DATA_SSL_SESSION)
    }

    /// How many connections stay open, idle ones included. libcurl's own limit follows the attempts that run at the
    /// moment: it closes good connections whenever there are few for an instant.
    private func limitConnections(_ limit: Int) {
        connectionLimit = limit
        _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, limit)
    }

    /// A handle with the pool's settings; `nil` if memory ran out.
    func takeHandle() -> EasyHandle? {
        if let handle = idleHandles.popLast() { return handle }
        guard let handle = EasyHandle() else { return nil }
        _ = ccurl_set_pointer(handle.pointer, CURLOPT_SHARE, share)
        handle.tellSockets(to: watch)
        options.apply(to: handle)
        // The first connection is waited for, rather than one more opened beside it; several are opened at once.
        if sharing == .one { handle.set(CURLOPT_PIPEWAIT, 1) }
        return handle
    }

    /// Hands the attempt's handle to libcurl. Throws `local` if libcurl will not have it.
    func add(_ handle: EasyHandle) throws(TransportFailure) {
        callCount += 1
        let code = curl_multi_add_handle(multi, handle.pointer)
        guard code == CURLM_OK else { throw Self.failure(code) }
        runningCount += 1
        isTouched = true
        if runningCount * 2 > connectionLimit { limitConnections(runningCount * 4) }
    }

    /// Takes a handle back, breaking its connection off if it is in the midst of a response.
    func remove(_ handle: EasyHandle) {
        // Who has ended rests no more.
        if fed?.handle === handle { fed = nil }
        offered.removeAll { $0.handle === handle }
        readAhead.forget(handle)
        callCount += 1
        curl_multi_remove_handle(multi, handle.pointer)
        runningCount -= 1
        isTouched = true
        if runningCount == 0 { idleSince = .now }
        handle.dropCookies()
        // libcurl keeps the nonce of Digest in the handle, and takes its end for a wrong password unless the server
        // says `stale` (RFC 7616 §3.3). Not all servers do, so each attempt gets a new handle.
        if idleHandles.count < Self.maximumIdleHandles, !options.waitsForChallenge {
            idleHandles.append(handle)
        } else {
            // The handle may outlive the pool, and a share in use cannot be freed.
            _ = ccurl_set_pointer(handle.pointer, CURLOPT_SHARE, nil)
        }
    }

    /// Repeats the request of a handle over a fresh connection.
    ///
    /// - Returns: `false` if libcurl does not take the handle again.
    func repeatOnFreshConnection(_ handle: EasyHandle) -> Bool {
        if fed?.handle === handle { fed = nil }
        readAhead.forget(handle)
        callCount += 1
        curl_multi_remove_handle(multi, handle.pointer)
        handle.requireFreshConnection()
        isTouched = true
        return curl_multi_add_handle(multi, handle.pointer) == CURLM_OK
    }

    /// Tells libcurl that a socket is ready. Throws if the pool is beyond use.
    func socketIsReady(_ socket: Int32, _ ready: EventPoll.Interest) throws(TransportFailure) {
        var events: Int32 = 0
        // An error or a hang-up is found by reading and writing: bytes may be waiting before it.
        let isBroken = !ready.isDisjoint(with: [.error, .hangUp])
        if isBroken || ready.contains(.read) { events |= CURL_CSELECT_IN }
        if isBroken || ready.contains(.write) { events |= CURL_CSELECT_OUT }
        try act(socket, events)
        readAhead.note(socket)
    }

    /// Tells libcurl that its timer ran out. Throws if the pool is beyond use.
    func timerIsDue() throws(TransportFailure) {
        timer = .never
        try act(CURL_SOCKET_TIMEOUT, 0)
        readAhead.noteAll()
    }

    private func act(_ socket: Int32, _ events: Int32) throws(TransportFailure) {
        isTouched = true
        callCount += 1
        var running: Int32 = 0
        let code = curl_multi_socket_action(multi, socket, events, &running)
        guard code == CURLM_OK else { throw Self.failure(code) }
    }

    /// Whether TLS may hold what no socket tells of.
    var mayHoldUnread: Bool { !readAhead.holders.isEmpty }

    /// Has libcurl go on with what TLS has read ahead. Throws if the pool is beyond use.
    func readOn() throws(TransportFailure) {
        for attempt in readAhead.holders {
            let isLeft = try ReadAhead.drain(attempt) { socket throws(TransportFailure) in
                try act(socket, CURL_CSELECT_IN)
            }
            if !isLeft { readAhead.clear(attempt) }
        }
    }

    /// Returns whether bytes wait on the connection with a local port.
    func hasBytes(onPort port: Int32) -> Bool { watch.hasBytes(onPort: UInt16(truncatingIfNeeded: port)) }

    /// The connection of an attempt carries streams.
    func carriesStreams(of attempt: Attempt) {
        if sharing != .none, let socket = attempt.socket { watch.gatherSends(of: socket) }
    }

    /// An attempt has its socket, and TLS may read ahead.
    func readsFrom(_ attempt: Attempt) { readAhead.watch(attempt) }

    /// Something of an attempt's answer has come: TLS may hold more.
    func mayHold(_ attempt: Attempt) {
        // Asked for each line and each piece: first without a look at the table.
        if attempt.readsAhead { readAhead.note(attempt) }
    }

    /// Some bytes are about to be handed to an attempt.
    func feeds(_ attempt: Attempt) {
        mayHold(attempt)
        guard fed !== attempt else { return }
        rest()
        fed = attempt
    }

    /// libcurl has returned: whatever it had is delivered.
    ///
    /// - Returns: attempts to be ended.
    func takeFull() -> [Attempt] {
        rest()
        guard !full.isEmpty else { return [] }
        defer { full = [] }
        return full
    }

    private func rest() {
        guard let attempt = fed else { return }
        fed = nil
        if !attempt.rests() {
            full.append(attempt)
        } else if attempt.isOffered {
            offered.append(attempt)
        }
    }

    /// Attempts to be looked at, once those of `takeFull` are ended: the kernel may do the rest.
    func takeOffered() -> [Attempt] {
        guard !offered.isEmpty else { return [] }
        defer { offered = [] }
        return offered
    }

    /// Has libcurl go on with an attempt that was paused.
    func unpause(_ attempt: Attempt) -> CURLcode {
        isTouched = true
        callCount += 1
        return curl_easy_pause(attempt.handle.pointer, CURLPAUSE_CONT)
    }

    /// The next attempt that libcurl is done with, and how.
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
            if attempt?.spliced != nil { return 0 }
            let interest: EventPoll.Interest
            switch what {
            case CURL_POLL_IN: interest = .read
            case CURL_POLL_OUT: interest = .write
            case CURL_POLL_INOUT: interest = [.read, .write]
            default:
                pool.watch.dismiss(socket)
                return 0
            }
            attempt?.socket = socket
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
