import CCurl
internal import TowlineCore
internal import TowlineEngine
internal import TowlineThreads

/// An event loop that runs attempts on one engine thread, a thread that calls libcurl: waits for sockets, deadlines and
/// commands, and dispatches each of them.
///
/// Created, used and dropped on that thread; nothing here is locked.
final class AttemptLoop {
    private let poll: EventPoll
    /// The record of this thread's sockets and the events that they are watched for.
    let watch: SocketWatch
    /// The queue of Swift tasks that became ready at the end of a small file and then run on this thread.
    private let tasks: LocalRunQueue
    let context: EngineContext
    /// A closure that is called at the end of each attempt, so that the transport knows the load of this thread.
    private let attemptDidEnd: () -> Void

    /// The running attempts of this thread, by their identifiers.
    private(set) var attempts: [AttemptID: Attempt] = [:]
    private var pools: ConnectionPools
    private var fieldLists = RecentFieldLists()
    /// `true` once the system refused libcurl a thread to resolve a host name. Host names are then resolved on this
    /// thread.
    private var lacksResolverThread = false
    /// The deadlines of the running attempts, such as timeouts, the earliest first.
    var deadlines = DeadlineQueue()
    /// The record of the addresses of hosts, with those that failed within the last 60 seconds.
    var book = AddressBook()
    /// A closure that looks up the addresses of a host on another thread, which posts them to this thread (`learn`).
    let lookUp: (AddressBook.Endpoint) -> Void
    /// The sockets whose events the loop handles instead of libcurl, with the attempt of each: sockets that connect in
    /// parallel with libcurl's (`AddressRace`), and connections that the kernel moves a body from (`Splicing`).
    var ownSockets: [Int32: Attempt] = [:]

    init(
        poll: EventPoll, tasks: LocalRunQueue, context: EngineContext, lookUp: @escaping (AddressBook.Endpoint) -> Void,
        attemptDidEnd: @escaping () -> Void
    ) {
        self.poll = poll
        self.lookUp = lookUp
        self.tasks = tasks
        watch = SocketWatch(poll: poll)
        pools = ConnectionPools(watch: watch)
        self.context = context
        self.attemptDidEnd = attemptDidEnd
    }

    /// Makes one turn of the loop: waits for events if `mayWait`, and handles all events and deadlines that are due.
    /// Returns whether another thread woke the loop (`EventPoll.wake`).
    func turn(mayWait: Bool) -> Bool {
        watch.sendGathered()
        let woken = poll.wait(milliseconds: mayWait ? timeToWait() : 0) { event in
            guard watch.isWanted(event.descriptor) else { return }
            if let attempt = ownSockets[event.descriptor] {
                guard attempt.splicedSocket == nil else { return moveSpliced(attempt) }
                return runnerIsReady(event.descriptor, of: attempt)
            }
            // A pool that was closed a moment ago may have left an event.
            guard let pool = pools.pool(tagged: event.tag) else { return poll.forget(event.descriptor) }
            act(on: pool) { pool throws(TransportFailure) in
                try pool.socketIsReady(event.descriptor, event.ready)
            }
        }
        let now = MonotonicTime.now
        for pool in pools.all where pool.timer <= now {
            act(on: pool) { pool throws(TransportFailure) in try pool.timerIsDue() }
        }
        // Finished attempts come first: an end that has arrived is not late.
        reap()
        while let attempt = deadlines.popExpired(at: now) { deadlineCame(for: attempt) }
        reap()
        pools.closeIdle(at: now)
        return woken
    }

    private func timeToWait() -> Int32 {
        guard !pools.mustRun else { return 0 }
        let next = min(deadlines.next, pools.nextTime)
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
        endRested(pool)
    }

    private func endRested(_ pool: ConnectionPool) {
        for attempt in pool.takeRested() where attempts[attempt.id] === attempt {
            if attempt.body?.splicing?.isOffered == true, attempt.decidedEnd == nil {
                splice(attempt)
            } else {
                end(attempt, .stopped)
            }
        }
    }

    // MARK: Commands

    /// Starts an attempt. If it cannot be started, reports the failure to `receiver` (`ended`) within this call.
    func start(_ request: AttemptRequest, _ receiver: any AttemptReceiver) {
        do throws(TransportFailure) {
            guard attempts[request.id] == nil else {
                let number = request.id.value
                throw TransportFailure(
                    .local, "internal error in Towline (please report this bug): attempt \(number) was started twice")
            }
            try RequestFields.check(request.url.requestText)
            let fields = try fieldLists.list(request.fieldsToSend)
            if request.needsProvenEnd, !CurlLibrary.provesStreamEnd { _ = context.http1Hosts.add(request.url.origin) }
            let options = request.connection.limited(to: request, besides: context.challengeHosts)
                .withProxy(for: request.url, from: context.proxies)
                .withProtocol(for: request.url.origin, besides: context.http1Hosts)
            let pool = try pools.pool(for: options, options.mayShare ? request.sharing : .none)
            guard let handle = pool.takeHandle() else { throw TransportFailure(.local, FailureTable.outOfMemory) }
            let cookies = try cookies(for: request)
            let attempt = Attempt(
                request, receiver: receiver, pool: pool, handle: handle,
                deadlineDidChange: { [unowned self] attempt in
                    fallBackIfBroken(attempt)
                    deadlines.set(attempt.timeLimit.map { .now.advanced(by: $0) } ?? .never, for: attempt)
                    if attempt.phase != .connecting { endRace(of: attempt) }
                })
            let size = BufferPolicy.size(upTo: context.bufferSize, running: attempts.count + 1)
            guard handle.prepare(url: request.url, fields: fields, bufferSize: size, for: attempt) else {
                throw TransportFailure(.local, FailureTable.outOfMemory)
            }
            try arrangeAddresses(of: attempt, for: request.url, options)
            let isKnown = !lacksResolverThread || pool.proxy != nil || attempt.addresses.fixed != nil
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

    private func cookies(for request: AttemptRequest) throws(TransportFailure) -> [String] {
        // libcurl matches a Host field of the user and the ASCII form of the host (IDNA), which the jar does not know.
        let isPlain = request.url.host.utf8.allSatisfy { $0 < 0x80 } && !request.fields.has("Host")
        return try request.connection.cookies.lines(
            for: isPlain ? request.url.host : nil, isEncrypted: request.url.scheme == .https,
            stored: request.sendsStoredCookies
        ) {
            () throws(TransportFailure) in
            try request.connection.cookieFile.map(EasyHandle.cookies(inFile:)) ?? []
        }
    }

    /// Ends an attempt as cancelled. Ignores an unknown identifier.
    func cancel(_ id: AttemptID) {
        guard let attempt = attempts[id] else { return }
        retireIfSilent(attempt)
        end(attempt, .cancelled)
    }

    /// Resumes a paused attempt, even during a delay: the receiver pauses again if that is too early. If the attempt is
    /// not paused, gives the receiver the chance to process bytes that it has collected (`AttemptReceiver.flush`).
    func proceed(_ id: AttemptID) {
        guard let attempt = attempts[id] else { return }
        guard !attempt.isPaused else { return resume(attempt) }
        if attempt.body?.hasBytes == true, attempt.splicedSocket == nil, !attempt.rests() { end(attempt, .stopped) }
    }

    /// Ends all attempts as cancelled and closes all connections.
    func stop() {
        // An `ended` callback must not find a partly closed loop. Attempts that the callback starts go to another
        // thread.
        for attempt in Array(attempts.values) { end(attempt, .cancelled) }
        pools.closeAll()
    }

    // MARK: Pools

    /// Makes later attempts use another pool if attempts share the connection of this one and its server has been
    /// silent. libcurl does not notice the silence and would put the next stream on the connection.
    private func retireIfSilent(_ attempt: Attempt) {
        if attempt.pool.sharing != .none, attempt.isSilent { attempt.pool.isRetired = true }
    }

    /// Ends the attempts of a pool with `failure` and closes the pool: its multi handle failed for lack of memory or
    /// descriptors.
    private func abandon(_ pool: ConnectionPool, _ failure: TransportFailure) {
        for attempt in Array(attempts.values) where attempt.pool === pool { end(attempt, .failed(failure)) }
        pools.close(pool)
    }

    // MARK: Attempts

    private func resume(_ attempt: Attempt) {
        deadlines.remove(attempt)
        let heldEnd = attempt.body?.endPause()
        if attempt.splicedSocket != nil { return resumeSplicing(attempt) }
        if let heldEnd { return end(attempt, heldEnd) }
        unpause(attempt)
    }

    /// Makes libcurl resume an attempt and deliver the bytes that it holds back, within this call.
    func unpause(_ attempt: Attempt) {
        // Delivers the bytes that libcurl holds back, within this call. libcurl 7.88 ignores it if the receiver stops
        // the attempt meanwhile, and continues the transfer: the loop must end it.
        let code = attempt.pool.unpause(attempt)
        // Before `finish`: after it, the receiver may belong to another owner.
        endRested(attempt.pool)
        // A finished request has no connection any more; `nextFinished` returns its result.
        if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { finish(attempt, code) }
    }

    private func deadlineCame(for attempt: Attempt) {
        if attempt.isBroken {
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
        } else if attempt.isPaused {
            resume(attempt)
        } else {
            attempt.tellLateEnd()
        }
    }

    private func reap() {
        for pool in pools.all where pool.isTouched {
            pool.isTouched = false
            while let (attempt, code) = pool.nextFinished() { finish(attempt, code) }
        }
    }

    private func finish(_ attempt: Attempt, _ code: CURLcode) {
        if code != CURLE_OK, attempt.handle.lacksResolverThread { lacksResolverThread = true }
        if case .needsDigest = attempt.challenges { return startAgain(attempt) }
        attempt.takeChallenge()
        var end = FailureTable.end(of: attempt, code)
        if attempts[attempt.id] != nil, attempt.isFaultOfConnection(end) {
            attempt.beginAgain()
            if attempt.pool.repeatOnFreshConnection(attempt.handle) { return }
            end = .failed(TransportFailure(.local, FailureTable.outOfMemory))
        }
        end = withFallback(end, of: attempt, code)
        if case .complete = end, attempt.isPaused {
            attempt.body?.hold(end)
        } else {
            self.end(attempt, end)
        }
    }

    /// Sends the request of an attempt again, with Digest authentication, as a new `Attempt` for the same receiver.
    private func startAgain(_ attempt: Attempt) {
        guard forget(attempt) else { return }
        context.challengeHosts.add(attempt.origin)
        start(attempt.request, attempt.receiver)
    }

    /// Removes an attempt from the loop and from its pool.
    ///
    /// - Returns: `false` if the attempt has already ended.
    private func forget(_ attempt: Attempt) -> Bool {
        guard attempts.removeValue(forKey: attempt.id) != nil else { return false }
        if let socket = attempt.splicedSocket { ownSockets[socket] = nil }
        attempt.body?.splicing = nil
        deadlines.remove(attempt)
        attempt.pool.remove(attempt.handle)
        return true
    }

    func end(_ attempt: Attempt, _ end: AttemptEnd) {
        guard forget(attempt) else { return }
        noteAddresses(of: attempt, end)
        attemptDidEnd()
        // The work after the end of a small file is short, so the thread that received it does it.
        if attempt.body?.isBrief == true {
            tasks.keeping { attempt.receiver.ended(end) }
        } else {
            attempt.receiver.ended(end)
        }
    }
}

/// The rule for the number of bytes that an attempt reads with one call.
package enum BufferPolicy {
    /// The default size in bytes: 1 KiB less than the capacity of `WriteStage`, the buffer for bytes on their way to
    /// the disk: eleven pieces of 16 KiB. The last piece of a read is then shorter than the others and marks the end of
    /// the read.
    package static let usual = WriteStage.size - 1024

    /// Returns the number of bytes that a new attempt reads with one call, at most `maximum`, if `running` attempts
    /// then run on the thread. Large buffers save system calls where few attempts run; small ones save memory where
    /// thousands do.
    static func size(upTo maximum: Int, running: Int) -> Int {
        switch running {
        case ...4: maximum
        case ...32: min(maximum, 127 * 1024)
        case ...256: min(maximum, 64 * 1024)
        default: min(maximum, 16 * 1024)
        }
    }
}
