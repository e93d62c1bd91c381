internal import TowlineCore
import Synchronization

/// One transfer: feeds what happens to the `TransferStateMachine` and does what it says.
///
/// Belongs to whoever runs it, a task or an actor (`TransferRunner`): everything rare comes together here, by way of the
/// mailbox. Bytes never do (see `AttemptWriter`).
final class TransferRun {
    /// What a transfer waits for.
    typealias Event = TransferMailbox.Event

    let options: DownloadOptions
    let services: TransferServices
    let destination: Destination
    weak var observer: (any TransferObserver)?
    var machine: TransferStateMachine
    /// The event that is handled, and those that came meanwhile.
    private var steps: [(TransferEvent, TransferContext?)] = []
    /// Of the attempts that run.
    var writers: [AttemptWriter] = []
    /// Where it was admitted to connections of its own.
    var admission: HTTPURL.Origin?
    var slots: [(id: AttemptID, slot: any JournalSlot)] = []
    /// The attempt that the transport is done with, while its answer is dealt with.
    var delivered: AttemptID?
    var checkpoints: CheckpointPolicy
    /// The checkpoint under way.
    var checkpoint: Task<Void, Never>?
    var storageTask: Task<Void, Never>?
    /// What has no journal, a small file or a stream, is whole: `run` itself publishes it, having nothing else to wait for.
    var publishing: PublishTerms?
    var published: PublishedFile?
    var ending: TransferEnding?
    /// What it was stopped for; `nil`: it ends by itself.
    private var stopPurpose: StopPurpose?
    var lastIntact: Duration
    var readers = ReaderList()
    let limiter: RateLimiter
    let mailbox: TransferMailbox
    /// The request that was sent before there was this, until it is taken over.
    var headStart: HeadStart?
    /// The attempt that is over for the host board.
    var counted: AttemptID?
    let launcher: AttemptLauncher
    /// Its place in a batch, and whether others have it until the next attempt.
    let batchSlot: BatchSlots.Slot?
    var isResting = false
    /// Its entry in a batch.
    let item: BatchRoster.Item?
    /// An answer that waits until the downloads before it in the list have their names.
    var waitingForName: PreparePlan?
    /// When a request was sent while no other ran; `nil` after an answer.
    var unansweredSince: Duration?
    /// The answers of the host until then.
    var answersBefore = 0
    /// The first request was cancelled because the host served others.
    var hasYielded = false
    /// The host that gives it bytes, as all know.
    var worksAt: HTTPURL.Origin?
    /// Makes it look at itself, once it has lasted for a moment.
    private let ticker: Ticker
    private static let nextBlock = Atomic<UInt64>(1)

    /// The name of the first attempt of another transfer; those of its next ones follow.
    static func firstID() -> AttemptID { AttemptID(nextBlock.wrappingAdd(1, ordering: .relaxed).oldValue << 32) }

    /// Prepares a transfer; nothing happens before `run`.
    ///
    /// - Parameters:
    ///   - mailbox: where it is reached.
    ///   - headStart: its first request, if that is under way.
    ///   - slot: its place in a batch.
    init(
        options: DownloadOptions, services: TransferServices, observer: (any TransferObserver)?,
        mailbox: TransferMailbox = TransferMailbox(), headStart: HeadStart? = nil, slot: BatchSlots.Slot? = nil,
        item: BatchRoster.Item? = nil
    ) {
        self.item = item
        batchSlot = slot
        self.mailbox = mailbox
        self.headStart = headStart
        admission = headStart?.admission
        var options = options
        if options.connection.user == nil { options.connection.user = options.url.userInfo }
        self.options = options
        self.services = services
        launcher = AttemptLauncher(options: options, services: services, mailbox: mailbox)
        lastIntact = services.now
        checkpoints = CheckpointPolicy(now: lastIntact)
        self.observer = observer
        limiter = RateLimiter(rate: options.rateLimit ?? 0, clock: services.clock)
        let host = services.board.standing(options.url.origin)
        let terms = TransferTerms(options)
        destination = Destination(
            options, services, mailbox, nameOfURL: terms.nameOfURL, observer: observer, item: item)
        machine = TransferStateMachine(
            terms: terms, firstID: Self.firstID().value + 1, hostCeiling: host.ceiling,
            // Found where no limit held bytes back.
            hostUsual: limiter.isLimited || services.limiter.isLimited ? nil : host.usual)
        ticker = Ticker(after: services.after) { [mailbox] in mailbox.post($0 == .start ? .look : .tick) }
    }

    /// What `run` came to.
    nonisolated(nonsending) func result() async -> Result<CompletedTransfer, TowlineError> {
        do throws(TowlineError) { return .success(try await run()) } catch { return .failure(error) }
    }

    /// Runs to the end, and does not heed that its task is cancelled. See `TransferRunner.run`.
    nonisolated(nonsending) func run() async throws(TowlineError) -> CompletedTransfer {
        var events = headStart?.events ?? []
        do throws(TowlineError) {
            try perform(begin())
            takeTurn()
            rest()
        } catch {
            abandonHeadStart()
            giveUpAdmission()
            mailbox.close()
            close()
            readers.end()
            throw error
        }
        services.load.enter()
        // What is to be hashed while it comes is looked at from the beginning.
        if options.checksum == nil { services.tickers.startSoon(ticker) } else { ticker.start() }
        defer {
            services.tickers.end(ticker)
            services.load.leave()
            giveUpAdmission()
            tellWork(nil)
        }
        if destination.proof != nil { await goOn() }
        while ending == nil {
            if events.isEmpty { events = await mailbox.take() }
            for event in events {
                handle(event)
                if publishing != nil || destination.proof != nil || waitingForName != nil { await goOn() }
                if ending != nil { break }
            }
            events = []
        }
        mailbox.close()
        await lastCheckpoint()
        return try finished()
    }

    /// How long until it looks at itself once more.
    private var sleepTime: Duration {
        let running = readers.isEmpty ? services.load.running : 1
        let regular = TickPolicy.interval(
            running: running, endsSoon: machine.endsSoon, isHashedFast: machine.isHashedFast)
        guard let wake = machine.wakeAt else { return regular }
        return min(regular, max(.milliseconds(10), wake - services.now))
    }

    private func handle(_ event: Event) {
        switch event {
        case .attempt(.answered(let id, let verdict)):
            noteAnswer(of: id)
            count(verdict, of: id)
            tellLong(id)
            step(.answered(id, verdict), context(id, verdict))
            if machine.isLong { ticker.start() }
        case .attempt(.ended(let id, let result)): attemptEnded(id, result)
        case .attempt(.delivers): step(.tick)
        case .attempt(.delivered(let id, let verdict)): delivered(id, verdict)
        case .attempt(.arrived(let id)): if let writer = writer(id) { attemptEnded(id, writer.conclude()) }
        case .storage(let event, let sink):
            // What came of an older part file is nothing to the one that took its place.
            guard sink == nil || sink == part.map({ ObjectIdentifier($0.sink) }) else { break }
            step(event)
        case .checkpoint(let event, let sink, let start, let bytes):
            checkpoint = nil
            checkpoints.completed(start: start, now: services.now, bytes: bytes)
            // What is durable of an older part file says nothing of the one that took its place.
            guard let part, ObjectIdentifier(part.sink) == sink else { break }
            // What was not durable may have been dropped.
            if case .checkpointFailed = event { part.sink.forgetHashed() }
            step(event)
        case .published(let file, let sink):
            published = file
            destination.tell()
            guard sink == part.map({ ObjectIdentifier($0.sink) }) else { break }
            step(.published)
        case .look:
            rest()
            ticker.sleep(for: sleepTime)
            return
        case .tick:
            checkPart()
            step(.tick)
            if let (algorithms, end) = machine.hashable { part?.sink.hashAhead(algorithms, upTo: end) }
            checkpointIfDue()
            ticker.sleep(for: sleepTime)
        case .nudge: step(.networkChanged)
        case .wanted: step(.wanted(readers.wanted))
        case .stop(let purpose):
            stopPurpose = purpose
            step(.stop)
        }
        rest()
        tellWork(machine.worksAt(now: services.now))
        tellProgress()
        readers.wake()
    }

    /// What is to be waited for before the next event.
    private nonisolated(nonsending) func goOn() async {
        if let terms = publishing.take(), let sink = part?.sink { handle(await sink.published(terms)) }
        if let plan = waitingForName.take() { await prepareInTurn(plan) }
        if destination.proof != nil { await prove() }
    }

    /// `proof`: what is read meanwhile.
    func tellProgress(of proof: Destination.Proof? = nil) {
        guard let observer else { return }
        var snapshot = machine.snapshot(now: services.now)
        if let proof {
            snapshot.state = .verifying
            snapshot.name = proof.place.name
        }
        // The user's name for it, where there is one, is the one to show.
        if let place = destination.place {
            snapshot.name = place.name
        } else if case .file(_, let name?) = options.target {
            snapshot.name = name
        }
        if let part, part.journal == nil, destination.place != nil, snapshot.startsOverBecause == nil {
            snapshot.startsOverBecause = "files under 1 MiB cannot be resumed"
        }
        observer.progressed(snapshot)
    }

    /// Whether the host gives checksums is for all to know.
    private func count(_ verdict: ResponseVerdict, of id: AttemptID) {
        guard let writer = writer(id), counted != id else { return }
        services.board.answered(verdict, from: writer.plan.url.origin)
    }

    /// An answer came with all of its body: what it leads to is done before the body's bytes are written.
    private func delivered(_ id: AttemptID, _ verdict: ResponseVerdict) {
        noteAnswer(of: id)
        count(verdict, of: id)
        tellLong(id)
        self.delivered = id
        step(.answered(id, verdict), context(id, verdict))
        if destination.proof == nil, waitingForName == nil { concludeDelivered() }
    }

    /// The host gives something else than small files over HTTP/2. One that was given up for its length has said so.
    private func tellLong(_ id: AttemptID) {
        if let writer = writer(id), !machine.needsOwnConnection { launcher.noteLongStream(writer) }
    }

    /// The bytes of the answer that is dealt with are written, or dropped.
    func concludeDelivered() {
        guard let id = delivered else { return }
        delivered = nil
        if let writer = writer(id) { attemptEnded(id, writer.conclude()) }
    }

    private func attemptEnded(_ id: AttemptID, _ result: AttemptResult) {
        // The slot is free before the next attempt starts, which can then go on with it.
        giveBackSlot(id)
        noteSilence(of: id, result)
        if let writer = writer(id), counted != id { launcher.ended(writer, result) }
        step(.ended(id, result), context(id))
        writers.removeAll { $0.plan.id == id }
    }

    /// Gives an event to the machine, and returns the actions that follow.
    func decide(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        let actions = machine.handle(event, context)
        if services.traces, let line = TransferTrace.line(event, actions) { observer?.traced(line) }
        return actions
    }

    /// Gives an event to the machine and performs its actions. An event that comes meanwhile waits until they are done.
    func step(_ event: TransferEvent, _ context: TransferContext? = nil) {
        steps.append((event, context))
        guard steps.count == 1 else { return }
        while let (event, context) = steps.first {
            perform(decide(event, context ?? self.context()))
            takeTurn()
            if machine.phase == .publishing { giveUpAdmission() }
            steps.removeFirst()
        }
    }

    private func checkPart() {
        guard let part, services.now - lastIntact > .seconds(1) else { return }
        lastIntact = services.now
        do throws(TowlineError) { try part.sink.checkIntact() } catch { step(.partLost(reason: error.message)) }
    }

    private func checkpointIfDue() {
        guard let part, let journal = part.journal, ending == nil, options.durable else { return }
        let start = services.now
        let bytes = machine.receivedBytes
        if checkpoints.startsWriteback(bytes: bytes) { part.sink.startWriteback() }
        guard checkpoint == nil else { return }
        guard checkpoints.isDue(now: start, bytes: bytes) else { return }
        let mailbox = mailbox
        checkpoint = services.begin {
            let event: TransferEvent
            do throws(TowlineError) {
                try await journal.checkpoint(part.sink)
                event = .checkpointed(journal.durable)
            } catch {
                event = .checkpointFailed(journal.durable, error)
            }
            mailbox.post(.checkpoint(event, of: ObjectIdentifier(part.sink), start: start, bytes: bytes))
        }
    }

    /// What came since the last checkpoint is made durable too, unless that takes long: then not even a reboot costs a
    /// byte of a transfer that was stopped or gave up. Nothing is synced any more when this returns in time: whoever is
    /// at the place next finds it free.
    private nonisolated(nonsending) func lastCheckpoint() async {
        guard let part, let journal = part.journal, ending != .finished else { return }
        let running = checkpoint
        let isWanted = options.durable && stopPurpose != .discard && !machine.ledger.written.isEmpty
        let isBehind = checkpoints.isBehind(bytes: machine.receivedBytes) || journal.written != journal.durable
        let makesOne = isWanted && isBehind && checkpoints.isQuick
        guard running != nil || makesOne else { return }
        let (isOver, over) = AsyncStream<Void>.makeStream()
        services.begin {
            await running?.value
            // One that fails unmarks what it could not sync; the transfer ends the way it ends.
            if makesOne { try? await journal.checkpoint(part.sink) }
            over.finish()
        }
        let most = stopPurpose == .close ? CheckpointPolicy.patienceAtExit : CheckpointPolicy.patienceAtEnd
        services.after(most) { over.finish() }
        for await _ in isOver {}
    }

    private func finished() throws(TowlineError) -> CompletedTransfer {
        close()
        readers.end()
        let received = machine.receivedBytes
        if let outcome = destination.outcome { return CompletedTransfer(outcome: outcome, receivedBytes: received) }
        switch ending {
        case .finished?:
            guard let published else { break }
            if options.target.isStream {
                return CompletedTransfer(
                    outcome: .streamed(length: published.length, to: published.path), receivedBytes: received)
            }
            return CompletedTransfer(
                outcome: published.isForeign ? .skipped(path: published.path) : .published(published),
                receivedBytes: received)
        case .failed(let error)?:
            guard let badPath = destination.badPath, error.code == .checksumMismatch else { throw error }
            throw TowlineError(error.code, "\(error.message). The wrong file is kept as \(badPath)")
        case .stopped?, .upToDate?, nil: break
        }
        throw stopped
    }

    /// What it ends with when it was stopped.
    var stopped: TowlineError {
        TowlineError(
            .cancelled,
            "\(options.url): the download was stopped. The bytes saved so far are kept."
                + " Start the same download again to get the rest")
    }

    /// Lets go of the part file; one that holds nothing and was made by this transfer disappears.
    private func close() {
        guard let part = destination.release() else { return }
        if ending != .finished, destination.isNew, machine.ledger.written.isEmpty, part.journal?.written.isEmpty ?? true
        {
            part.sink.discard()
            return
        }
        guard let storageTask else { return part.sink.close() }
        // A checksum may still be read from the file; its descriptor stays until that notices.
        storageTask.cancel()
        services.begin {
            await storageTask.value
            part.sink.close()
        }
    }
}
