import CCurl
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// Runs attempts on one engine thread: waits for sockets, clocks and commands, and hands each to whom it concerns.
///
/// Created, used and dropped on that thread; nothing here is locked.
final class AttemptLoop {
    private let poll: EventPoll
    let watch: SocketWatch
    /// The tasks that go on by what small files come to.
    private let tasks: LocalRunQueue
    private let bufferSize: Int
    private let attemptDidEnd: () -> Void
    let http1Hosts: HTTP1Hosts
    private let challengeHosts: ChallengeHosts

    private(set) var attempts: [AttemptID: Attempt] = [:]
    /// A few: one for each kind of options.
    private var pools: [ConnectionPool] = []
    private var lastTag: UInt32 = 0
    /// Field lists of the last requests. Small files of one host send the same list; redirected files alternate between two.
    private var lastFields: [FieldList] = []
    private static let fieldListCount = 4
    private let cache = FieldCache()
    private var environment = ProxyEnvironment.current()
    /// The system gave libcurl no thread to resolve a name: names are resolved on this one from then on.
    private var lacksResolverThread = false
    private var nextEnvironmentCheck = MonotonicTime.now
    var deadlines = DeadlineQueue()
    /// Which addresses failed lately.
    var book = AddressBook()
    /// Sockets that connect beside libcurl's.
    var runners: [Int32: Attempt] = [:]
    /// Looks up the addresses of a host elsewhere; `learn` follows.
    let lookUp: (AddressBook.Place) -> Void
    /// Whose bodies the kernel moves, by their sockets.
    var spliced: [Int32: Attempt] = [:]

    /// A pool in which nothing runs is closed with its connections after this time, or sooner if there are many.
    private static let idlePoolLife = Duration.seconds(60)
    private static let maximumIdlePools = 32
    private static let idlePoolCheckInterval = Duration.seconds(1)
    private var nextIdlePoolCheck = MonotonicTime.now

    init(
        poll: EventPoll, tasks: LocalRunQueue, bufferSize: Int, http1Hosts: HTTP1Hosts,
        challengeHosts: ChallengeHosts, lookUp: @escaping (AddressBook.Place) -> Void,
        attemptDidEnd: @escaping () -> Void
    ) {
        self.poll = poll
        self.lookUp = lookUp
        self.tasks = tasks
        watch = SocketWatch(poll: poll)
        self.bufferSize = bufferSize
        self.http1Hosts = http1Hosts
        self.challengeHosts = challengeHosts
        self.attemptDidEnd = attemptDidEnd
    }

    /// Waits until something is due, unless it must not, and does it.
    ///
    /// - Returns: whether the thread was woken up for commands.
    func turn(mayWait: Bool) -> Bool {
        watch.sendGathered()
        let woken = poll.wait(milliseconds: mayWait ? timeToWait() : 0) { event in
            guard watch.isWanted(event.descriptor) else { return }
            if let attempt = spliced[event.descriptor], let body = attempt.spliced { return read(body, for: attempt) }
            if let attempt = runners[event.descriptor] { return runnerIsReady(event.descriptor, of: attempt) }
            // A pool that was closed a moment ago may have left an event behind.
            guard let pool = pools.first(where: { $0.tag == event.tag }) else { return poll.forget(event.descriptor) }
            act(on: pool) { pool throws(TransportFailure) in
                try pool.socketIsReady(event.descriptor, event.ready)
            }
        }
        let now = MonotonicTime.now
        for pool in pools where pool.timer <= now {
            act(on: pool) { pool throws(TransportFailure) in try pool.timerIsDue() }
        }
        for pool in pools where pool.mayHoldUnread {
            act(on: pool) { pool throws(TransportFailure) in try pool.readOn() }
        }
        // First those that are over: an end that has come is not late.
        reap()
        while let attempt = deadlines.popExpired(at: now) { deadlineCame(for: attempt) }
        reap()
        closeIdlePools(at: now)
        return woken
    }

    private func timeToWait() -> Int32 {
        var next = deadlines.next
        for pool in pools {
            next = min(next, pool.timer)
            if pool.isTouched || pool.mayHoldUnread { return 0 }
            if pool.runningCount == 0 {
                next = min(next, max(nextIdlePoolCheck, endOfLife(of: pool)))
            }
        }
        guard next < .never else { return -1 }
        return Int32(clamping: MonotonicTime.now.milliseconds(until: next))
    }

    func act(
        on pool: ConnectionPool, _ action: (ConnectionPool) throws(TransportFailure) -> Void
    ) {
        do throws(TransportFailure) {
            try action(pool)
        } catch {
            abandon(pool, error)
        }
        endFull(pool)
    }

    private func endFull(_ pool: ConnectionPool) {
        for attempt in pool.takeFull() { end(attempt, .stopped) }
        for attempt in pool.takeOffered() { splice(attempt) }
    }

    // MARK: Commands

    /// Begins an attempt, or ends it at once if it cannot be begun.
    func start(_ request: AttemptRequest, _ receiver: any AttemptReceiver) {
        do throws(TransportFailure) {
            guard attempts[request.id] == nil else {
                let number = request.id.value
                throw TransportFailure(
                    .local, "internal error in Towline (please report this bug): attempt \(number) was started twice")
            }
            try RequestFields.check(request.url.requestText)
            let fields = try fieldList(request.fieldsToSend)
            if request.needsProvenEnd, !CurlLibrary.provesStreamEnd { _ = http1Hosts.add(request.url.origin) }
            let options = request.connection.limited(to: request, besides: challengeHosts)
                .withProxy(for: request.url, from: currentEnvironment())
                .withProtocol(for: request.url.origin, besides: http1Hosts)
            let pool = try pool(for: options, options.mayShare ? request.sharing : .none)
            guard let handle = pool.takeHandle() else { throw TransportFailure(.local, FailureTable.outOfMemory) }
            let cookies = try cookies(for: request)
            let attempt = Attempt(
                request, receiver: receiver, pool: pool, handle: handle, cookies: cookies, cache: cache,
                deadlineDidChange: { [unowned self] attempt in
                    fallBackIfBroken(attempt)
                    deadlines.set(attempt.timeLimit.map { .now.advanced(by: $0) } ?? .never, for: attempt)
                    if attempt.phase != .connecting { endRace(of: attempt) }
                })
            let size = BufferPolicy.size(upTo: bufferSize, running: attempts.count + 1)
            guard handle.prepare(url: request.url, fields: fields, bufferSize: size, for: attempt) else {
                throw TransportFailure(.local, FailureTable.outOfMemory)
            }
            try arrangeAddresses(of: attempt, for: request.url, options)
            let isKnown = !lacksResolverThread || pool.proxy != nil || attempt.fixedAddresses != nil
            guard isKnown || handle.resolveHere(request.url) else {
                throw FailureTable.hostUnknown(options)
            }
            handle.lend(cookies)
            try pool.add(handle)
            attempts[request.id] = attempt
        } catch {
            attemptDidEnd()
            receiver.ended(.failed(error))
        }
    }

    /// The environment's proxies, at most a second old: a look at each request would cost a microsecond.
    private func currentEnvironment() -> ProxyEnvironment {
        let now = MonotonicTime.now
        if now >= nextEnvironmentCheck {
            environment = .current()
            nextEnvironmentCheck = now.advanced(by: .seconds(1))
        }
        return environment
    }

    private func cookies(for request: AttemptRequest) throws(TransportFailure) -> [String] {
        let file = request.sendsStoredCookies ? request.connection.cookieFile : nil
        // libcurl matches a Host field of the user and the ASCII form of the host (IDNA): the jar knows neither.
        let isPlain = request.url.host.utf8.allSatisfy { $0 < 0x80 } && !request.fields.has("Host")
        return try request.connection.cookies.lines(
            for: isPlain ? request.url.host : nil, isEncrypted: request.url.scheme == .https, stored: file != nil
        ) {
            () throws(TransportFailure) in
            try file.map(EasyHandle.cookies(inFile:)) ?? []
        }
    }

    private func fieldList(_ fields: HTTPFields) throws(TransportFailure) -> FieldList {
        if let index = lastFields.firstIndex(where: { $0.fields.isSameOnWire(as: fields) }) {
            return lastFields[index]
        }
        let list = try FieldList(fields)
        if lastFields.count == Self.fieldListCount { lastFields.removeFirst() }
        lastFields.append(list)
        return list
    }

    /// Ends an attempt as cancelled.
    func cancel(_ id: AttemptID) {
        guard let attempt = attempts[id] else { return }
        retireIfSilent(attempt)
        end(attempt, .cancelled)
    }

    /// Goes on with a paused attempt, also with one that waits for a delay: the receiver will say if that is too early. Of
    /// any other the receiver may have kept something back, with which it can do something now.
    func proceed(_ id: AttemptID) {
        guard let attempt = attempts[id] else { return }
        guard attempt.pause.isNone else { return resume(attempt) }
        if attempt.hasBody, attempt.spliced == nil, !attempt.rests() { end(attempt, .stopped) }
    }

    /// Ends everything and closes every connection.
    func stop() {
        // An `ended` callback must not find a half-dead loop, but what it starts goes elsewhere by now.
        for attempt in Array(attempts.values) { end(attempt, .cancelled) }
        pools.removeAll()
    }

    // MARK: Pools

    /// The pool of attempts that may use one another's connections.
    private func pool(
        for options: ConnectionOptions, _ sharing: ConnectionSharing
    ) throws(TransportFailure) -> ConnectionPool {
        let known = pools.first { !$0.isRetired && $0.sharing == sharing && $0.options == options }
        if let known { return known }
        lastTag &+= 1
        if lastTag == EventPoll.alarmTag { lastTag = 1 }
        let pool = try ConnectionPool(options: options, sharing: sharing, tag: lastTag, watch: watch)
        pools.append(pool)
        return pool
    }

    private func closeIdlePools(at now: MonotonicTime) {
        // Not with every turn: turns are as frequent as bytes.
        guard now >= nextIdlePoolCheck else { return }
        nextIdlePoolCheck = now.advanced(by: Self.idlePoolCheckInterval)
        var idle = pools.filter { $0.runningCount == 0 }
        idle.sort { $0.idleSince < $1.idleSince }
        let surplus = idle.count - Self.maximumIdlePools
        for (index, pool) in idle.enumerated()
        where index < surplus || endOfLife(of: pool) <= now { drop(pool) }
    }

    /// When a pool in which nothing runs is closed, unless something begins in it. In one that is retired nothing does.
    private func endOfLife(of pool: ConnectionPool) -> MonotonicTime {
        pool.isRetired ? pool.idleSince : pool.idleSince.advanced(by: Self.idlePoolLife)
    }

    private func drop(_ pool: ConnectionPool) { pools.removeAll { $0 === pool } }

    /// libcurl does not notice that a connection has fallen silent, and would put the next stream on it.
    private func retireIfSilent(_ attempt: Attempt) {
        if attempt.pool.sharing != .none, attempt.isSilent { attempt.pool.isRetired = true }
    }

    /// Gives up a pool whose multi handle refuses to go on, which it does for lack of memory or descriptors.
    private func abandon(_ pool: ConnectionPool, _ failure: TransportFailure) {
        for attempt in Array(attempts.values) where attempt.pool === pool { end(attempt, .failed(failure)) }
        drop(pool)
    }

    // MARK: Attempts

    private func resume(_ attempt: Attempt) {
        deadlines.remove(attempt)
        attempt.endPause()
        if let body = attempt.spliced { return resume(body, for: attempt) }
        if let held = attempt.heldEnd { return end(attempt, held) }
        unpause(attempt)
    }

    /// Has libcurl go on.
    func unpause(_ attempt: Attempt) {
        // After a pause at its head libcurl does not know of one, and the body may be with TLS already.
        attempt.pool.mayHold(attempt)
        // Delivers, within this call, what libcurl holds back. If the receiver stops at that, the transfer goes on as
        // if nothing was lost (7.88): it must not.
        let code = attempt.pool.unpause(attempt)
        // Before the end, from which on the receiver is others'.
        endFull(attempt.pool)
        // One that libcurl is done with has no connection any more; how it ended is to be asked for.
        if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { finish(attempt, code) }
    }

    private func deadlineCame(for attempt: Attempt) {
        if attempt.hasBrokenConnection, attempt.pause.isNone {
            guard !attempt.hasNews() else {
                return deadlines.set(attempt.timeLimit.map { .now.advanced(by: $0) } ?? .never, for: attempt)
            }
            finish(attempt, CURLE_HTTP2)
        } else if attempt.phase == .connecting {
            continueRace(of: attempt)
        } else if attempt.phase == .requested {
            retireIfSilent(attempt)
            let limit = DurationText.format(attempt.headTimeout)
            let reason = "the server sent no response within \(limit)"
            end(attempt, .failed(TransportFailure(.headTimedOut, reason)))
        } else if !attempt.pause.isNone {
            resume(attempt)
        } else {
            attempt.tellLateEnd()
        }
    }

    private func reap() {
        for pool in pools where pool.isTouched {
            pool.isTouched = false
            while let (attempt, code) = pool.nextFinished() { finish(attempt, code) }
        }
    }

    private func finish(_ attempt: Attempt, _ code: CURLcode) {
        if code != CURLE_OK, attempt.handle.lacksResolverThread { lacksResolverThread = true }
        guard !attempt.needsDigest else { return startAgain(attempt) }
        if attempt.phase == .requested { attempt.takeChallenge() }
        var end = FailureTable.end(of: attempt, code)
        if attempts[attempt.id] != nil, attempt.isFaultOfConnection(end) {
            attempt.beginAgain()
            if attempt.pool.repeatOnFreshConnection(attempt.handle) { return }
            end = .failed(TransportFailure(.local, FailureTable.outOfMemory))
        }
        end = withFallback(end, of: attempt, code)
        if case .complete = end, !attempt.pause.isNone {
            attempt.heldEnd = end
        } else {
            self.end(attempt, end)
        }
    }

    /// Sends the request of an attempt again, with Digest.
    private func startAgain(_ attempt: Attempt) {
        guard forget(attempt) else { return }
        challengeHosts.add(attempt.origin)
        start(attempt.request, attempt.receiver)
    }

    /// - Returns: `false` if the attempt has ended before.
    private func forget(_ attempt: Attempt) -> Bool {
        guard attempts.removeValue(forKey: attempt.id) != nil else { return false }
        if let body = attempt.spliced {
            spliced[body.socket] = nil
            attempt.spliced = nil
        }
        deadlines.remove(attempt)
        attempt.pool.remove(attempt.handle)
        return true
    }

    func end(_ attempt: Attempt, _ end: AttemptEnd) {
        guard forget(attempt) else { return }
        noteAddresses(of: attempt, end)
        attemptDidEnd()
        // What a small file's end leads to is short, and done by the thread that knows it first.
        if attempt.isBrief {
            tasks.keeping { attempt.receiver.ended(end) }
        } else {
            attempt.receiver.ended(end)
        }
    }
}

/// How much an attempt reads at once.
package enum BufferPolicy {
    /// Unless somebody asks for another. A KiB less than `WriteStage` holds: the last piece is a shorter one, which tells the
    /// reading's end.
    package static let usual = WriteStage.size - 1024

    /// Large buffers save system calls where few attempts run; small ones save memory where thousands do.
    static func size(upTo maximum: Int, running: Int) -> Int {
        switch running {
        case ...4: maximum
        case ...32: min(maximum, 127 * 1024)
        case ...256: min(maximum, 64 * 1024)
        default: min(maximum, 16 * 1024)
        }
    }
}
