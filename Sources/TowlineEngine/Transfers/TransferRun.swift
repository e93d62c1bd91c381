internal import TowlineCore
import Synchronization

/// Runs one transfer: passes events to the `TransferStateMachine`, which decides, and performs the actions that it
/// returns.
///
/// Only the task or the actor (`TransferRunner`) that runs the transfer may use this type. Rare events arrive through
/// the mailbox. Received bytes do not pass through this type (see `AttemptWriter`).
final class TransferRun {
    typealias Event = TransferMailbox.Event

    let options: DownloadOptions
    let services: TransferServices
    let destination: Destination
    weak var observer: (any TransferObserver)?
    var machine: TransferStateMachine
    /// The event that `step` handles, then the events that arrived meanwhile. A `nil` context means that the input for
    /// the decision is read when the event is handled.
    private var steps: [(TransferEvent, TransferContext?)] = []
    var attempts: TransferAttempts
    var admission: HostAdmission
    var turn: BatchTurn
    private var checkpoints: Checkpoints
    var publication = Publication()
    /// The end of the transfer (success or error) that the state machine decided; `nil` while the transfer runs.
    var ending: TransferEnding?
    var readers = ReaderList()
    let mailbox: TransferMailbox
    /// The timer that posts `.look` and `.tick` events, to check timeouts and progress, after the first 50 ms.
    private let ticker: Ticker
    private static let nextBlock = Atomic<UInt64>(1)

    /// Returns an unused ID for the first HTTP request of a new transfer. The IDs of its next requests follow it.
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
        self.mailbox = mailbox
        var options = options
        if options.connection.user == nil { options.connection.user = options.url.userInfo }
        self.options = options
        self.services = services
        attempts = TransferAttempts(options: options, services: services, mailbox: mailbox, headStart: headStart)
        admission = HostAdmission(services, source: options.url.origin, host: headStart?.admission)
        turn = BatchTurn(services, slot: slot, item: item)
        checkpoints = Checkpoints(services, mailbox)
        self.observer = observer
        let host = services.board.state(of: options.url.origin)
        let terms = TransferTerms(options)
        destination = Destination(
            options, services, mailbox, nameOfURL: terms.nameOfURL, observer: observer, item: item)
        machine = TransferStateMachine(
            terms: terms, firstID: (headStart?.writer.plan.id.value ?? Self.firstID().value) + 1,
            hostCeiling: host.ceiling,
            // `usual` was measured without a rate limit, so it does not apply under one.
            hostUsual: attempts.isLimited ? nil : host.usual)
        ticker = Ticker(after: services.after) { [mailbox] in mailbox.post($0 == .start ? .look : .tick) }
    }

    /// Runs the transfer to its end and returns its result or its error.
    nonisolated(nonsending) func result() async -> Result<CompletedTransfer, TowlineError> {
        do throws(TowlineError) { return .success(try await run()) } catch { return .failure(error) }
    }

    /// Runs the transfer to its end, also if its task is cancelled. Throws the error that ended the transfer, if any.
    nonisolated(nonsending) func run() async throws(TowlineError) -> CompletedTransfer {
        var events = attempts.headStart?.events ?? []
        do throws(TowlineError) {
            try perform(begin())
            takeTurn()
            rest()
        } catch {
            attempts.abandonHeadStart()
            admission.leave()
            mailbox.close()
            close()
            readers.end()
            throw error
        }
        services.tickers.load.enter()
        // A file that is hashed while it arrives needs ticks from the beginning.
        if options.checksum == nil { services.tickers.startSoon(ticker) } else { ticker.start() }
        defer {
            services.tickers.end(ticker)
            services.tickers.load.leave()
            admission.leave()
            admission.works(at: nil)
        }
        if destination.proof != nil { await goOn() }
        while ending == nil {
            if events.isEmpty { events = await mailbox.take() }
            for event in events {
                handle(event)
                if publication.terms != nil || destination.proof != nil || turn.waitingForName != nil { await goOn() }
                if ending != nil { break }
            }
            events = []
        }
        mailbox.close()
        await finishCheckpoints()
        return try finished()
    }

    /// The time until the next `.tick` event, which checks timeouts and progress: shorter if an action is due sooner.
    private var sleepTime: Duration {
        let running = readers.isEmpty ? services.tickers.load.running : 1
        let regular = TickPolicy.interval(running: running, for: machine)
        guard let wake = TickPolicy.wakeAt(machine) else { return regular }
        return min(regular, max(.milliseconds(10), wake - services.now))
    }

    private func handle(_ event: Event) {
        switch event {
        case .attempt(.answered(let id, let verdict)):
            noteResponse(of: id, verdict)
            step(.answered(id, verdict), context(id, verdict))
            if TickPolicy.isLong(machine) { ticker.start() }
        case .attempt(.ended(let id, let result)): attemptEnded(id, result)
        case .attempt(.firstBytesWritten): step(.tick)
        case .attempt(.answeredAndEnded(let id, let verdict)): answeredAndEnded(id, verdict)
        case .attempt(.bodyEnded(let id)): if let writer = attempts.writer(id) { attemptEnded(id, writer.conclude()) }
        case .storage(let event, let sink):
            // An event of an older part file does not concern the part file that replaced it.
            guard sink == nil || sink == part.map({ ObjectIdentifier($0.sink) }) else { break }
            if case .partDamaged = event, checkpoints.stopPurpose != nil { step(.storageFailed(stopped)) }
            step(event)
        case .checkpoint(let event, let sink, let start, let bytes):
            checkpoints.completed(start: start, bytes: bytes)
            // The durable bytes of an older part file say nothing about the part file that replaced it.
            guard let part, ObjectIdentifier(part.sink) == sink else { break }
            // The system may have dropped bytes that were not durable, so their hash does not count.
            if case .checkpointFailed = event { part.sink.forgetHashed() }
            step(event)
        case .published(let file, let sink):
            publication.file = file
            destination.tell()
            guard sink == part.map({ ObjectIdentifier($0.sink) }) else { break }
            step(.published)
        case .look:
            rest()
            ticker.sleep(for: sleepTime)
            return
        case .tick:
            if let error = checkpoints.checkPart(part) { step(.partLost(reason: error.message)) }
            step(.tick)
            if let content = HashableContent(of: machine) {
                part?.sink.hashAhead(content.algorithms, upTo: content.end)
            }
            if ending == nil, options.durable { checkpoints.startIfDue(part, bytes: machine.receivedBytes) }
            ticker.sleep(for: sleepTime)
        case .nudge(let network): step(.networkChanged(network))
        case .wanted: step(.wanted(readers.wanted))
        case .stop(let purpose):
            checkpoints.stopPurpose = purpose
            step(.stop)
        }
        rest()
        admission.works(at: machine.activeHost(now: services.now))
        tellProgress()
        readers.wake()
    }

    /// Does the work before the next event: publishes a file, waits for a file name, reads an existing file.
    private nonisolated(nonsending) func goOn() async {
        if let terms = publication.terms.take(), let sink = part?.sink { handle(await sink.published(terms)) }
        if let plan = turn.waitingForName.take() { await prepareInTurn(plan) }
        if destination.proof != nil { await prove() }
    }

    /// Reports the progress of the transfer to the observer. `proof`: the existing file whose checksum is being
    /// computed; `nil` if none.
    func tellProgress(of proof: ExistingFileProof? = nil) {
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

    /// Records in the batch slot and in the host board that the host of the request `id` responded, and how.
    private func noteResponse(of id: AttemptID, _ verdict: ResponseVerdict) {
        turn.noteResponse(of: attempts.writer(id))
        attempts.noteResponse(of: id, verdict, noteLong: !machine.needsOwnConnection)
    }

    /// Handles a response whose complete body is in memory: first performs the actions for its head, such as creating
    /// the part file, and then writes the body.
    private func answeredAndEnded(_ id: AttemptID, _ verdict: ResponseVerdict) {
        noteResponse(of: id, verdict)
        attempts.beginCompleteResponse(of: id)
        step(.answered(id, verdict), context(id, verdict))
        if destination.proof == nil, turn.waitingForName == nil { concludeCompleteResponse() }
    }

    /// Writes the body of the response that is in memory, or drops it, and handles the end of its request.
    func concludeCompleteResponse() {
        if let writer = attempts.takeCompleteResponse() { attemptEnded(writer.plan.id, writer.conclude()) }
    }

    private func attemptEnded(_ id: AttemptID, _ result: AttemptResult) {
        // Release the slot before the next attempt starts, which can then use it.
        attempts.giveBackSlot(id, to: part?.journal)
        turn.noteSilence(of: attempts.writer(id), result)
        attempts.noteEnd(of: id, result)
        step(.ended(id, result), context(id))
        attempts.remove(id)
    }

    /// Passes an event to the state machine, and returns the actions that it decided. Reports it if `traces` is set.
    func decide(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        let actions = machine.handle(event, context)
        if services.traces, let line = TransferTrace.line(event, actions) { observer?.traced(line) }
        return actions
    }

    /// Passes an event to the state machine and performs its actions; an event that arrives meanwhile waits for them.
    /// `context`: the input for the decision; `nil` to read it when the event is handled.
    func step(_ event: TransferEvent, _ context: TransferContext? = nil) {
        steps.append((event, context))
        guard steps.count == 1 else { return }
        while let (event, context) = steps.first {
            perform(decide(event, context ?? self.context()))
            takeTurn()
            if machine.phase == .publishing { admission.leave() }
            steps.removeFirst()
        }
    }

    /// Restarts the schedule of checkpoints (syncs of the part file), because a new part file replaced the old one.
    func resetCheckpoints() { checkpoints.reset() }

    private nonisolated(nonsending) func finishCheckpoints() async {
        guard let part, ending != .finished else { return }
        let bytes = options.durable && !machine.ledger.written.isEmpty ? machine.receivedBytes : nil
        await checkpoints.finish(part, bytes: bytes)
    }

    private func finished() throws(TowlineError) -> CompletedTransfer {
        close()
        readers.end()
        let received = machine.receivedBytes
        if let outcome = destination.outcome { return CompletedTransfer(outcome: outcome, receivedBytes: received) }
        switch ending {
        case .finished?:
            guard let published = publication.file else { break }
            if options.target.isStream {
                return CompletedTransfer(
                    outcome: .streamed(length: published.length, to: published.path), receivedBytes: received)
            }
            return CompletedTransfer(
                outcome: published.isForeign ? .skipped(path: published.path) : .published(published),
                receivedBytes: received)
        case .failed(let error)?:
            guard let badPath = destination.changes.badPath, error.code == .checksumMismatch else { throw error }
            throw TowlineError(error.code, "\(error.message). The wrong file is kept as \(badPath)")
        case .stopped?, .upToDate?, nil: break
        }
        throw stopped
    }

    /// The error that a transfer throws when its user or its task stopped it: `cancelled`.
    var stopped: TowlineError {
        TowlineError(
            .cancelled,
            "\(options.url): the download was stopped. The bytes saved so far are kept."
                + " Start the same download again to get the rest")
    }

    /// Closes the part file, or removes it if this transfer created it and it has no bytes.
    private func close() {
        guard let part = destination.release() else { return }
        if ending != .finished, destination.changes.isNew, machine.ledger.written.isEmpty,
            part.journal?.written.isEmpty ?? true
        {
            part.sink.discard()
            if part.earlier != nil, let place = destination.place { services.storage.restoreEarlier(place) }
            return
        }
        guard let task = publication.task else { return part.sink.close() }
        // A checksum task may still read the file. Its descriptor stays open until the task notices the cancellation.
        task.cancel()
        services.begin {
            await task.value
            part.sink.close()
        }
    }
}
