internal import TowlineCore
import Synchronization

/// Runs one transfer (one run of a download): passes events to the `TransferStateMachine`, which decides, and performs
/// the actions that it returns.
///
/// Only the task or the actor (`TransferRunner`) that runs the transfer may use this type. Rare events arrive through
/// the mailbox. Received bytes do not pass through this type (see `AttemptWriter`).
final class TransferRun {
    /// An event that a transfer handles.
    typealias Event = TransferMailbox.Event

    let options: DownloadOptions
    let services: TransferServices
    let destination: Destination
    weak var observer: (any TransferObserver)?
    var machine: TransferStateMachine
    /// The event that `step` handles, then the events that `step` received meanwhile. A `nil` context means that the
    /// context is read when the event is handled.
    private var steps: [(TransferEvent, TransferContext?)] = []
    /// The receivers of the running attempts' responses.
    var writers: [AttemptWriter] = []
    /// The host that counts this transfer as one with connections of its own (`HostBoard.admit`); `nil` if no host
    /// does.
    var admission: HTTPURL.Origin?
    var slots: [(id: AttemptID, slot: any JournalSlot)] = []
    /// The attempt whose complete response is being handled while its body is in memory; `nil` without one.
    var delivered: AttemptID?
    var checkpoints: CheckpointPolicy
    /// The task that makes the written bytes durable now; `nil` if no such task runs.
    var checkpoint: Task<Void, Never>?
    var storageTask: Task<Void, Never>?
    /// The options for publishing a complete small file or stream, which has no journal; `nil` if none is to be
    /// published. `run` publishes it itself, because the transfer waits for nothing else.
    var publishing: PublishTerms?
    var published: PublishedFile?
    var ending: TransferEnding?
    /// The reason of the last stop, which limits the time for the last sync; `nil` if the transfer was not stopped.
    private var stopPurpose: StopPurpose?
    var lastIntact: Duration
    var readers = ReaderList()
    let limiter: RateLimiter
    let mailbox: TransferMailbox
    /// The first request, sent before this transfer was created; `nil` if none was sent, or after it was taken over or
    /// cancelled.
    var headStart: HeadStart?
    /// The attempt that the host board already counts as ended (`HeadStart.isOver`); `nil` without one.
    var counted: AttemptID?
    let launcher: AttemptLauncher
    /// The right to run in a batch; `nil` outside a batch. `isResting`: other downloads may use it until the next
    /// attempt.
    let batchSlot: BatchSlots.Slot?
    var isResting = false
    /// The entry in the list of a batch; `nil` outside a batch.
    let item: BatchRoster.Item?
    /// The plan of a response that waits until all earlier downloads of the batch have their file names; `nil` if none
    /// waits.
    var waitingForName: PreparePlan?
    /// The time at which a request was sent while no other ran; `nil` after a response. Used to detect a silent host.
    var unansweredSince: Duration?
    /// The number of responses that the host had given to this process at the time `unansweredSince`.
    var answersBefore = 0
    /// `true` after the first request was cancelled because the host responded to other downloads and not to this one.
    var hasYielded = false
    /// The host that sends bytes to this transfer, as counted in `HostBoard.working`; `nil` if no host does.
    var activeHost: HTTPURL.Origin?
    /// The timer that posts `.look` and `.tick` events, once the transfer has lasted longer than about 50 ms.
    private let ticker: Ticker
    private static let nextBlock = Atomic<UInt64>(1)

    /// Returns the ID of the first attempt of a new transfer. The IDs of its next attempts follow that ID.
    static func firstID() -> AttemptID { AttemptID(nextBlock.wrappingAdd(1, ordering: .relaxed).oldValue << 32) }

    /// Creates a transfer, which does nothing before `run`.
    ///
    /// - Parameters:
    ///   - mailbox: the queue that receives the transfer's events.
    ///   - headStart: the first request, if it was already sent.
    ///   - slot: the download's right to run in a batch; `nil` outside a batch.
    ///   - item: the download's entry in the list of a batch; `nil` outside a batch.
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
        let host = services.board.state(of: options.url.origin)
        let terms = TransferTerms(options)
        destination = Destination(
            options, services, mailbox, nameOfURL: terms.nameOfURL, observer: observer, item: item)
        machine = TransferStateMachine(
            terms: terms, firstID: (headStart?.writer.plan.id.value ?? Self.firstID().value) + 1,
            hostCeiling: host.ceiling,
            // `usual` was measured without a rate limit, so it does not apply under one.
            hostUsual: limiter.isLimited || services.limiter.isLimited ? nil : host.usual)
        ticker = Ticker(after: services.after) { [mailbox] in mailbox.post($0 == .start ? .look : .tick) }
    }

    /// Runs the transfer and returns the result or the error of `run`.
    nonisolated(nonsending) func result() async -> Result<CompletedTransfer, TowlineError> {
        do throws(TowlineError) { return .success(try await run()) } catch { return .failure(error) }
    }

    /// Runs the transfer to its end, also if its task is cancelled. See `TransferRunner.run` for the errors.
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
        // A file that is hashed while it arrives needs ticks from the beginning.
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

    /// The time until the next tick: shorter if the state machine must act sooner.
    private var sleepTime: Duration {
        let running = readers.isEmpty ? services.load.running : 1
        let regular = TickPolicy.interval(running: running, for: machine)
        guard let wake = TickPolicy.wakeAt(machine) else { return regular }
        return min(regular, max(.milliseconds(10), wake - services.now))
    }

    private func handle(_ event: Event) {
        switch event {
        case .attempt(.answered(let id, let verdict)):
            noteAnswer(of: id)
            count(verdict, of: id)
            tellLong(id)
            step(.answered(id, verdict), context(id, verdict))
            if TickPolicy.isLong(machine) { ticker.start() }
        case .attempt(.ended(let id, let result)): attemptEnded(id, result)
        case .attempt(.delivers): step(.tick)
        case .attempt(.delivered(let id, let verdict)): delivered(id, verdict)
        case .attempt(.arrived(let id)): if let writer = writer(id) { attemptEnded(id, writer.conclude()) }
        case .storage(let event, let sink):
            // An event of an older part file does not concern the part file that replaced it.
            guard sink == nil || sink == part.map({ ObjectIdentifier($0.sink) }) else { break }
            step(event)
        case .checkpoint(let event, let sink, let start, let bytes):
            checkpoint = nil
            checkpoints.completed(start: start, now: services.now, bytes: bytes)
            // The durable bytes of an older part file say nothing about the part file that replaced it.
            guard let part, ObjectIdentifier(part.sink) == sink else { break }
            // The system may have dropped bytes that were not durable, so their hash does not count.
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
            if let content = HashableContent(of: machine) {
                part?.sink.hashAhead(content.algorithms, upTo: content.end)
            }
            checkpointIfDue()
            ticker.sleep(for: sleepTime)
        case .nudge: step(.networkChanged)
        case .wanted: step(.wanted(readers.wanted))
        case .stop(let purpose):
            stopPurpose = purpose
            step(.stop)
        }
        rest()
        tellWork(machine.activeHost(now: services.now))
        tellProgress()
        readers.wake()
    }

    /// Does the work that must finish before the next event is handled: publishes a file, waits for a file name, reads
    /// an existing file.
    private nonisolated(nonsending) func goOn() async {
        if let terms = publishing.take(), let sink = part?.sink { handle(await sink.published(terms)) }
        if let plan = waitingForName.take() { await prepareInTurn(plan) }
        if destination.proof != nil { await prove() }
    }

    /// Reports a snapshot of the transfer to the observer. `proof`: the existing file whose checksum is being computed;
    /// `nil` if none.
    func tellProgress(of proof: Destination.Proof? = nil) {
        guard let observer else { return }
        var snapshot = TransferSnapshot(of: &machine, now: services.now)
        if let proof {
            snapshot.state = .verifying
            snapshot.name = proof.place.name
        }
        // Show the name of the destination or, before the destination is chosen, the name that the user gave.
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

    /// Counts a response in the host board, so that all transfers know, for example, whether the host sends checksums.
    private func count(_ verdict: ResponseVerdict, of id: AttemptID) {
        guard let writer = writer(id), counted != id else { return }
        services.board.answered(verdict, from: writer.plan.url.origin)
    }

    /// Handles a response whose complete body is in memory: first performs the actions for its head, such as creating
    /// the part file, then writes the body.
    private func delivered(_ id: AttemptID, _ verdict: ResponseVerdict) {
        noteAnswer(of: id)
        count(verdict, of: id)
        tellLong(id)
        self.delivered = id
        step(.answered(id, verdict), context(id, verdict))
        if destination.proof == nil, waitingForName == nil { concludeDelivered() }
    }

    /// Records in the host board, which decides about shared connections, that a response over HTTP/2 is not a small
    /// file. An attempt that was stopped because of its length (`needsOwnConnection`) reports that at its end.
    private func tellLong(_ id: AttemptID) {
        if let writer = writer(id), counted != id, !machine.needsOwnConnection { launcher.noteLongStream(writer) }
    }

    /// Writes or drops the body of the attempt in `delivered`, and handles the end of the attempt.
    func concludeDelivered() {
        guard let id = delivered else { return }
        delivered = nil
        if let writer = writer(id) { attemptEnded(id, writer.conclude()) }
    }

    private func attemptEnded(_ id: AttemptID, _ result: AttemptResult) {
        // Release the slot before the next attempt starts, which can then use it.
        giveBackSlot(id)
        noteSilence(of: id, result)
        if let writer = writer(id), counted != id { launcher.ended(writer, result) }
        step(.ended(id, result), context(id))
        writers.removeAll { $0.plan.id == id }
    }

    /// Passes an event to the state machine, and returns the actions that it decided. Adds a trace line, if traced.
    func decide(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        let actions = machine.handle(event, context)
        if services.traces, let line = TransferTrace.line(event, actions) { observer?.traced(line) }
        return actions
    }

    /// Passes an event to the state machine and performs the actions. An event that is raised meanwhile waits until all
    /// actions are done. `context`: the facts for the decision; `nil` to read them then.
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

    /// Makes the bytes since the last checkpoint (sync) durable, unless that is likely to take long: then not even a
    /// reboot costs a byte of a stopped or failed transfer. If this returns before its time limit, no sync is running,
    /// and the next transfer finds the destination free.
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
            // A failed checkpoint unmarks the bytes that it could not sync, and does not change how the transfer ends.
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

    /// The error that a stopped transfer throws: `cancelled`.
    var stopped: TowlineError {
        TowlineError(
            .cancelled,
            "\(options.url): the download was stopped. The bytes saved so far are kept."
                + " Start the same download again to get the rest")
    }

    /// Closes the part file, or removes it if this transfer created it and it holds no bytes.
    private func close() {
        guard let part = destination.release() else { return }
        if ending != .finished, destination.isNew, machine.ledger.written.isEmpty, part.journal?.written.isEmpty ?? true
        {
            part.sink.discard()
            return
        }
        guard let storageTask else { return part.sink.close() }
        // A checksum task may still read the file. Its descriptor stays open until the task notices the cancellation.
        storageTask.cancel()
        services.begin {
            await storageTask.value
            part.sink.close()
        }
    }
}
