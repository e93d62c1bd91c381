internal import TowlineCore

/// A transfer as long as it is one request for what may be a small file (`SmallFilePolicy`).
///
/// Whatever else happens than an answer that comes at once and is all of a small file, be it another answer, a wait of a
/// moment or a stop, the request goes on as that of a `TransferRun`.
struct SmallFileRun {
    private let item: BatchRoster.Item
    private let services: TransferServices
    /// Held here: a transfer holds its observer weakly.
    private let observer: BatchRelay
    /// Where it is reached.
    let mailbox = TransferMailbox()

    init(_ item: BatchRoster.Item, _ services: TransferServices, _ observer: BatchRelay) {
        self.item = item
        self.services = services
        self.observer = observer
    }

    /// A request that is under way, and where its file goes.
    private struct Request {
        let writer: AttemptWriter
        let startedAt: Duration
        let admission: HTTPURL.Origin?
        let place: Place
        let isNamed: Bool
        let source: String
    }

    /// What the transfer came to.
    nonisolated(nonsending) func result() async -> Result<CompletedTransfer, TowlineError> {
        defer { withExtendedLifetime(observer) {} }
        guard let request = ask() else { return await transfer(nil).result() }
        let events = await firstEvents()
        var admission = request.admission
        if events.count == 1, case .attempt(.delivered(let id, let verdict)) = events[0], id == request.writer.plan.id,
            let facts = whole(verdict, request)
        {
            admission = nil
            do throws(TowlineError) {
                if let completed = try await publish(facts, request) {
                    services.board.answered(verdict, from: request.writer.plan.url.origin)
                    mailbox.close()
                    return .success(completed)
                }
            } catch {
                mailbox.close()
                return .failure(error)
            }
        }
        return await transfer(
            HeadStart(
                writer: request.writer, startedAt: request.startedAt, admission: admission, events: events)
        ).result()
    }

    private func transfer(_ headStart: HeadStart?) -> TransferRun {
        TransferRun(
            options: item.options, services: services, observer: observer, mailbox: mailbox, headStart: headStart)
    }

    /// What happens first; that some time has passed, if nothing else does.
    private nonisolated(nonsending) func firstEvents() async -> [TransferMailbox.Event] {
        services.load.enter()
        let ticker = Ticker { [mailbox] _ in mailbox.post(.look) }
        services.tickers.startSoon(ticker)
        defer {
            services.tickers.end(ticker)
            services.load.leave()
        }
        return await mailbox.take()
    }

    // MARK: Asking

    /// Whether nothing is to hold bytes back, no other file is to make way, and the user is known by the options.
    private var isPlain: Bool {
        (item.options.rateLimit ?? 0) == 0 && !services.limiter.isLimited && item.options.existing != .overwrite
            && item.options.url.userInfo == nil
    }

    /// Sends the request; `nil` where there is more to know or to decide before.
    private func ask() -> Request? {
        guard isPlain, case .file(let directory, let name) = item.options.target else { return nil }
        let terms = TransferTerms(item.options)
        guard SmallFilePolicy.suffices(for: terms) else { return nil }
        let source = item.options.url.withoutSecrets
        let place = Place(directory: directory, name: name ?? terms.nameOfURL)
        // The directory is read by this, if it was not lately.
        let begun = services.storage.find(source: source, inDirectory: directory)
        guard name != nil || begun == nil, services.storage.seemsVacant(place) else { return nil }
        let origin = item.options.url.origin
        let host = services.board.standing(origin)
        guard (host.notBefore ?? .zero) <= MonotonicClock.now else { return nil }
        let sharing =
            mayShare
            ? host.sharing.limited(ceiling: host.ceiling, connections: host.connections) : ConnectionSharing.none
        guard sharing != .none || services.board.admit(origin, limit: services.transferLimit) else { return nil }
        let plan = SmallFilePolicy.plan(
            terms, id: TransferRun.firstID(), sharing: sharing, wantsDigest: host.wantsDigest)
        let writer = writer(of: plan)
        let startedAt = MonotonicClock.now
        services.board.began(origin, sharing)
        services.transport.start(
            AttemptRequest(
                id: plan.id, url: plan.url, fields: plan.fields, sendsCredentials: plan.sendsCredentials,
                connection: item.options.connection, sharing: sharing,
                mayBeBrief: writer.mayGather && SharingPolicy.spreads(plan, hostCeiling: host.ceiling)),
            receiver: writer)
        return Request(
            writer: writer, startedAt: startedAt, admission: sharing == .none ? origin : nil, place: place,
            isNamed: name != nil, source: source)
    }

    private var mayShare: Bool { !item.options.sequential && item.options.connection.mayShareConnections }

    private func writer(of plan: AttemptPlan) -> AttemptWriter {
        let storage = services.storage
        return AttemptWriter(
            plan: plan, sink: nil, slot: nil, limiters: [], mayGather: true, buffers: services.buffers,
            stages: services.stages,
            makeHasher: { storage.hasher(for: $0) },
            report: { [mailbox] in mailbox.post(.attempt($0)) })
    }

    // MARK: Publishing

    /// What is to be known of an answer of which all is there, for the place where nothing was.
    private func whole(_ verdict: ResponseVerdict, _ request: Request) -> ResponseFacts? {
        guard let facts = SmallFilePolicy.file(in: verdict), request.writer.holdsWhole,
            request.isNamed || facts.fileName == request.place.name
        else { return nil }
        return facts
    }

    /// - Returns: `nil` if something is in the way; the request counts as one under way then.
    private nonisolated(nonsending) func publish(
        _ facts: ResponseFacts, _ request: Request
    ) async throws(TowlineError) -> CompletedTransfer? {
        let (place, writer) = (request.place, request.writer)
        leave(request)
        let identity = item.options.url.query == nil ? request.source : item.options.url.requestText
        guard services.places.take(place, by: identity) else {
            services.board.began(writer.plan.url.origin, writer.plan.sharing)
            return nil
        }
        defer { services.places.leave(place) }
        let snapshot = TransferSnapshot(of: facts, name: place.name, sharing: writer.plan.sharing)
        observer.progressed(snapshot)
        let file = try await services.storage.publishAtOnce(
            SmallFile(
                bytes: writer.held, source: request.source,
                modified: facts.representation.lastModified?.secondsSince1970, durable: item.options.durable), at: place
        )
        guard let file else {
            services.board.began(writer.plan.url.origin, writer.plan.sharing)
            return nil
        }
        writer.release()
        return CompletedTransfer(outcome: .published(file), receivedBytes: snapshot.receivedBytes)
    }

    /// The host has answered, and is needed no more.
    private func leave(_ request: Request) {
        let writer = request.writer
        let origin = writer.plan.url.origin
        services.board.ended(origin, writer.plan.sharing)
        let answer = SharingPolicy.Answer(
            writer.conclude(), shared: writer.plan.sharesConnection, isStream: writer.isStream, promise: writer.promise)
        if let answer { services.board.answered(answer, from: origin, after: writer.latency ?? .zero) }
        if let admission = request.admission { services.board.left(admission) }
    }
}

extension TransferSnapshot {
    /// All bytes of a small file are there.
    fileprivate init(of facts: ResponseFacts, name: String, sharing: ConnectionSharing) {
        self.init()
        let length = facts.representation.completeLength ?? 0
        state = .publishing
        self.name = name
        completeLength = length
        heldBytes = length
        receivedBytes = length
        self.sharing = sharing
    }
}
