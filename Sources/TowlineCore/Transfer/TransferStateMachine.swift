/// The whole behaviour of one transfer as a value: an event comes in, actions go out. No socket, no file, no clock.
///
/// Phases: `idle → running ⇄ preparing → … → verifying → publishing → ended`, with `draining` wherever running
/// attempts must be gone first: nothing is verified, published or replaced while somebody may still write.
package struct TransferStateMachine: Sendable {
    /// Where the transfer stands.
    package enum Phase: Hashable, Sendable {
        case idle
        /// Attempts run, or wait for their time.
        case running
        /// The part file is being created; the answer of this attempt waits, if it is one.
        case preparing(AttemptID?)
        /// Waits for all attempts to end, but for the keeper of a restart.
        case draining(Goal)
        case verifying
        case publishing
        case ended

        /// Returns true while the part file is created.
        var isPreparing: Bool { if case .preparing = self { true } else { false } }
    }

    /// What follows once all attempts are gone.
    package enum Goal: Hashable, Sendable {
        /// Everything is written: verify and publish.
        case finish
        /// From the first byte again; the keeper's answer is all of the new file.
        case restart(keeper: AttemptID?)
        /// Go on with what may still be believed.
        case resume
        case end(TransferEnding)
    }

    /// What is known of ranges at this server.
    enum RangeSupport: Hashable, Sendable {
        case unknown
        /// A 206 came as it should.
        case works
        /// It says so, but has not shown it.
        case claimed
        /// Asked without `Range` from here on; one stream.
        case broken
    }

    let terms: TransferTerms
    package internal(set) var phase = Phase.idle
    package internal(set) var ledger = RangeLedger()
    /// What the held bytes are of; `nil` before the first answer.
    var representation: Representation?
    var checksums: [Checksum] = []
    /// The fields that checksums of the whole came in.
    var digestFields: [Checksum: ServerChecksum] = [:]
    /// The checksum that a redirect gave for the file it leads to.
    var linked: LinkedChecksum?
    /// A redirect came from an https URL: from then on no netrc entry answers over http.
    var hasLeftTLS = false
    /// Bytes that were requested a second time because a checksum of their response did not match.
    var repeated = ByteRangeSet()
    var ranges = RangeSupport.unknown
    /// The server dislikes `If-Range`: rung 2 of the ladder instead of rung 1.
    var dislikesIfRange = false
    /// The server repeats the strong validator only weakly: the third rung of the ladder at most.
    var isWeakened = false
    /// Responses of one version have different validators, and the user gave a checksum: it alone is the proof.
    var ignoresValidators = false
    /// The knowledge from refused range requests.
    var rangeDoubt = RangeDoubt()
    var contentCoding: String?
    /// The label of the bytes that are held.
    var label = CodingLabel.unknown
    /// Responses here carry a digest of their content, which can be checked only if they come whole.
    var carriesDigests = false
    /// The answer that a restart begins with.
    var keptAnswer: ResponseFacts?
    /// What was given up by a restart: the same representation has the same length, whether an answer says so or not.
    var givenUp: Representation?
    /// An answer whose end another one has to confirm.
    var unproven: UnprovenAnswer?
    /// Why a primary was replaced whose bytes were all there.
    var refutation: TowlineError?
    /// Why the file is given up: it is another one now.
    var isAnother = false
    /// The length of what was given up, where a weak validator says that this is the same: no connection that merely
    /// closes ends it earlier.
    var lengthOnceKnown: Int64?
    /// What the last answer that said what the file is said of it.
    var lastAdopted: Representation?
    var isDoubtful = false
    /// An earlier transfer found that the server gives no ranges of what is held.
    var heldLacksRanges = false
    var hasStorage = false
    /// The next answer's bytes go into a new part file.
    var replacesPart = false
    /// The file that an update may replace, until an answer shows another version of it.
    package var existing: ExistingFile?
    /// The bytes in the part file that the next answer replaces.
    var replaced = Held.nothing
    /// Their media type.
    var replacedMediaType: String?
    /// This transfer has seen an answer that fits the bytes held.
    var isConfirmed = false
    /// Bytes were joined on less than a strong validator.
    var joinedWeakly = false
    /// In the order in which they began.
    var attempts: [Attempt] = []
    var budget: ConnectionBudget
    /// The last connections that were added did not pay off and are to be given up.
    var hasSurplus = false
    /// The number of connections that the host's other downloads were told to begin with.
    var toldFinding: Int?
    package internal(set) var resolved: HTTPURL
    /// Who says what the file is.
    var primary: FileSource
    /// Who else may have it.
    var mirrors: [FileSource]
    var fileName = ""
    var nextID: UInt64
    /// Not before that time may a new attempt start, unless others run.
    var notBefore: Duration?
    var waitReason = ""
    package internal(set) var waitsForServer = false
    /// The attempt whose slow response was reported in a notice.
    var announcedSilence: AttemptID?
    var tally = Tally()
    /// When an attempt last wrote a byte, was held back by a limit of ours, or began after a time without any.
    var lastWrittenAt = Duration.zero
    /// When bytes last arrived.
    var lastReceivedAt: Duration?
    /// The time of the event that is handled.
    var now = Duration.zero
    /// Its random number in 0 ..< 1.
    var jitter = 0.5
    /// When the user's rate limit last held bytes back.
    var lastHeldBackAt: Duration?
    /// When a failure was last counted.
    var lastFailureAt: Duration?
    var lastReplacement: Replacement?
    /// The last time that a further connection received nothing, and the place where a response without ranges last
    /// broke.
    var lastRejectionAt: Duration?, lastBreakAt: Int64?
    package internal(set) var receivedBytes: Int64 = 0
    var resumedBytes: Int64 = 0
    /// The user is not yet told that these bytes are used.
    var announcesResuming = false
    var wastedInRaces: Int64 = 0
    var roundTrip: Double?
    /// The bytes per second that a connection of this download typically brings, and whether one has ended.
    var typicalRate: Double?, hasCompleted = false
    var estimator = ThroughputEstimator()
    var remainingTime = RemainingTimeEstimator()
    var isSingle: Bool
    /// What comes is not small, or stood still where others share the connection: it gets one to itself.
    package internal(set) var needsOwnConnection = false
    /// It waits until it may have a connection of its own.
    package internal(set) var waitsForTurn = false
    /// Where a redirect led, if that is not asked yet.
    var lead: Lead?
    /// Whether the answer that is written came over a connection that others share.
    var sharing = ConnectionSharing.none
    var ending: TransferEnding?
    /// What readers wait for, and what they will read next, the most urgent first.
    var wanted: [ByteRange] = []
    /// Goes up whenever bytes that were called written are given up: what a reader has of them may be wrong.
    var contentGeneration = 0

    /// Counts that end loops.
    struct Tally: Sendable {
        /// Attempts in a row that brought nothing.
        var failures = 0
        /// Times it was said that an interruption starts over.
        var announcements = 0
        /// Refused ranges since the last one accepted.
        var refusals = 0
        /// Times in a row that a further connection received nothing.
        var rejections = 0
        /// Times that the number of connections was lowered for that.
        var lowerings = 0
        var restarts = 0
        /// Restarts since bytes were last joined to held ones.
        var discards = 0
        var expirations = 0
        /// Slow connections replaced in a row by others that were no better.
        var futileReplacements = 0
        /// A change was claimed and is being asked about.
        var isConfirming = false
        /// Requests in a row that asked about it.
        var confirmations = 0
        /// Changes that turned out not to be.
        var flips = 0
        var syncFailures = 0
    }

    /// - Parameters:
    ///   - firstID: ids of attempts count up from here; give each transfer of a process its own block.
    ///   - hostCeiling: connections the host is known to allow.
    ///   - hostUsual: connections that paid off at this host before.
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

    /// Handles one event and says what to do.
    package mutating func handle(_ event: TransferEvent, _ context: TransferContext) -> [TransferAction] {
        guard phase != .ended else { return [] }
        lead?.isNew = false
        var actions = follow(context)
        actions += act(on: event, context)
        if [.running, .publishing].contains(phase) || phase.isPreparing, let error = tooLarge() { return fail(error) }
        // Planning may find that nothing can be joined and start over, after which it plans once more.
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
            // Publishing syncs once more, notices failures of others, and ends with the journal closed.
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

    /// Takes over how far each attempt is.
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
                // Others have brought something.
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

    /// Tells the user once that bytes are joined to those of an earlier transfer: before the first one, the server may
    /// turn out to have another file.
    private mutating func announceResuming() -> [TransferAction] {
        guard announcesResuming else { return [] }
        announcesResuming = false
        let size = ByteCountText.format(resumedBytes)
        return [.notice(TransferNotice(.info, .resumed, "resuming: \(size) already downloaded"))]
    }

    /// The beginning, or the discovery, after the first answer gave the name, that an earlier transfer left something.
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
        // The checksums of a foreign journal come from the same hand as the bytes.
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
        // No request follows.
        return actions + (ledger.isWhole ? announceResuming() : [])
    }

    /// The first request was sent before there was this machine (`SmallFilePolicy`): it goes on as its own.
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
        // That took its time, which is not the server's.
        lastWrittenAt = context.now
        guard let id, attempts.change(id, { $0.lastProgressAt = context.now }) != nil else { return [] }
        return [.proceed(id)]
    }

    private mutating func tick(_ context: TransferContext) -> [TransferAction] {
        guard phase == .running else { return [] }
        return announceSilence(context) + replaceStalled(context)
    }

    // MARK: Ending

    /// Publishing is a few steps that are better finished than left to the next run.
    mutating func stop() -> [TransferAction] { phase == .publishing ? [] : drain(.end(.stopped)) }

    mutating func fail(_ error: TowlineError) -> [TransferAction] {
        drain(.end(.failed(error)))
    }

    /// Cancels every attempt (but a keeper) and goes on to `goal` once they are gone.
    mutating func drain(_ goal: Goal) -> [TransferAction] {
        // A stop or a failure while draining for something milder takes over; never the other way round.
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

    /// Goes on if nothing is left to wait for. Called again after each attempt's end.
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
        // A response that ended meanwhile was not what its digest says.
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
