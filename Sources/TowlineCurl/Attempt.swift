import CCurl
internal import TowlineCore
internal import TowlineEngine

/// A running attempt. Confined to its engine thread.
///
/// libcurl's callbacks land here and decide nothing but what the receiver said: they note an end or a pause and tell
/// libcurl through their return value; `AttemptLoop` acts on it once libcurl has returned.
final class Attempt {
    /// How far the attempt is, for telling failures apart.
    enum Phase {
        /// No connection that is ready for the request.
        case connecting
        /// The request is on its way, the final head is not there.
        case requested
        /// The head was handed to the receiver.
        case body
    }

    /// Whether the body waits, and for what.
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
    /// The cookies of the jar that the handle has for the request.
    let cookies: [String]
    /// The request went out over HTTP/2 although HTTP/1.1 would do.
    private(set) var speaksHTTP2 = false
    /// The head's status is 2xx.
    private(set) var hasSucceeded = false
    /// The server ended the HTTP/2 connection with an error (GOAWAY). libcurl 7.88 still waits for the response.
    private(set) var hasBrokenConnection = false
    /// The end of its connection made its host one that is asked over HTTP/1.1.
    var hasFallenBack = false
    private var piecesSeen = 0
    /// The request was repeated over a fresh connection.
    private(set) var isRepeated = false
    /// Bytes that belong to no response waited on the connection.
    private(set) var hasStrayBytes = false

    private(set) var phase = Phase.connecting
    /// A response 401 that libcurl probably answers with the credentials, in a second request of the same attempt.
    var challenge: (head: ResponseHead, framing: AttemptEnd.Framing)?
    var challengeCount = 0
    /// The server rejected Basic and offers Digest: the request must be sent again, from a pool that waits for a
    /// challenge.
    var needsDigest = false
    private(set) var framing = AttemptEnd.Framing.delimited
    /// The end that the receiver or the head's limits asked for while libcurl still thought that all was well.
    private(set) var decidedEnd: AttemptEnd?
    private(set) var pause = Pause.none
    /// How often the request was sent: libcurl sends it again if a reused connection was dead or the server refused
    /// the stream.
    private(set) var requestCount = 0
    /// When the last of them went out.
    private var requestedAt = MonotonicTime.never
    /// An address was not connected to, since it is not public.
    private(set) var hasRefusedAddress = false
    /// The host, if its addresses are known to libcurl alone: no proxy, and no address in the URL.
    var place: AddressBook.Place?
    /// The addresses that the user gave for the host.
    var fixedAddresses: [SocketAddress]?
    /// The addresses that are connected to.
    private(set) var race: AddressRace?
    /// The end of a response without a body whose head the receiver answered with `.pause`.
    var heldEnd: AttemptEnd?

    /// When something of the answer came last; noted where others share the connection.
    private var heard = MonotonicTime.never

    /// Nothing of the answer has come for a while, or ever; one that waits for its connection says nothing of that.
    var isSilent: Bool {
        phase == .requested || phase == .body && heard < .never && heard.milliseconds(until: .now) >= 1000
    }

    /// The socket that libcurl waited for last.
    var socket: Int32? { didSet { pool.readsFrom(self) } }
    /// Whether TLS reads ahead.
    private(set) var readsAhead = false
    /// Whether it is one of those to be asked; `ReadAhead`'s alone, as the next one is.
    var mayHoldUnread = false
    /// So many calls of libcurl's that were to bring more have brought nothing.
    var vainCalls = 0
    /// So many lines of the head and pieces of the body came.
    private(set) var pieces = 0

    /// The rest of the body, where the kernel moves it.
    var spliced: SplicedBody?
    /// When that pays off; `nil` where it is out of the question.
    private var splicePolicy: SplicePolicy?
    /// Bytes of this response's head, those of interim ones included, and of its body.
    private var headCount: Int64 = 0
    private var bodyCount: Int64 = 0
    /// libcurl rests, and was told that the last piece is not taken, which it is: paused from outside of its callback, it may read
    /// once more.
    private(set) var isOffered = false
    /// So many bytes will be delivered a second time, if it goes on.
    private var known = 0

    /// Whether the receiver has some of its body.
    var hasBody: Bool { bodyCount > 0 }

    /// So many bytes of the response were handed over.
    var passed: Int64 { headCount + bodyCount }

    /// So many bytes of the body are to come, where its length is known.
    var rest: Int64? { handle.contentLength.map { $0 - bodyCount } }

    /// Whether the kernel should move the rest of the body.
    private func pays() -> Bool {
        guard let next = splicePolicy?.next, bodyCount >= next else { return false }
        guard let rest else {
            splicePolicy = nil
            return false
        }
        return splicePolicy?.paysOff(received: bodyCount, rest: rest, now: MonotonicTime.now.sinceStart) == true
            && receiver.takesPipes && receiver.wanted >= SplicePolicy.least
    }

    /// libcurl goes on with it, to the end unless that may be asked `again`.
    func withdraw(again: Bool) {
        isOffered = false
        if !again { splicePolicy = nil }
    }

    /// Whether what comes next of the body goes to the receiver.
    var isFed: Bool { pause.isNone && decidedEnd == nil }

    /// In what time after its head the body is expected to end.
    private var endLimit: Duration?

    /// The body was to end soon after its head, and its receiver has not heard that it is late.
    var isBrief: Bool { endLimit != nil }

    /// Where the attempt is in the `DeadlineQueue`, whose alone these two are.
    var deadline = MonotonicTime.never
    var deadlineIndex: Int?

    private var collector: HeadCollector
    private let cache: FieldCache
    private let deadlineDidChange: (Attempt) -> Void

    init(
        _ request: AttemptRequest, receiver: any AttemptReceiver, pool: ConnectionPool, handle: EasyHandle,
        cookies: [String], cache: FieldCache, deadlineDidChange: @escaping (Attempt) -> Void
    ) {
        self.request = request
        self.receiver = receiver
        self.pool = pool
        self.handle = handle
        self.cookies = cookies
        collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
        self.cache = cache
        self.deadlineDidChange = deadlineDidChange
    }

    var id: AttemptID { request.id }
    var headTimeout: Duration { request.connection.headTimeout }
    /// The server.
    var origin: HTTPURL.Origin { request.url.origin }

    /// How long the attempt may go on as it is; `nil`: for ever.
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

    /// Time without a byte after which the rest of a response on such a connection is no longer expected.
    private static let brokenLimit = Duration.seconds(1)

    /// Notes the end of the HTTP/2 connection with an error.
    func breakConnection() {
        hasBrokenConnection = true
        deadlineDidChange(self)
    }

    /// Returns whether bytes came since the last call.
    func hasNews() -> Bool {
        defer { piecesSeen = pieces }
        return pieces > piecesSeen
    }

    /// The body should have ended by now: its receiver is told, once.
    func tellLateEnd() {
        endLimit = nil
        receiver.endIsLate()
    }

    /// What was at hand is delivered.
    ///
    /// - Returns: `false`: the receiver wants no more, and libcurl does not know that yet.
    func rests() -> Bool {
        guard decidedEnd == nil, !receiver.bodyRests() else { return true }
        decidedEnd = .stopped
        return false
    }

    /// Ends the pause, in our books; libcurl is told by the caller.
    func endPause() { pause = .none }

    /// Waits for a time, or for `proceed`. Its end is not expected soon any more.
    func wait(for delay: Duration?) {
        endLimit = nil
        pause = delay.map(Pause.untilDeadline) ?? .untilProceed
        if delay != nil { deadlineDidChange(self) }
    }

    // MARK: What libcurl's callbacks say

    /// libcurl connects to an address.
    func connects(_ descriptor: Int32, to address: SocketAddress) {
        guard phase == .connecting, place != nil else { return }
        race = race ?? AddressRace()
        race?.add(descriptor, address)
        deadlineDidChange(self)
    }

    /// An address that the host's name leads to is not public.
    func refuseAddress() { hasRefusedAddress = true }

    /// Forgets what came, because the request is about to be repeated over a fresh connection.
    func beginAgain() {
        isRepeated = true
        hasStrayBytes = false
        decidedEnd = nil
        phase = .connecting
        collector = HeadCollector(ignoresLength: request.connection.ignoresLength)
        deadlineDidChange(self)
    }

    /// The connection is ready and the request goes out next.
    ///
    /// - Parameter localPort: that of the connection.
    /// - Returns: `false` if the request must not be sent: bytes after an earlier body wait on the connection, or the
    ///   receiver already has a response 401, and libcurl would answer that one as well.
    func willSendRequest(from localPort: Int32) -> Bool {
        guard phase != .body else {
            if decidedEnd == nil { decidedEnd = .complete(framing) }
            return false
        }
        let mayHaveStrayBytes = !isRepeated && origin.scheme == .http && handle.reusesConnection
        // With TLS, they may be messages of TLS.
        guard !mayHaveStrayBytes || !pool.hasBytes(onPort: localPort) else {
            hasStrayBytes = true
            return false
        }
        requestCount += 1
        requestedAt = .now
        phase = .requested
        challenge = nil
        collector.restart()
        headCount = 0
        readsAhead = pool.sharing == .none && handle.readsAhead
        speaksHTTP2 =
            pool.options.httpProtocol == .automatic && origin.scheme == .https && handle.speaksHTTP2
        hasBrokenConnection = false
        if speaksHTTP2, pool.sharing == .none { handle.watchGoAway() }
        deadlineDidChange(self)
        return true
    }

    /// One header line. Returns how many bytes were taken; 0 makes libcurl give up.
    func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
        guard decidedEnd == nil else { return 0 }
        pieces += 1
        headCount += Int64(line.count)
        pool.mayHold(self)
        switch collector.take(line, cache) {
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

    /// Hands a head to the receiver.
    ///
    /// - Returns: `false`: libcurl is to give up.
    func take(_ head: ResponseHead, _ framing: AttemptEnd.Framing) -> Bool {
        var head = head
        self.framing = framing
        phase = .body
        hasSucceeded = (200..<300).contains(head.status)
        // nginx lets everybody in and answers so.
        if head.status == 400, CertificateRequests.contains(id) {
            decidedEnd = .failed(FailureTable.certificateRequired)
            return false
        }
        let now = MonotonicTime.now
        head.latency = .nanoseconds(max(0, now.nanoseconds - requestedAt.nanoseconds))
        if pool.sharing != .none { heard = now }
        if framing == .closed { handle.watchCloseNotify() }
        if head.version == .http1_1 || head.version == .http1_0 {
            readAhead()
            if framing == .delimited, let latency = head.latency {
                splicePolicy = SplicePolicy(now: now.sinceStart, latency: latency)
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

    /// Where streams share a connection, and in HTTP/2, libcurl keeps books of its own about what is left to read.
    private func readAhead() {
        guard pool.sharing == .none, let length = ReadAhead.length(bufferSize: handle.bufferSize) else { return }
        readsAhead = handle.readAhead(length)
        pool.readsFrom(self)
    }

    /// Some bytes of the body. Returns how many were taken, 0 to give up, or `CURL_WRITEFUNC_PAUSE`.
    func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        takeChallenge()
        guard decidedEnd == nil, phase == .body else { return 0 }
        guard pause.isNone, !isOffered else { return Int(CURL_WRITEFUNC_PAUSE) }
        guard !bytes.isEmpty else { return 0 }
        if known > 0 { return takeBehindKnown(bytes) }
        if pool.sharing != .none { heard = .now }
        pieces += 1
        pool.feeds(self)
        switch receiver.receivedBody(bytes) {
        case .consumed:
            bodyCount += Int64(bytes.count)
            // The last piece of a reading, so that nothing of it is left with libcurl.
            guard bytes.count < Int(CURL_MAX_WRITE_SIZE), pays() else { return bytes.count }
            isOffered = true
            known = bytes.count
            return Int(CURL_WRITEFUNC_PAUSE)
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

    /// As `takeBody`, of bytes whose beginning was taken before.
    private func takeBehindKnown(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count > known else {
            known -= bytes.count
            return bytes.count
        }
        let before = known
        let rest = UnsafeRawBufferPointer(rebasing: bytes[before...])
        known = 0
        let taken = takeBody(rest)
        // All of them come once more.
        if taken == Int(CURL_WRITEFUNC_PAUSE) { known = isOffered ? bytes.count : before }
        return taken == rest.count ? bytes.count : taken
    }
}
