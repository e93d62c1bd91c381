/// A state machine for one transfer, as a value: it takes events, returns actions, and uses no socket, file or clock.
///
/// Phases: `idle → running ⇄ preparing → … → verifying → publishing → ended`, and `draining` while attempts (requests)
/// must end: the file is not verified, published or replaced while an attempt may still write.
package struct TransferStateMachine: Sendable {
    /// The phases of a transfer.
    package enum Phase: Hashable, Sendable {
        case idle
        /// Attempts run, or the transfer waits before the next attempt.
        case running
        /// The part file is being created. The response to the given attempt, if any, is paused until then.
        case preparing(AttemptID?)
        /// The transfer waits for all attempts to end, except one whose response a restart uses. Then the goal applies.
        case draining(Goal)
        case verifying
        case publishing
        case ended

        /// `true` while the part file is being created.
        var isPreparing: Bool { if case .preparing = self { true } else { false } }
    }

    /// The step that follows when all running attempts have ended.
    package enum Goal: Hashable, Sendable {
        /// Every byte is written: the file is verified and published.
        case finish
        /// The download restarts at the first byte. The response to attempt `keeper`, if any, is the complete new file.
        case restart(keeper: AttemptID?)
        /// The transfer continues with the bytes that a failed sync did not lose.
        case resume
        case end(TransferEnding)
    }

    /// The known range support of the server.
    enum RangeSupport: Hashable, Sendable {
        case unknown
        /// The server sent a valid 206 response.
        case works
        /// The server announces range support, but has not sent a range yet.
        case claimed
        /// Requests have no `Range` field from now on, and one connection is used.
        case broken
    }

    let terms: TransferTerms
    package internal(set) var phase = Phase.idle
    package internal(set) var ledger = RangeLedger()
    /// The metadata (length, validators) of the file that the written bytes belong to; `nil` before the first response.
    var representation: Representation?
    var checksums: [Checksum] = []
    /// The response fields that contained checksums of the whole file, by checksum.
    var digestFields: [Checksum: ServerChecksum] = [:]
    /// The checksum of the file that a redirect response contained about its target; `nil` without one.
    var linked: LinkedChecksum?
    /// `true` after a redirect from an https URL: later http requests use no netrc entry.
    var hasLeftTLS = false
    /// The ranges that were requested a second time because a checksum of their response did not match.
    var repeated = ByteRangeSet()
    var ranges = RangeSupport.unknown
    /// `true` if the server rejects `If-Range`: instead, each 206 response must repeat the strong validator.
    var dislikesIfRange = false
    /// `true` if the server repeats the strong validator only in weak form: bytes before resume points are compared.
    var isWeakened = false
    /// `true` if responses of one version have different validators and the user gave a checksum, the only proof then.
    var ignoresValidators = false
    /// The conclusions from refused range requests, which may have been refused only for their Range field.
    var rangeDoubt = RangeDoubt()
    var contentCoding: String?
    /// The Content-Encoding with which the written bytes came, if it only labels the type of the stored file.
    var label = CodingLabel.unknown
    /// `true` if responses carry a digest of their content, which can be checked only on a complete response.
    var carriesDigests = false
    /// The paused response whose body becomes the file in a restart; `nil` if a restart sends a new request.
    var keptAnswer: ResponseFacts?
    /// The metadata of the file that a restart discarded. A response with the same validator has the same length.
    var givenUp: Representation?
    /// The last response whose end another response has to confirm, because it may have been cut.
    var unproven: UnprovenAnswer?
    /// The checksum error of a replaced source that sent all bytes; `nil` once bytes of another source are written.
    var refutation: TowlineError?
    /// `true` if the restart under way discards the bytes because the file changed on the server.
    var fileChanged = false
    /// The length of the discarded representation, if the new response has the same weak validator. A response that
    /// ends earlier only because its connection closed is incomplete.
    var minimumLength: Int64?
    /// The metadata in the last response that defined the file. If it changes, readers must read again.
    var lastAdopted: Representation?
    var isDoubtful = false
    /// `true` if an earlier transfer found that the server supports no range requests for the file.
    var heldLacksRanges = false
    var hasStorage = false
    /// `true` if the bytes of the next response go into a new part file.
    var replacesPart = false
    /// The file that an update may replace; `nil` once a response shows another version of the file.
    package var existing: ExistingFile?
    /// The kind of bytes in the part file that the next response replaces; `.nothing` without such a file.
    var replaced = Held.nothing
    /// The media type of the bytes in the part file that the next response replaces.
    var replacedMediaType: String?
    /// `true` if this transfer has received a response that fits the written bytes.
    var isConfirmed = false
    /// `true` if bytes of two responses were joined with less proof than a strong validator.
    var joinedWeakly = false
    /// The running attempts, in the order in which they began.
    var attempts: [Attempt] = []
    var budget: ConnectionBudget
    /// `true` if the connections that were added last did not increase the rate and are to be closed.
    var hasSurplus = false
    /// The number of connections last reported to the host's other downloads as worthwhile; `nil` before a report.
    var toldFinding: Int?
    package internal(set) var resolved: HTTPURL
    /// The source (a URL) whose responses define the file, called the primary.
    var primary: FileSource
    /// The other sources that may have the same file. Their bytes are used only with proof that it is the same.
    var mirrors: [FileSource]
    var fileName = ""
    var nextID: UInt64
    /// The earliest time of the next request to the primary source; `nil` if no wait is set.
    var notBefore: Duration?
    var waitReason = ""
    package internal(set) var waitsForServer = false
    /// The attempt whose slow response was reported in a notice.
    var announcedSilence: AttemptID?
    var tally = Tally()
    /// The time when an attempt last wrote a byte, was held back by a rate limit, or began while no other attempt ran.
    var lastWrittenAt = Duration.zero
    /// The time when bytes last arrived; `nil` before the first byte and once all bytes are written.
    var lastReceivedAt: Duration?
    /// The time of the current event.
    var now = Duration.zero
    /// The random number of the current event, in 0 ..< 1.
    var jitter = 0.5
    /// The time when the user's rate limit last held bytes back.
    var lastHeldBackAt: Duration?
    /// The time when a failure was last counted.
    var lastFailureAt: Duration?
    var lastReplacement: Replacement?
    /// The time when an additional connection last failed without a byte, and the offset at which a response that
    /// cannot be resumed last broke.
    var lastRejectionAt: Duration?, lastBreakAt: Int64?
    package internal(set) var receivedBytes: Int64 = 0
    var resumedBytes: Int64 = 0
    /// `true` if the user has yet to be notified that bytes of an earlier transfer are reused.
    var announcesResuming = false
    var wastedInRaces: Int64 = 0
    var roundTrip: Double?
    /// The typical rate of a connection of this download in bytes per second, and whether an attempt has completed.
    var typicalRate: Double?, hasCompleted = false
    var estimator = ThroughputEstimator()
    var remainingTime = RemainingTimeEstimator()
    var isSingle: Bool
    /// `true` if the file is not small, or stalled on a shared connection: its requests get a connection of their own.
    package internal(set) var needsOwnConnection = false
    /// `true` while the transfer waits for its slot in a batch, or for permission to open a connection of its own.
    package internal(set) var waitsForTurn = false
    /// The target of a redirect that is still to be requested.
    var pendingRedirect: PendingRedirect?
    /// The way in which the last complete response shared its connection with other requests.
    var sharing = ConnectionSharing.none
    var ending: TransferEnding?
    /// The ranges that readers wait for or will read next, the most urgent first.
    var wanted: [ByteRange] = []
    /// A number that increases when written bytes are discarded: the bytes that a reader has may then be wrong.
    var contentGeneration = 0

    /// Counters that limit how often the transfer repeats a reaction.
    struct Tally: Sendable {
        /// The number of attempts in a row that received no bytes. The retry limit applies to it.
        var failures = 0
        /// The number of notices that an interruption restarts the download. Such a notice is shown once.
        var announcements = 0
        /// The number of refused ranges since the last accepted range.
        var refusals = 0
        /// The number of additional connections in a row that received no bytes.
        var rejections = 0
        /// The number of times that the connection limit was lowered because additional connections received no bytes.
        var lowerings = 0
        var restarts = 0
        /// The number of restarts since new bytes were last joined to written ones.
        var discards = 0
        var expirations = 0
        /// The number of slow connections in a row whose replacements were no faster.
        var futileReplacements = 0
        /// `true` while another request has to confirm that the file changed, as a response claimed.
        var isConfirming = false
        /// The number of requests in a row that had to confirm a claimed change.
        var confirmations = 0
        /// The number of claimed changes that were not confirmed.
        var flips = 0
        var syncFailures = 0
    }

    /// Creates a state machine. `firstID`: the identifier of the first attempt; later ones count up, so give each
    /// transfer of a process its own block. `hostCeiling`: the number of connections that the host is known to allow;
    /// `hostUsual`: the number that paid off at this host before; `nil` if unknown.
    package init(terms: TransferTerms, firstID: UInt64 = 1, hostCeiling: Int? = nil, hostUsual: Int? = nil) {
        self.terms = terms
        nextID = firstID
        resolved = terms.source
        primary = FileSource(terms.source, nameOfURL: terms.nameOfURL)
        mirrors = terms.mirrors.map { FileSource($0) }
        isSingle = terms.sequential || terms.isStream
        budget = ConnectionBudget(
            requested: isSingle ? 1 : terms.connections, hostCeiling: terms.mirrors.isEmpty ? hostCeiling : nil,
            usual: hostUsual)
        if let checksum = terms.checksum { checksums = [checksum] }
        if terms.ignoresLength { ranges = .broken }
    }

    /// Handles one event and returns the actions to perform.
    package mutating func handle(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        guard phase != .ended else { return [] }
        pendingRedirect?.isNew = false
        var actions = follow(context)
        actions += act(on: event, context)
        if [.running, .publishing].contains(phase) || phase.isPreparing, let error = tooLarge() { return fail(error) }
        // If no bytes can be joined, planning starts over, and a second pass plans the new download.
        for _ in 0..<2 where phase == .running { actions += plan(context) }
        return actions
    }

    private mutating func act(on event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        switch event {
        case .begin(let held): return begin(held, context)
        case .takenOver(let plan, let startedAt): return takeOver(plan, startedAt, context)
        case .answered(let id, let verdict): return answered(id, verdict, context)
        case .ended(let id, let result): return ended(id, result, context)
        case .prepared: return prepared(context)
        case .storageFailed(let error): return fail(error)
        case .partLost(let reason): return isPartExpected ? startOver(because: reason, isChange: false) : []
        case .tick: return tick(context)
        case .checkpointed(let durable):
            ledger.markDurable(durable)
            return []
        case .checkpointFailed(let durable, let error):
            // Publishing syncs again, detects failures of earlier syncs, and ends with the journal closed.
            return phase == .publishing ? [] : lostBytes(durable, error)
        case .verified(let mismatches): return verified(mismatches)
        case .published: return end(.finished)
        case .networkChanged: return networkChanged()
        case .wanted(let ranges):
            wanted = ranges
            return []
        case .stop: return stop()
        }
    }

    /// Records the progress of each attempt, and how the number of connections affects the rate.
    private mutating func follow(_ context: TransferContext) -> [TransferAction] {
        (now, jitter) = (context.now, context.jitter)
        var fresh: Int64 = 0
        var (isHeldBack, isJoined) = (false, false)
        for (id, progress) in context.progress {
            let news = attempts.change(id) { $0.follow(progress, now: context.now) }
            guard let step = news.flatMap(\.self) else { continue }
            fresh += step.bytes
            if progress.isHeldBack { isHeldBack = true }
            if progress.isHeldBack || step.hasWritten { lastWrittenAt = context.now }
            if step.hasWritten {
                tally.failures = 0
                switch attempts[id]?.plan.source {
                case .mirror(let index): mirrors[index].tries = 0
                default: primary.tries = 0
                }
                // Bytes of another source are written.
                refutation = nil
                if mirrors.isEmpty || attempts[id]?.plan.source == .primary { tally.expirations = 0 }
                isJoined = isJoined || step.claims != nil
            }
            if let position = step.claims { ledger.advance(id, to: position) }
        }
        receivedBytes += fresh
        if isHeldBack { lastHeldBackAt = context.now }
        if fresh > 0 { lastReceivedAt = context.now }
        estimator.add(fresh, now: context.now)
        let actions = isJoined ? announceResuming() : []
        guard isConfirmed, !isSingle else { return actions }
        let sample = ConnectionBudget.Sample(
            bytes: fresh, active: workingCount(context),
            remaining: ledger.completeLength.map { $0 - ledger.written.count },
            roundTrip: .seconds(roundTrip ?? 0), isLimited: context.isLimited, isHeldBack: isHeldBack)
        hasSurplus = budget.measure(sample, now: context.now)
        return actions
    }

    /// Tells the user once that bytes are joined to those of an earlier transfer. Before the first joined byte, the
    /// server may turn out to have another file.
    private mutating func announceResuming() -> [TransferAction] {
        guard announcesResuming else { return [] }
        announcesResuming = false
        let size = ByteCountText.format(resumedBytes)
        return [.notice(TransferNotice(.info, .resumed, "resuming: \(size) already downloaded"))]
    }

    /// Begins the transfer, or adopts the bytes of an earlier one (`held`), perhaps found only when the first response
    /// gave the file name.
    private mutating func begin(_ held: HeldDownload?, _ context: TransferContext) -> [TransferAction] {
        phase = .running
        lastWrittenAt = context.now
        guard let held else { return [] }
        var actions: [TransferAction] = []
        for attempt in attempts { actions += dismiss(attempt.id) }
        isConfirmed = false
        giveUpContent()
        guard isBelievable(held) else { return actions + distrust(held) }
        representation = held.representation
        isWeakened = false
        // The author of an untrusted journal may have forged the checksums together with the bytes.
        let known = held.isUntrusted || terms.ignoresServerChecksums ? [] : held.checksums
        for checksum in known where !checksums.contains(where: { $0.algorithm == checksum.algorithm }) {
            checksums.append(checksum)
        }
        ledger = RangeLedger(completeLength: held.representation.completeLength, written: believed(held))
        ledger.markDurable(held.durable)
        isDoubtful = held.isDoubtful
        heldLacksRanges = held.lacksRanges
        hasStorage = true
        resumedBytes = ledger.written.count
        announcesResuming = resumedBytes > 0
        // If every byte is held, no request follows, so the notice is due now.
        return actions + (ledger.isWhole ? announceResuming() : [])
    }

    /// Adopts a first request that was sent before this state machine was created (`SmallFilePolicy`).
    private mutating func takeOver(
        _ plan: AttemptPlan, _ startedAt: Duration, _ context: TransferContext
    ) -> [TransferAction] {
        let actions = begin(nil, context)
        linked = plan.question.linked
        hasLeftTLS = plan.chain.contains { $0.scheme == .https }
        attempts.append(Attempt(plan: plan, startedAt: startedAt, lastProgressAt: context.now))
        ledger.lease(plan.lease, to: plan.id, isRace: false)
        return actions
    }

    private mutating func prepared(_ context: TransferContext) -> [TransferAction] {
        hasStorage = true
        (replacesPart, replaced, replacedMediaType) = (false, .nothing, nil)
        guard case .preparing(let id) = phase else { return [] }
        phase = .running
        // The time for creating the part file does not count as a stall of the server.
        lastWrittenAt = context.now
        guard let id, attempts.change(id, { $0.lastProgressAt = context.now }) != nil else { return [] }
        return [.proceed(id)]
    }

    private mutating func tick(_ context: TransferContext) -> [TransferAction] {
        guard phase == .running else { return [] }
        return announceSilence(context) + replaceStalled(context)
    }

    // MARK: Ending

    /// Stops the transfer, except during publishing, whose few steps are better finished than left to the next run.
    mutating func stop() -> [TransferAction] { phase == .publishing ? [] : drain(.end(.stopped)) }

    mutating func fail(_ error: TowlineError) -> [TransferAction] {
        drain(.end(.failed(error)))
    }

    /// Cancels every attempt except the one that a restart keeps, and continues with `goal` when they have ended.
    mutating func drain(_ goal: Goal) -> [TransferAction] {
        // A stop or a failure replaces a milder goal of draining. No other goal replaces a stop or a failure.
        if case .draining(.end) = phase { return [] }
        phase = .draining(goal)
        var keeper: AttemptID?
        if case .restart(let id) = goal { keeper = id }
        var actions: [TransferAction] = []
        for index in attempts.indices where attempts[index].id != keeper && !attempts[index].isDismissed {
            attempts[index].isDismissed = true
            actions.append(.cancel(attempts[index].id))
        }
        return actions + drained()
    }

    /// Continues with the goal of draining if no attempt is left to wait for. Called again after each attempt's end.
    mutating func drained() -> [TransferAction] {
        guard case .draining(let goal) = phase else { return [] }
        switch goal {
        case .restart(let keeper):
            guard attempts.allSatisfy({ $0.id == keeper }) else { return [] }
            return restart(keeper)
        default:
            guard attempts.isEmpty else { return [] }
        }
        switch goal {
        case .finish where ledger.isWhole: return finish()
        // The digest of a response that ended meanwhile did not match, so bytes are missing again.
        case .finish, .resume, .restart: phase = .running
        case .end(let ending): return end(ending)
        }
        return []
    }

    private mutating func end(_ ending: TransferEnding) -> [TransferAction] {
        phase = .ended
        self.ending = ending
        return [.finish(ending)]
    }
}
