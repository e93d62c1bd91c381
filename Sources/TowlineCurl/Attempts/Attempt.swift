import CCurl
internal import TowlineCore
internal import TowlineEngine

/// A running attempt: one HTTP request and its response. Confined to one engine thread, a thread that runs libcurl.
///
/// libcurl's callbacks call an attempt, which follows the receiver's decisions, records an end or a pause, and reports
/// it to libcurl through the return value; `AttemptLoop` acts on it once libcurl has returned.
final class Attempt {
    /// The state of the attempt's request and its response, with the data that each state needs.
    private enum Exchange {
        /// No connection to the server is ready for the request yet.
        case connecting
        /// The request was last sent at the given time, and the final response head (not 1xx) has not arrived yet.
        case requested(since: MonotonicTime)
        /// A 401 response arrived that libcurl probably answers with the credentials, in a second request of the same
        /// attempt.
        case challenged(ResponseHead, AttemptEnd.Framing, since: MonotonicTime)
        /// The receiver has the response head, and the body follows or is arriving.
        case body(ResponseBody)
    }

    /// The progress of the attempt. `FailureTable` uses the phase in which a failure occurs to determine the kind of
    /// failure.
    enum Phase {
        /// No connection to the server is ready for the request yet.
        case connecting
        /// The request was sent, and the final response head (not 1xx) has not arrived yet.
        case requested
        /// The receiver has the response head, and the body follows or is arriving.
        case body
    }

    /// The progress of authentication: how many 401 responses libcurl has answered, or that Digest authentication is
    /// needed.
    enum Challenges {
        /// libcurl answers 401 responses with the credentials, and has answered the given number.
        case answered(Int)
        /// The server rejected Basic and offers Digest authentication: the loop must send the request again, from a
        /// pool whose handles send credentials only after a 401.
        case needsDigest
    }

    /// The addresses of the host that the attempt connects to: those that the user gave, or those that are tried in
    /// parallel.
    struct Addresses {
        /// The host whose addresses libcurl connects to; `nil` with a proxy or a numeric address in the URL.
        var endpoint: AddressBook.Endpoint?
        /// The addresses that the user gave for the host; `nil` if the user gave none.
        var fixed: [SocketAddress]?
        /// The parallel connection attempts to the host's addresses; `nil` until libcurl connects to the first one.
        var race: AddressRace?
        /// `true` if an address of the host was rejected because it is not public, which the error message then
        /// mentions.
        var hasRefused = false
    }

    /// The connection that the request was sent over, with its HTTP version and whether an earlier request used it.
    struct Connection {
        /// The use of HTTP/2 on the connection, if HTTP/1.1 was possible too. After a failure of HTTP/2, later requests
        /// use HTTP/1.1.
        enum HTTP2 {
            case unused
            case used
            /// The server ended the connection with an error (GOAWAY). libcurl 7.88 still waits for the response.
            case broken
        }

        /// The rule for reusing a connection of an earlier request, changed by a failure of a reused connection.
        enum Reuse {
            case allowed
            /// Bytes that belong to no response were waiting on the reused connection.
            case foundStrayBytes
            /// The request was repeated over a new connection after a failure of a reused one, so it is not repeated
            /// again.
            case repeated
        }

        /// The descriptor of the socket that libcurl last waited for; `nil` before it waited.
        var socket: Int32?
        /// The receive buffer of the socket; `nil` while no rate limit applies.
        var receiveBuffer: ReceiveBuffer?
        var http2 = HTTP2.unused
        /// `true` if an HTTP/2 connection that the server ended with an error made this attempt switch its host to
        /// HTTP/1.1.
        var hasFallenBack = false
        var reuse = Reuse.allowed
        /// The number of times the request was sent: libcurl sends it again if a reused connection was dead or the
        /// server refused the stream.
        var requestCount = 0
        /// `true` if header lines or pieces of the body arrived since the last call of `hasNews()`. A response on a
        /// broken connection then gets more time.
        fileprivate var hasNews = false
    }

    /// The request to send: URL, header fields and connection options.
    let request: AttemptRequest
    /// The receiver of the response head and the body, which decides how the attempt continues.
    let receiver: any AttemptReceiver
    /// The pool of open connections with the options of the request. The attempt may reuse a connection of this pool.
    let pool: ConnectionPool
    let handle: EasyHandle
    private let deadlineDidChange: (Attempt) -> Void

    private var state = Exchange.connecting
    private var collector: HeadCollector
    /// The end of the attempt that the receiver or the limits for response heads decided before libcurl reported a
    /// result; `nil` if libcurl decides.
    private(set) var decidedEnd: AttemptEnd?
    var addresses = Addresses()
    var connection = Connection()
    var challenges = Challenges.answered(0)
    /// The time at which the event loop must act on the attempt, such as a timeout or the end of a pause. Only
    /// `DeadlineQueue` uses it.
    var deadline = DeadlineQueue.Entry()

    init(
        _ request: AttemptRequest, receiver: any AttemptReceiver, pool: ConnectionPool, handle: EasyHandle,
        deadlineDidChange: @escaping (Attempt) -> Void
    ) {
        self.request = request
        self.receiver = receiver
        self.pool = pool
        self.handle = handle
        collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
        self.deadlineDidChange = deadlineDidChange
    }

    var id: AttemptID { request.id }
    var headTimeout: Duration { request.connection.headTimeout }
    /// The server (scheme, host and port) that the attempt sends its request to.
    var origin: HTTPURL.Origin { request.url.origin }

    var phase: Phase {
        switch state {
        case .connecting: .connecting
        case .requested, .challenged: .requested
        case .body: .body
        }
    }

    /// The delivery of the response's body; `nil` before the receiver has the response head.
    var body: ResponseBody? { if case .body(let body) = state { body } else { nil } }

    var isPaused: Bool { body?.isPaused == true }

    /// The connection that the kernel moves the body from (`Splicing`); `nil` while libcurl reads the body.
    var splicedSocket: Int32? { body?.splicing?.socket }

    /// `true` if no byte of the response has arrived yet or within the last second; later attempts then use another
    /// connection. `false` while connecting.
    var isSilent: Bool {
        switch state {
        case .connecting: false
        case .requested, .challenged: true
        case .body(let body): body.heard < .never && body.heard.milliseconds(until: .now) >= 1000
        }
    }

    /// The time until the event loop ends, resumes or checks the attempt if its state does not change; `nil` if it has
    /// no limit.
    var timeLimit: Duration? {
        if isBroken { return Self.brokenLimit }
        switch state {
        case .connecting: return addresses.race == nil ? nil : AddressRace.delay
        case .requested, .challenged: return headTimeout
        case .body(let body): return body.timeLimit
        }
    }

    /// The time without a byte after which the attempt no longer waits for the rest of a response on a broken
    /// connection.
    private static let brokenLimit = Duration.seconds(1)

    /// Returns whether the server ended the HTTP/2 connection with an error, and the receiver waits for the rest of the
    /// body.
    var isBroken: Bool { connection.http2 == .broken && !isPaused }

    /// Records that the server ended the HTTP/2 connection with an error (GOAWAY).
    func breakConnection() {
        connection.http2 = .broken
        deadlineDidChange(self)
    }

    /// Returns whether header lines or pieces of the body arrived since the last call, and resets that record.
    func hasNews() -> Bool {
        defer { connection.hasNews = false }
        return connection.hasNews
    }

    /// Notifies the receiver, once, that the body did not end within the time of `HeadDisposition.proceedBriefly`.
    func tellLateEnd() {
        body?.expectEnd(within: nil)
        receiver.bodyDeadlinePassed()
    }

    /// Notifies the receiver that all available bytes were delivered (`AttemptReceiver.flush`).
    ///
    /// - Returns: `false` if the receiver stops the attempt; the caller must then end it, because libcurl does not know
    ///   yet.
    func rests() -> Bool {
        guard decidedEnd == nil, !receiver.flush() else { return true }
        decidedEnd = .stopped
        return false
    }

    /// Pauses the delivery of the response for a delay, or until `proceed` if `delay` is `nil`. The body is no longer
    /// expected to end soon.
    func wait(for delay: Duration?) {
        body?.pause(for: delay)
        guard delay != nil else { return }
        fitReceiveBuffer()
        deadlineDidChange(self)
    }

    /// Records the socket that libcurl waits for. On a reused connection, the head may have arrived before libcurl
    /// waited for the first time.
    func waits(for socket: Int32) {
        let isFirst = connection.socket == nil
        connection.socket = socket
        if isFirst, body != nil || receiver.rateLimit != nil { fitReceiveBuffer() }
    }

    /// Fits the receive buffer of the connection to the rate limit of the receiver, which may have changed.
    func fitReceiveBuffer() {
        // A small buffer before the connection exists would limit the window scale for ever (RFC 7323 §2.2).
        guard phase != .connecting, let socket = connection.socket else { return }
        guard let rate = receiver.rateLimit else {
            // An earlier request of a limited download may have left a small buffer.
            let wasLimited = connection.receiveBuffer.take() != nil
            if wasLimited || pool.hasSmallBuffers && handle.reusesConnection { ReceiveBuffer.release(socket) }
            return
        }
        var buffer = connection.receiveBuffer ?? ReceiveBuffer(socket)
        buffer.fit(to: rate)
        connection.receiveBuffer = buffer
        pool.hasSmallBuffers = true
    }

    // MARK: Callbacks of libcurl

    /// Records that libcurl connects a socket to an address. The next address is tried if that takes too long.
    func connects(_ descriptor: Int32, to address: SocketAddress) {
        guard phase == .connecting, addresses.endpoint != nil else { return }
        let race = addresses.race ?? AddressRace()
        race.add(descriptor, address)
        addresses.race = race
        deadlineDidChange(self)
    }

    /// Discards the state of the response, because the request is about to be repeated over a new connection.
    func beginAgain() {
        connection.reuse = .repeated
        connection.receiveBuffer = nil
        decidedEnd = nil
        state = .connecting
        collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
        deadlineDidChange(self)
    }

    /// Prepares for the response. libcurl calls it when the connection is ready, immediately before it sends the
    /// request.
    ///
    /// - Parameter localPort: the local port of the connection.
    /// - Returns: `false` if the request must not be sent: bytes after an earlier body wait on the connection, or the
    ///   receiver already has a 401 response, which libcurl would answer too.
    func willSendRequest(from localPort: Int32) -> Bool {
        if case .body(let body) = state {
            if decidedEnd == nil { decidedEnd = .complete(body.framing) }
            return false
        }
        let mayHaveStrayBytes = connection.reuse != .repeated && origin.scheme == .http && handle.reusesConnection
        // With TLS, the waiting bytes may be messages of TLS.
        guard !mayHaveStrayBytes || !pool.hasBytes(onPort: localPort) else {
            connection.reuse = .foundStrayBytes
            return false
        }
        connection.requestCount += 1
        state = .requested(since: .now)
        collector.restart()
        let usesHTTP2 = pool.options.httpProtocol == .automatic && origin.scheme == .https && handle.speaksHTTP2
        connection.http2 = usesHTTP2 ? .used : .unused
        if usesHTTP2, pool.sharing == .none { handle.watchGoAway() }
        // The server may send more than the limit allows before the head is read.
        if receiver.rateLimit != nil { fitReceiveBuffer() }
        deadlineDidChange(self)
        return true
    }

    /// Processes one header line from libcurl. Returns the number of bytes taken; 0 makes libcurl abort the request.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
        guard decidedEnd == nil else { return 0 }
        connection.hasNews = true
        switch collector.take(line) {
        case .more:
            return line.count
        case .refused(let failure):
            decidedEnd = .failed(failure)
            return 0
        case .head(let head, _) where isLateTimeout(head):
            decidedEnd = .failed(FailureTable.headCut)
            return 0
        case .head(let head, let framing):
            takeBackCookies(head)
            if isChallenge(head) {
                state = .challenged(head, framing, since: requestTime)
                collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
                return line.count
            }
            if case .needsDigest = challenges { return 0 }
            return take(head, framing) ? line.count : 0
        }
    }

    /// The time at which the request was last sent, when the measured time to the response head begins; `never` before
    /// that and after the head.
    private var requestTime: MonotonicTime {
        switch state {
        case .requested(let time), .challenged(_, _, let time): time
        case .connecting, .body: .never
        }
    }

    /// Passes a 401 response to the receiver if libcurl has not answered it with credentials.
    func takeChallenge() {
        if case .challenged(let head, let framing, _) = state { _ = take(head, framing) }
    }

    /// Passes a response head to the receiver and follows its decision.
    ///
    /// - Returns: `false` if libcurl must abort the request.
    private func take(_ head: ResponseHead, _ framing: AttemptEnd.Framing) -> Bool {
        var head = head
        let requestTime = requestTime
        let body = ResponseBody(of: head, framing: framing)
        state = .body(body)
        // nginx accepts clients without a certificate and then sends 400.
        if head.status == 400, CertificateRequests.contains(id) {
            decidedEnd = .failed(FailureTable.certificateRequired)
            return false
        }
        let now = MonotonicTime.now
        head.latency = .nanoseconds(max(0, now.nanoseconds - requestTime.nanoseconds))
        if pool.sharing != .none { body.heard = now }
        if framing == .closed { handle.watchCloseNotify() }
        if head.version == .http1_1 || head.version == .http1_0 {
            if framing == .delimited, let latency = head.latency {
                body.splicing = Splicing(
                    for: receiver, handle, headCount: collector.responseByteCount, now: now, latency: latency)
            }
        } else {
            pool.carriesStreams(of: self)
        }
        fitReceiveBuffer()
        defer { deadlineDidChange(self) }
        switch receiver.receivedHead(head) {
        case .proceed: break
        case .proceedBriefly(let limit): body.expectEnd(within: limit)
        case .pause: body.pause(for: nil)
        case .stop:
            decidedEnd = .stopped
            return false
        }
        return true
    }

    /// Passes bytes of the body to the receiver. Returns the number taken, 0 to abort, or `CURL_WRITEFUNC_PAUSE`.
    func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        takeChallenge()
        guard decidedEnd == nil, case .body(let body) = state else { return 0 }
        guard body.acceptsBytes else { return Int(CURL_WRITEFUNC_PAUSE) }
        guard !bytes.isEmpty else { return 0 }
        let newBytes = body.splicing?.newBytes(of: bytes) ?? bytes
        guard !newBytes.isEmpty else { return bytes.count }
        if pool.sharing != .none { body.heard = .now }
        connection.hasNews = true
        pool.feeds(self)
        switch receiver.receivedBody(newBytes) {
        case .consumed:
            body.hasBytes = true
            if connection.receiveBuffer != nil { fitReceiveBuffer() }
            let mustPause = body.splicing?.took(newBytes.count, ofPiece: bytes.count) == true
            return mustPause ? Int(CURL_WRITEFUNC_PAUSE) : bytes.count
        case .pause:
            wait(for: nil)
            return Int(CURL_WRITEFUNC_PAUSE)
        case .pauseFor(let delay):
            wait(for: delay)
            return Int(CURL_WRITEFUNC_PAUSE)
        case .stop:
            decidedEnd = .stopped
            return 0
        }
    }
}
