internal import TowlineCore

/// Runs a download in a batch as a single request, because its file may be small (`SmallFilePolicy`).
///
/// If the response arrives within a moment and is a complete small file, this type publishes the file. Otherwise, such
/// as after an error response, a short wait or a stop, it hands the request over to a `TransferRun`.
struct SmallFileRun {
    private let item: BatchRoster.Item
    private let services: TransferServices
    /// The observer of the download. Stored here, because a `TransferRun` holds its observer only weakly.
    private let observer: BatchRelay
    /// The queue of events for this download; a `TransferRun` that takes over uses the same queue.
    let mailbox = TransferMailbox()

    private let launcher: AttemptLauncher

    init(_ item: BatchRoster.Item, _ services: TransferServices, _ observer: BatchRelay) {
        launcher = AttemptLauncher(options: item.options, services: services, mailbox: mailbox)
        self.item = item
        self.services = services
        self.observer = observer
    }

    /// The running HTTP request of the download, with the location for its file, its start time, and what must be
    /// counted when it ends.
    private struct Request {
        var writer: AttemptWriter
        var startedAt: Duration
        /// The number of responses that the host had given to any download when the request was sent.
        var answersBefore: Int
        /// The host that has permitted the request a connection of its own (`HostBoard.admit`); `nil` if the request
        /// shares a connection.
        var admission: HTTPURL.Origin?
        /// The directory and file name under which the complete file will be published.
        var place: Place
        /// The file name from the URL, which the response must confirm; `nil` if the user chose a name.
        var nameOfURL: String?
        let link: LinkIdentity

        /// Returns the decision about how to handle the response (its verdict) if the only event is that the response
        /// arrived completely; otherwise `nil`.
        func completeResponse(in events: [TransferMailbox.Event]) -> ResponseVerdict? {
            guard events.count == 1, case .attempt(.answeredAndEnded(let id, let verdict)) = events[0],
                id == writer.plan.id
            else { return nil }
            return verdict
        }
    }

    /// Runs the download and returns its result: the completed transfer or the error.
    nonisolated(nonsending) func result() async -> Result<CompletedTransfer, TowlineError> {
        defer { withExtendedLifetime(observer) {} }
        guard var request = ask() else { return await transfer(nil).result() }
        var events = await firstEvents()
        while let next = follow(request, events) {
            request = next
            events = await firstEvents()
        }
        var isOver = false
        if let verdict = request.completeResponse(in: events), let facts = whole(verdict, request) {
            services.board.answered(verdict, from: request.writer.plan.url.origin)
            trace(verdict, of: request, "publish the file")
            do throws(TowlineError) {
                switch try await publish(facts, request) {
                case .published(let file):
                    tell(facts, verdict, request)
                    observer.slot.note(silence: false, of: request.writer.plan.url.origin)
                    mailbox.close()
                    let length = facts.representation.completeLength ?? 0
                    return .success(CompletedTransfer(outcome: .published(file), receivedBytes: length))
                // The bytes are lost, so the whole file must be requested again.
                case .lost:
                    if services.traces { observer.traced("the disk failed and the bytes are lost -> start again") }
                    return await transfer(nil).result()
                case .declined:
                    request.admission = nil
                    isOver = true
                }
            } catch {
                mailbox.close()
                return .failure(error)
            }
        }
        return await transfer(
            HeadStart(
                writer: request.writer, startedAt: request.startedAt, answersBefore: request.answersBefore,
                admission: request.admission, events: events, isOver: isOver)
        ).result()
    }

    private func transfer(_ headStart: HeadStart?) -> TransferRun {
        TransferRun(
            options: item.options, services: services, observer: observer, mailbox: mailbox, headStart: headStart,
            slot: observer.slot, item: item)
    }

    /// Waits for the first events of the request and returns them. If none occurs within `TickPolicy.patience` (500
    /// ms), returns the event `.look`, which makes a `TransferRun` take over.
    private nonisolated(nonsending) func firstEvents() async -> [TransferMailbox.Event] {
        services.tickers.load.enter()
        defer { services.tickers.load.leave() }
        let ticker = Ticker(after: services.after) { [mailbox] _ in mailbox.post(.look) }
        services.tickers.startSoon(ticker, after: TickPolicy.patience)
        defer { services.tickers.end(ticker) }
        return await mailbox.take()
    }

    // MARK: Asking

    /// Returns whether a single request is sufficient with the options of the download: no rate limit, no file to
    /// overwrite, and no user in the URL. Otherwise a `TransferRun` does the download.
    private var isPlain: Bool {
        (item.options.rateLimit ?? 0) == 0 && !services.limiter.isLimited && item.options.existing != .overwrite
            && item.options.url.userInfo == nil
    }

    private func trace(_ verdict: ResponseVerdict, of request: Request, _ action: String) {
        guard services.traces else { return }
        observer.traced("\(TransferTrace.response(to: request.writer.plan.id, verdict)) -> \(action)")
    }

    private func launch(_ plan: AttemptPlan, hostCeiling: Int?) -> AttemptWriter {
        if services.traces { observer.traced(TransferTrace.request(plan)) }
        return launcher.launch(plan, hostCeiling: hostCeiling)
    }

    /// Sends the first request of the download. Returns `nil`, without a request, if it needs more checks or decisions
    /// first, which only a `TransferRun` makes.
    private func ask() -> Request? {
        guard isPlain, case .file(let directory, let name) = item.options.target else { return nil }
        let terms = TransferTerms(item.options)
        guard SmallFilePolicy.suffices(for: terms) else { return nil }
        let link = LinkIdentity(item.options.url)
        let number = name == nil ? item.nameNumber.load(ordering: .relaxed) : 0
        let place = Place(directory: directory, name: name ?? terms.nameOfURL).numbered(number)
        // This also reads the directory, unless that was done recently.
        let begun = services.storage.find(link, inDirectory: directory)
        guard name != nil || begun == nil,
            item.isNameVacant.exchange(false, ordering: .relaxed) || services.storage.seemsVacant(place)
        else { return nil }
        let origin = item.options.url.origin
        // An attempt at a silent host must not take a slot from others. A `TransferRun` sees to that.
        guard !observer.slot.isSilent(origin) else { return nil }
        let host = services.board.state(of: origin)
        guard (host.notBefore ?? .zero) <= services.now else { return nil }
        let sharing = mayShare ? host.nextSharing : .none
        guard sharing != .none || services.admit(origin, from: origin) else { return nil }
        let plan = SmallFilePolicy.plan(
            terms, id: AttemptID(TransferRun.firstID().value + 1), sharing: sharing, wantsDigest: host.wantsDigest)
        let startedAt = services.now
        return Request(
            writer: launch(plan, hostCeiling: host.ceiling), startedAt: startedAt, answersBefore: host.answers,
            admission: sharing == .none ? origin : nil, place: place,
            nameOfURL: name == nil ? terms.nameOfURL : nil, link: link
        )
    }

    /// Sends the request to the target of a redirect, which was the response to `last`. Returns `nil` if the response
    /// is no redirect, or if following it needs decisions that only a `TransferRun` makes.
    private func follow(_ last: Request, _ events: [TransferMailbox.Event]) -> Request? {
        guard let verdict = last.completeResponse(in: events), case .redirect(_, let linked, _) = verdict else {
            return nil
        }
        let terms = TransferTerms(item.options)
        guard let target = SmallFilePolicy.target(of: verdict, after: last.writer.plan, terms) else { return nil }
        let host = services.board.state(of: target.origin)
        guard (host.notBefore ?? .zero) <= services.now else { return nil }
        let sharing = mayShare ? host.nextSharing : .none
        var request = last
        if request.nameOfURL != nil {
            let name = SafeFileName.ofURL(target, redirectedFrom: terms.source, named: terms.nameOfURL)
            request.nameOfURL = name
            request.place.name = name
            request.place = request.place.numbered(item.nameNumber.load(ordering: .relaxed))
            guard services.storage.seemsVacant(request.place) else { return nil }
        }
        guard changeAdmission(of: &request, to: sharing == .none ? target.origin : nil) else { return nil }
        end(last)
        trace(verdict, of: last, "follow it")
        let url = last.writer.plan.url
        services.board.answered(verdict, from: url.origin)
        if let notice = RedirectPolicy.notice(from: url, to: target) { observer.noticed(notice) }
        let plan = SmallFilePolicy.plan(
            terms, at: target, after: last.writer.plan, id: AttemptID(last.writer.plan.id.value + 1), sharing: sharing,
            wantsDigest: host.wantsDigest, linked: linked)
        request.startedAt = services.now
        request.answersBefore = host.answers
        request.writer = launch(plan, hostCeiling: host.ceiling)
        return request
    }

    /// Counts the request among those with a connection of its own at another host, whose number is limited
    /// (`HostBoard.admit`).
    ///
    /// - Parameter origin: the host, if the request needs a connection of its own there; otherwise `nil`.
    /// - Returns: `false` if that host has no room; the request is then counted as before.
    private func changeAdmission(of request: inout Request, to origin: HTTPURL.Origin?) -> Bool {
        guard request.admission != origin else { return true }
        if let origin, !services.admit(origin, from: item.options.url.origin) { return false }
        if let old = request.admission { services.board.left(old) }
        request.admission = origin
        return true
    }

    private var mayShare: Bool { !item.options.isSequential && item.options.connection.mayShareConnections }

    // MARK: Publishing

    /// Returns the metadata in a response that is a complete, verified small file with a file name that is not taken;
    /// otherwise `nil`, so that a `TransferRun` handles the response.
    private func whole(_ verdict: ResponseVerdict, _ request: Request) -> ResponseFacts? {
        let writer = request.writer
        // Another response must confirm the length.
        if case .whole(let said) = verdict, said.representation.completeLength == nil,
            writer.framing?.needsProof == true
        {
            return nil
        }
        guard writer.holdsWhole, let facts = SmallFilePolicy.file(in: verdict.ending(at: Int64(writer.held.count))),
            request.nameOfURL == nil || facts.fileName == request.nameOfURL,
            checksums(of: facts).allSatisfy({ matches($0, writer.held) })
        else { return nil }
        return facts
    }

    private func checksums(of facts: ResponseFacts) -> [Checksum] {
        SmallFilePolicy.checksums(besides: item.options.checksum.map { [$0] } ?? [], facts)
    }

    private func matches(_ checksum: Checksum, _ bytes: [UInt8]) -> Bool {
        let hasher = services.storage.hasher(for: checksum)
        bytes.withUnsafeBytes(hasher.update)
        return hasher.matches()
    }

    /// Reports the notices for the user about a published file, which `TransferStateMachine` reports in downloads that
    /// it controls.
    private func tell(_ facts: ResponseFacts, _ verdict: ResponseVerdict, _ request: Request) {
        for text in services.storage.takeNotices(inDirectory: request.place.directory) {
            observer.noticed(TransferNotice(.warning, .disk, text))
        }
        if request.nameOfURL != nil, let notice = SafeFileName.notice(facts, from: request.writer.plan.url) {
            observer.noticed(notice)
        }
        if case .whole(let said) = verdict, said.representation.completeLength == nil,
            let length = facts.representation.completeLength, let framing = request.writer.framing,
            let notice = TransferNotice.withoutLength(
                length, framing, isIgnored: item.options.connection.ignoresLength)
        {
            observer.noticed(notice)
        }
        let checksums = checksums(of: facts)
        if !checksums.isEmpty { observer.noticed(.verified(checksums)) }
    }

    private nonisolated(nonsending) func publish(
        _ facts: ResponseFacts, _ request: Request
    ) async throws(TowlineError) -> SmallFileOutcome {
        let (place, writer) = (request.place, request.writer)
        leave(request)
        guard services.places.take(place, by: request.link.exact) else { return .declined }
        defer { services.places.leave(place, item.options.existing) }
        services.names?.decided(item.number)
        observer.progressed(TransferSnapshot(of: facts, name: place.name, sharing: writer.plan.sharing))
        let outcome = try await services.storage.publishAtOnce(
            SmallFile(
                body: writer, link: request.link,
                modified: facts.representation.lastModified?.secondsSince1970,
                version: PublishedVersion(of: facts.representation, from: writer.plan.url.withoutSecrets),
                durable: item.options.durable), at: place)
        if outcome != .declined { writer.release() }
        return outcome
    }

    /// Gives back the admission of the request to its host (`HostBoard.admit`), so that the host can admit another
    /// download.
    private func leave(_ request: Request) {
        end(request)
        if let admission = request.admission { services.board.left(admission) }
    }

    /// Records in the host board, which counts the running requests of each host, that a request has ended with a
    /// complete response.
    private func end(_ request: Request) {
        launcher.noteLongStream(request.writer)
        launcher.ended(request.writer, request.writer.resultOfEnd)
    }
}

extension TransferSnapshot {
    /// Creates the progress report (snapshot) of a small file whose bytes have all arrived.
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
