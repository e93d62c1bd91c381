import CCurl
internal import TowlineCore
internal import TowlineEngine

/// A running attempt: one HTTP request and its response. Confined to one engine thread, a thread that runs libcurl.
///
/// libcurl's callbacks call an attempt, which follows the receiver's decisions, records an end or a pause, and reports
/// it to libcurl through the return value; `AttemptLoop` acts on it once libcurl has returned.
final class Attempt {
    /// The progress of the attempt. The phase in which a failure occurs determines its kind (`FailureTable`).
    enum Phase {
        /// No connection is ready for the request.
        case connecting
        /// The request was sent, and the final response head has not arrived.
        case requested
        /// The receiver has the response head.
        case body
    }

    /// The state of a paused body: not paused, paused until `Transport.proceed`, or paused for a duration.
    enum Pause {
        case none
        case untilProceed
        case untilDeadline(Duration)

        var isNone: Bool { if case .none = self { true } else { false } }
    }

    let request: AttemptRequest
    let receiver: any AttemptReceiver
    let pool: ConnectionPool
    let handle: EasyHandle
    /// The cookies of the download that were set on the handle for the request, one per line of the Netscape format.
    let cookies: [String]
    /// `true` if the request was sent over HTTP/2 although HTTP/1.1 was possible.
    private(set) var speaksHTTP2 = false
    /// `true` if the status of the response head is 2xx.
    private(set) var hasSucceeded = false
    /// `true` if the server ended the HTTP/2 connection with an error (GOAWAY). libcurl 7.88 still waits for the
    /// response.
    private(set) var hasBrokenConnection = false
    /// `true` if the broken connection made this attempt switch its host to HTTP/1.1.
    var hasFallenBack = false
    private var piecesSeen = 0
    /// `true` if the request was repeated over a new connection.
    private(set) var isRepeated = false
    /// `true` if bytes that belong to no response were waiting on the reused connection.
    private(set) var hasStrayBytes = false

    private(set) var phase = Phase.connecting
    /// A 401 response that libcurl probably answers with the credentials, in a second request of the same attempt.
    var challenge: (head: ResponseHead, framing: AttemptEnd.Framing)?
    var challengeCount = 0
    /// `true` if the server rejected Basic and offers Digest authentication: the loop must send the request again, from
    /// a pool whose handles send credentials only after a 401.
    var needsDigest = false
    private(set) var framing = AttemptEnd.Framing.delimited
    /// The end that the receiver or the head's limits decided before libcurl reported a result; `nil` if libcurl
    /// decides.
    private(set) var decidedEnd: AttemptEnd?
    private(set) var pause = Pause.none
    /// The number of times the request was sent: libcurl sends it again if a reused connection was dead or the server
    /// refused the stream.
    private(set) var requestCount = 0
    /// The time at which the request was last sent.
    private var requestedAt = MonotonicTime.never
    /// `true` if an address of the host was rejected because it is not public.
    private(set) var hasRefusedAddress = false
    /// The host whose addresses libcurl connects to; `nil` with a proxy or a numeric address in the URL.
    var place: AddressBook.Place?
    /// The addresses that the user gave for the host; `nil` if the user gave none.
    var fixedAddresses: [SocketAddress]?
    /// The parallel connection attempts to the host's addresses; `nil` until libcurl connects to the first one.
    private(set) var race: AddressRace?
    /// The end of a response that became complete during a pause, reported after `proceed`; otherwise `nil`.
    var heldEnd: AttemptEnd?

    /// The time at which bytes of the response last arrived. Recorded only if attempts may share the connection.
    private var heard = MonotonicTime.never

    /// `true` if no byte of the response has arrived yet or within the last second. `false` while connecting.
    var isSilent: Bool {
        phase == .requested || phase == .body && heard < .never && heard.milliseconds(until: .now) >= 1000
    }

    /// The descriptor of the socket that libcurl last waited for; `nil` before it waited.
    var socket: Int32?
    /// The state of TLS read-ahead. Only `ReadAhead` uses it.
    var readAhead = ReadAhead.Reader()
    /// The number of header lines and pieces of the body that libcurl delivered.
    private var pieces = 0

    /// The splicing of the body; `nil` if libcurl delivers the whole body.
    var splicing: Splicing?
    /// `true` if the receiver has bytes of the body that libcurl delivered.
    private(set) var hasBody = false

    /// Returns whether libcurl may deliver the next bytes of the body.
    var isFed: Bool { pause.isNone && decidedEnd == nil && splicing?.isOffered != true }

    /// The maximum time from the response head to the end of the body that the receiver expects; `nil` if it set no
    /// limit.
    private var endLimit: Duration?

    /// `true` if the receiver expects the body to end soon and was not notified that the end is late.
    var isBrief: Bool { endLimit != nil }

    /// The attempt's deadline and its index in the heap. Only `DeadlineQueue` uses these two properties.
    var deadline = MonotonicTime.never
    var deadlineIndex: Int?

    private var collector: HeadCollector
    private let deadlineDidChange: (Attempt) -> Void

    init(
        _ request: AttemptRequest, receiver: any AttemptReceiver, pool: ConnectionPool, handle: EasyHandle,
        cookies: [String], deadlineDidChange: @escaping (Attempt) -> Void
    ) {
        self.request = request
        self.receiver = receiver
        self.pool = pool
        self.handle = handle
        self.cookies = cookies
        collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
        self.deadlineDidChange = deadlineDidChange
    }

    var id: AttemptID { request.id }
    var headTimeout: Duration { request.connection.headTimeout }
    /// The server that the attempt sends its request to.
    var origin: HTTPURL.Origin { request.url.origin }

    /// The time until the loop ends, resumes or checks the attempt if its state does not change; `nil` if it has no
    /// limit.
    var timeLimit: Duration? {
        if hasBrokenConnection, pause.isNone { return Self.brokenLimit }
        if phase == .requested { return headTimeout }
        if phase == .connecting { return race == nil ? nil : AddressRace.delay }
        switch pause {
        case .none: return endLimit
        case .untilProceed: return nil
        case .untilDeadline(let delay): return delay
        }
    }

    /// The time without a byte after which the rest of a response on a broken connection is no longer expected.
    private static let brokenLimit = Duration.seconds(1)

    /// Records that the server ended the HTTP/2 connection with an error (GOAWAY).
    func breakConnection() {
        hasBrokenConnection = true
        deadlineDidChange(self)
    }

    /// Returns whether header lines or pieces of the body arrived since the last call.
    func hasNews() -> Bool {
        defer { piecesSeen = pieces }
        return pieces > piecesSeen
    }

    /// Notifies the receiver, once, that the body did not end within the time of `HeadDisposition.proceedBriefly`.
    func tellLateEnd() {
        endLimit = nil
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

    /// Marks the attempt as not paused. The caller must resume libcurl.
    func endPause() { pause = .none }

    /// Pauses for a delay, or until `proceed` if `delay` is `nil`. The body is no longer expected to end soon.
    func wait(for delay: Duration?) {
        endLimit = nil
        pause = delay.map(Pause.untilDeadline) ?? .untilProceed
        if delay != nil { deadlineDidChange(self) }
    }

    // MARK: Callbacks of libcurl

    /// Records that libcurl connects a socket to an address, which starts the delay before the next address.
    func connects(_ descriptor: Int32, to address: SocketAddress) {
        guard phase == .connecting, place != nil else { return }
        race = race ?? AddressRace()
        race?.add(descriptor, address)
        deadlineDidChange(self)
    }

    /// Records that an address of the host was rejected because it is not public.
    func refuseAddress() { hasRefusedAddress = true }

    /// Discards the state of the response, because the request is about to be repeated over a new connection.
    func beginAgain() {
        isRepeated = true
        hasStrayBytes = false
        decidedEnd = nil
        phase = .connecting
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
        guard phase != .body else {
            if decidedEnd == nil { decidedEnd = .complete(framing) }
            return false
        }
        let mayHaveStrayBytes = !isRepeated && origin.scheme == .http && handle.reusesConnection
        // With TLS, the waiting bytes may be messages of TLS.
        guard !mayHaveStrayBytes || !pool.hasBytes(onPort: localPort) else {
            hasStrayBytes = true
            return false
        }
        requestCount += 1
        requestedAt = .now
        phase = .requested
        challenge = nil
        collector.restart()
        pool.readAhead.requestIsSent(by: self)
        speaksHTTP2 =
            pool.options.httpProtocol == .automatic && origin.scheme == .https && handle.speaksHTTP2
        hasBrokenConnection = false
        if speaksHTTP2, pool.sharing == .none { handle.watchGoAway() }
        deadlineDidChange(self)
        return true
    }

    /// Processes one header line from libcurl. Returns the number of bytes taken; 0 makes libcurl abort the request.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
        guard decidedEnd == nil else { return 0 }
        pieces += 1
        pool.readAhead.noteBytes(of: self)
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
                challenge = (head, framing)
                collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
                return line.count
            }
            guard !needsDigest else { return 0 }
            return take(head, framing) ? line.count : 0
        }
    }

    /// Passes a response head to the receiver and follows its decision.
    ///
    /// - Returns: `false` if libcurl must abort the request.
    func take(_ head: ResponseHead, _ framing: AttemptEnd.Framing) -> Bool {
        var head = head
        self.framing = framing
        phase = .body
        hasSucceeded = (200..<300).contains(head.status)
        // nginx accepts clients without a certificate and then sends 400.
        if head.status == 400, CertificateRequests.contains(id) {
            decidedEnd = .failed(FailureTable.certificateRequired)
            return false
        }
        let now = MonotonicTime.now
        head.latency = .nanoseconds(max(0, now.nanoseconds - requestedAt.nanoseconds))
        if pool.sharing != .none { heard = now }
        if framing == .closed { handle.watchCloseNotify() }
        if head.version == .http1_1 || head.version == .http1_0 {
            pool.readAhead.begin(for: self)
            if framing == .delimited, let latency = head.latency {
                splicing = Splicing(
                    for: receiver, handle, headCount: collector.responseByteCount, now: now, latency: latency)
            }
        } else {
            pool.carriesStreams(of: self)
        }
        defer { deadlineDidChange(self) }
        switch receiver.receivedHead(head) {
        case .proceed: break
        case .proceedBriefly(let limit): endLimit = limit
        case .pause: pause = .untilProceed
        case .stop:
            decidedEnd = .stopped
            return false
        }
        return true
    }

    /// Passes bytes of the body to the receiver. Returns the number taken, 0 to abort, or `CURL_WRITEFUNC_PAUSE`.
    func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        takeChallenge()
        guard decidedEnd == nil, phase == .body else { return 0 }
        guard isFed else { return Int(CURL_WRITEFUNC_PAUSE) }
        guard !bytes.isEmpty else { return 0 }
        let newBytes = splicing?.newBytes(of: bytes) ?? bytes
        guard !newBytes.isEmpty else { return bytes.count }
        if pool.sharing != .none { heard = .now }
        pieces += 1
        pool.feeds(self)
        switch receiver.receivedBody(newBytes) {
        case .consumed:
            hasBody = true
            let mustPause = splicing?.took(newBytes.count, ofPiece: bytes.count) == true
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
