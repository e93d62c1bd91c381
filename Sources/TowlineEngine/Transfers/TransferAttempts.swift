internal import TowlineCore

/// The running attempts of one transfer: the receivers of their responses, and the journal slots (entries) that record
/// their written bytes.
struct TransferAttempts {
    private let launcher: AttemptLauncher
    private let services: TransferServices
    /// The rate limiter of this transfer, in addition to that of all transfers.
    let limiter: RateLimiter
    /// The receivers of the responses to the running HTTP requests.
    private(set) var writers: [AttemptWriter] = []
    private var slots: [(id: AttemptID, slot: any JournalSlot)] = []
    /// The HTTP request whose complete response is in memory and is being handled; `nil` if none.
    private(set) var completeResponse: AttemptID?
    /// The first HTTP request, if it was sent before this transfer was created; `nil` if it was not, or after it was
    /// taken over or cancelled.
    private(set) var headStart: HeadStart?
    /// The request whose end the host board has already counted (`HeadStart.isOver`), so that its end is not counted
    /// twice; `nil` if none.
    private var counted: AttemptID?

    init(options: DownloadOptions, services: TransferServices, mailbox: TransferMailbox, headStart: HeadStart?) {
        launcher = AttemptLauncher(options: options, services: services, mailbox: mailbox)
        limiter = RateLimiter(rate: options.rateLimit ?? 0, clock: services.clock)
        self.services = services
        self.headStart = headStart
    }

    /// `true` if the user limited the rate of this transfer or of all transfers together.
    var isLimited: Bool { limiter.isLimited || services.limiter.isLimited }

    /// Returns the receiver of the response to a running HTTP request; `nil` if the request has ended.
    func writer(_ id: AttemptID) -> AttemptWriter? { writers.first { $0.plan.id == id } }

    /// Returns the host (origin) of the first running HTTP request; `nil` if none runs.
    var origin: HTTPURL.Origin? { writers.first?.plan.url.origin }

    // MARK: Beginning

    /// Adds the HTTP request that was sent before this transfer was created to its running requests. Returns `nil` if
    /// none was sent, or if it was already taken over or cancelled.
    mutating func takeHeadStart() -> HeadStart? {
        guard let start = headStart.take() else { return nil }
        if start.isOver { counted = start.writer.plan.id }
        writers.append(start.writer)
        return start
    }

    /// Cancels the HTTP request that was sent before this transfer was created. Later events of it are ignored, because
    /// no running request has its ID.
    mutating func abandonHeadStart() {
        guard let start = headStart.take(), !start.isOver else { return }
        services.transport.cancel(start.writer.plan.id)
        services.board.ended(start.writer.plan.url.origin, start.writer.plan.sharing)
    }

    /// Sends the HTTP request that `plan` describes. `part`: the part file for the bytes, if it is known before the
    /// response; `slot`: the journal entry that records the written bytes.
    mutating func start(_ plan: AttemptPlan, _ part: OpenPart?, _ slot: (any JournalSlot)?) {
        if let slot { slots.append((plan.id, slot)) }
        let sink = plan.joinsDirectly ? part?.sink : nil
        writers.append(
            launcher.launch(
                plan, sink: sink, slot: slot, limiters: [limiter, services.limiter],
                hostCeiling: services.board.ceiling(plan.url.origin)))
    }

    /// Resumes the response of a paused HTTP request, so that its bytes are written to the part file: the range
    /// `lease`, recorded in the journal entry `slot`.
    mutating func proceed(_ writer: AttemptWriter, _ part: OpenPart, _ slot: (any JournalSlot)?, _ lease: ByteRange) {
        let id = writer.plan.id
        // An earlier slot of this attempt belongs to a part file that was abandoned.
        slots.removeAll { $0.id == id }
        if let slot { slots.append((id, slot)) }
        writer.attach(sink: part.sink, slot: slot, lease: lease.clipped(to: launcher.options.maximumSize))
        if completeResponse != id { services.transport.proceed(id) }
    }

    /// Cancels a running HTTP request, unless its complete response is in memory and is being handled.
    func cancel(_ id: AttemptID) { if completeResponse != id { services.transport.cancel(id) } }

    // MARK: Responses

    /// Records the head of a response in the host board, the observations that all transfers share, so that they know,
    /// for example, whether the host sends checksums.
    ///
    /// - Parameter noteLong: `true` to record that a response over HTTP/2 is not a small file, which decides about
    ///   shared connections. An attempt that was stopped because of its length reports that at its end.
    func noteResponse(of id: AttemptID, _ verdict: ResponseVerdict, noteLong: Bool) {
        guard let writer = writer(id), counted != id else { return }
        services.board.answered(verdict, from: writer.plan.url.origin)
        if noteLong { launcher.noteLongStream(writer) }
    }

    /// Records that the complete response to the request `id`, whose body is in memory, is being handled from now on.
    mutating func beginCompleteResponse(of id: AttemptID) { completeResponse = id }

    /// Returns the receiver of the complete response in memory that is being handled, and no longer counts it as being
    /// handled; `nil` if there was no such response.
    mutating func takeCompleteResponse() -> AttemptWriter? { completeResponse.take().flatMap { writer($0) } }

    /// `true` if the complete body of the response that is being handled is in memory.
    var isAtHand: Bool { completeResponse.flatMap { writer($0)?.holdsWhole } ?? false }

    // MARK: Ending

    /// Releases the journal slot (entry) in which an HTTP request records its written bytes, so that another request
    /// can use it.
    mutating func giveBackSlot(_ id: AttemptID, to journal: (any Journal)?) {
        guard let index = slots.firstIndex(where: { $0.id == id }) else { return }
        journal?.release(slots.remove(at: index).slot)
    }

    /// Records the end of an HTTP request in the host board, which counts the running requests of each host.
    func noteEnd(of id: AttemptID, _ result: AttemptResult) {
        if let writer = writer(id), counted != id { launcher.ended(writer, result) }
    }

    /// Removes an HTTP request that has ended from the running ones.
    mutating func remove(_ id: AttemptID) { writers.removeAll { $0.plan.id == id } }
}

extension ByteRange {
    /// Returns the byte range without the bytes beyond the offset `most`, the size limit of the file, except the first
    /// of them, which shows that the file is too long; `nil`: no limit.
    fileprivate func clipped(to most: Int64?) -> ByteRange {
        guard let most, most < .max else { return self }
        return ByteRange(lowerBound, max(lowerBound, min(upperBound, most + 1)))
    }
}
