/// The choice of the next attempts: their sources, their bytes, and the proof that joins these to the written bytes.
extension TransferStateMachine {
    /// The number of bytes before each resume point that are requested again and compared with the written ones.
    static let overlap: Int64 = 16 << 10
    /// The same number if only a weak validator, the length and the bytes themselves show that the bytes belong
    /// together.
    static let weakOverlap: Int64 = 64 << 10

    /// The number of connections, beyond those that increase the rate, that may request the last bytes a second time.
    private static let lastRivals = 4

    /// The minimum number of bytes in transit on a connection that delivers bytes, assumed before it is stopped.
    static let underWay: Int64 = 256 << 10

    /// `true` if flipped bits are detected only by a digest of each response, because no checksum of the file is known.
    /// Responses then are not stopped early.
    var needsWholeAnswers: Bool { carriesDigests && checksums.isEmpty }

    /// `true` if a running response has written bytes that only its own digest checks (RFC 9530 §2). Once every byte is
    /// written, the transfer waits until the response ends and is compared, or is closed because it stalls.
    private var awaitsDigests: Bool {
        needsWholeAnswers
            && live.contains { $0.isAccepted && $0.position > $0.plan.lease.lowerBound }
    }

    /// Starts the attempts that should run now. Idempotent.
    mutating func plan(_ context: TransferContext) -> [TransferAction] {
        if hasStorage, !replacesPart, ledger.isWhole { return awaitsDigests ? [] : drain(.finish) }
        if let ceiling = context.hostCeiling, ceiling < budget.ceiling, mirrors.isEmpty {
            budget.lower(to: ceiling, now: context.now, recovery: nil)
        }
        var actions = relieve(context)
        actions += planNext(context)
        return actions + hold(context)
    }

    /// Stops responses whose remaining bytes further connections have begun to deliver, and returns bytes that no
    /// attempt delivers to the responses that contain them.
    private mutating func relieve(_ context: TransferContext) -> [TransferAction] {
        let actions = stopRelieved(context) + dismissBeaten(context)
        reclaim()
        return actions
    }

    private mutating func planNext(_ context: TransferContext) -> [TransferAction] {
        let running = liveCount
        let asksPrimary = mayAskPrimary(context)
        if running == 0, beginsAnew, !asksPrimary {
            let another = askAnother(context)
            if !another.isEmpty || primary.leftOut != nil { return another }
        }
        guard asksPrimary || mayAskMirror(context) else {
            waitsForTurn = false
            if running == 0, let host = context.hostNotBefore, host > (notBefore ?? .zero) {
                waitReason = "the server asked for a pause before the next request (Retry-After)"
                waitsForServer = true
                notBefore = host
            }
            let asks = running == 0 && waitsForServer && mirrors.isEmpty
            if asks, let notBefore, let error = tooLong(notBefore - context.now, primary.url) {
                return primaryFailed(error)
            }
            return []
        }
        if running == 0 {
            // A dismissed attempt may still write to a stream.
            if terms.isStream, !attempts.isEmpty { return [] }
            // More transfers may share connections than may have their own, and one that shares may later need its own.
            let lacksConnection = !context.mayConnect && sharing(context) == .none
            waitsForTurn = pendingRedirect?.isNew ?? false || !context.hasSlot || lacksConnection
            if asksPrimary { notBefore = nil }
            guard !waitsForTurn else { return [] }
            return startSole(context)
        }
        guard isConfirmed, !isSingle, mayBeSegmented, !rangeDoubt.asksPlain else { return [] }
        if tally.isConfirming, !live.contains(where: { $0.plan.isConfirmation }) {
            guard asksPrimary, let gap = ledger.missing.first else { return [] }
            return start(gap, context)
        }
        let served = compareMirrors(context) + serveReaders(context) + shed() + tellFinding(context)
        // The downloads from a host share the limit of one download. Each has at least one connection.
        let room = budget.hostShare - otherConnections(context) - liveCount
        // If the server has not shown that it sends ranges, or refused one, one further range is requested at a time.
        let isRefused = tally.rejections > 0 || rangeDoubt.refusals > 0
        let isTrial = ranges == .claimed || isRefused && mirrors.isEmpty
        let most = budget.room(now: context.now)
        let target = isTrial ? min(most, live.count(where: \.isAccepted) + 1) : most
        let grown = grow(by: min(target - liveCount, room), context)
        guard grown.isEmpty, room > 0 else { return served + grown }
        return served + raceLast(context)
    }

    /// Cancels attempts whose assigned bytes others have written, as after a race. If such an attempt would have
    /// received bytes that differ from the written ones, later responses show the difference as well.
    private mutating func dismissBeaten(_ context: TransferContext) -> [TransferAction] {
        guard !needsWholeAnswers else { return [] }
        let beaten = attempts.filter { attempt in
            guard let range = ledger.lease(of: attempt.id), !range.isEmpty else { return false }
            return !attempt.isDismissed && ledger.written.contains(range)
        }
        return beaten.flatMap { attempt in
            // A server that responds only after another response has ended does not serve two connections.
            guard isExperiment(attempt, context), !attempt.plan.isRace else { return dismiss(attempt.id) }
            return giveBack(attempt, Refusal(Refusal.noData, isLimit: false), context)
        }
    }

    /// The maximum remaining time in seconds of a superfluous attempt that may finish, because ending it would waste
    /// bytes.
    private static let soonDone = 10.0

    /// Ends the newest connections if they did not increase the rate, each after the bytes in transit, which arrive
    /// anyway.
    private mutating func shed() -> [TransferAction] {
        guard hasSurplus else { return [] }
        hasSurplus = false
        guard !needsWholeAnswers else { return [] }
        let youngest = live.sorted { $0.plan.id.value > $1.plan.id.value }
        return youngest.prefix(max(0, live.count - budget.target)).flatMap { attempt in
            guard attempt.isAccepted, let range = ledger.lease(of: attempt.plan.id) else {
                return dismiss(attempt.plan.id)
            }
            let rate = attempt.recent.rate ?? 0
            guard Double(range.count) > rate * Self.soonDone else { return [] }
            let end = range.lowerBound + max(Self.underWay, Int64(rate / 4))
            return end < range.upperBound ? stop(attempt.plan.id, at: end) : []
        }
    }

    /// Reports to the host's downloads how many connections increase the rate. Only a download that is alone at the
    /// host can measure this.
    private mutating func tellFinding(_ context: TransferContext) -> [TransferAction] {
        guard let finding = budget.finding, finding != toldFinding, mirrors.isEmpty,
            otherConnections(context) == 0
        else { return [] }
        toldFinding = finding
        return [.report(.paysOff(finding), of: resolved.origin)]
    }

    private mutating func grow(by count: Int, _ context: TransferContext) -> [TransferAction] {
        var actions: [TransferAction] = []
        for _ in 0..<max(0, count) {
            let next = nextSegment(context)
            guard !next.isEmpty else { break }
            actions += next
        }
        return settled(actions)
    }

    /// Adjusts requests in `actions` that are not sent yet to their shortened ranges: a response that ends with its
    /// range needs no stop, and its connection can serve the next request.
    private mutating func settled(_ actions: [TransferAction]) -> [TransferAction] {
        var unsent: Set<AttemptID> = []
        for case .start(let plan) in actions { unsent.insert(plan.id) }
        return actions.compactMap { action in
            switch action {
            case .shrink(let id, _) where unsent.contains(id): return nil
            case .start(var plan):
                guard let lease = ledger.lease(of: plan.id), lease != plan.lease else { return action }
                plan.lease = lease
                plan.question = question(
                    lease, overlap: plan.overlap, isFirst: false, from: plan.source, isOurs: plan.sendsCredentials)
                plan.fields = fields(plan.question, isOurs: plan.sendsCredentials)
                attempts.change(plan.id) { ($0.plan, $0.bound) = (plan, lease.upperBound) }
                return .start(plan)
            default: return action
            }
        }
    }

    /// Starts an attempt for bytes that no attempt has; else for half of the assigned range that would end last; else a
    /// second request for the bytes of the slowest attempt.
    private mutating func nextSegment(_ context: TransferContext) -> [TransferAction] {
        guard let source = nextSource(context) else { return [] }
        let policy = splitPolicy
        if let gap = nextGap() { return start(atFront(gap), from: source, context) }
        let runners = splittable(context)
        if let cut = frontCut(runners) ?? policy.cut(runners) {
            return yield(cut.victim, from: cut.segment.lowerBound, to: source)
                + start(cut.segment, from: source, context)
        }
        return raceSlowest(runners, policy, source, context)
    }

    private var splitPolicy: SplitPolicy {
        var policy = SplitPolicy(roundTrip: roundTrip ?? 0.05)
        if !budget.isFixed { policy.minimumSegment = SplitPolicy.thriftySegment(at: typicalRate) }
        return policy
    }

    /// Requests the bytes of slow connections a second time at the end of the file, over a few more connections than
    /// usual.
    private mutating func raceLast(_ context: TransferContext) -> [TransferAction] {
        guard typicalRate != nil, ranges == .works, ledger.missing.isEmpty,
            liveCount < min(budget.ceiling, budget.target + Self.lastRivals), let source = nextSource(context)
        else { return [] }
        return raceSlowest(splittable(context), splitPolicy, source, context)
    }

    /// Returns whether the user's rate limit holds bytes back. Another connection would add no throughput, and bytes
    /// that the server already sent on a response are lost if it is cut.
    private func isHeldBack(_ context: TransferContext) -> Bool {
        lastHeldBackAt.map { context.now - $0 < Self.holdMemory } ?? false
    }

    /// The time after which a request without a response leaves its range to connections without work.
    private static let longHead = Duration.seconds(2)

    /// The time that a rate limit counts as active after it held bytes back: a limit lets bytes through in bursts.
    private static let holdMemory = Duration.seconds(1)

    /// Returns the attempts whose assigned ranges may be divided. A response that only its own digest checks is not
    /// cut.
    private func splittable(_ context: TransferContext) -> [SplitPolicy.Runner] {
        if needsWholeAnswers || isHeldBack(context) { return [] }
        if isTooYoung(context) { return [] }
        // Before the first attempt ends, a rate mainly shows how long its connection exists, so shares are equal.
        let isFirstRound = typicalRate == nil
        return live.compactMap { attempt in
            guard let lease = ledger.leases[attempt.plan.id], !lease.isRace, !lease.range.isEmpty,
                lease.range.upperBound < .max, !(isFirstRound && endsSoon(attempt))
            else { return nil }
            // A request without a response after that time may never get one.
            let isSilent = !attempt.isAccepted && context.now - attempt.startedAt >= Self.longHead
            let rate = attempt.isAccepted ? attempt.recent.rate : isSilent ? 1 : nil
            return SplitPolicy.Runner(
                id: attempt.plan.id, remaining: attempt.notArrived(of: lease.range), rate: isFirstRound ? nil : rate,
                silence: attempt.isAccepted || isSilent ? (context.now - attempt.lastProgressAt).seconds : 0)
        }
    }

    // MARK: The proof ladder

    /// `true` if two connections may write at once: the proof that joins their bytes does not depend on bytes written
    /// before.
    var mayBeSegmented: Bool {
        guard ranges == .works || ranges == .claimed, contentCoding == nil, ledger.completeLength != nil else {
            return false
        }
        switch joinRung {
        case .ifRange, .repeatedValidator, .checksum: return true
        default: return false
        }
    }

    /// The strongest proof that joins bytes of the primary source to the written ones; `nil`: none, and no resuming.
    var joinRung: ResponseQuestion.Rung? {
        guard let representation, ranges != .broken, contentCoding == nil else { return nil }
        if ignoresValidators { return .checksum }
        switch representation.validator {
        case .strong where !isWeakened: return dislikesIfRange ? .repeatedValidator : .ifRange
        case .strong where !checksums.isEmpty, .weak where !checksums.isEmpty: return .checksum
        case .strong, .weak:
            let seam = ledger.missing.first?.lowerBound ?? 0
            let holdsEnough = ledger.writtenBefore(seam) >= Self.weakOverlap
            if representation.completeLength != nil, holdsEnough { return .weakWithOverlap }
        case .none where !checksums.isEmpty: return .checksum
        case .none: break
        }
        return terms.unsafeResume && representation.completeLength != nil ? .unsafe : nil
    }

    // MARK: Starting

    /// `true` if there are no written bytes that another request could continue.
    package var beginsAnew: Bool { ledger.written.isEmpty || replacesPart || representation == nil }

    /// `true` if the next request may share a connection with other transfers, because the file may be small.
    package var mayShare: Bool { !needsOwnConnection && !isSingle }

    /// Returns how the next request shares its connection with other transfers; `.none` if it has one of its own.
    private func sharing(_ context: TransferContext) -> ConnectionSharing {
        guard beginsAnew, mayShare else { return .none }
        return context.sharing.limited(ceiling: context.hostCeiling, connections: context.hostConnections)
    }

    /// Starts the only attempt: for the first missing bytes, or for the whole file if no bytes are written.
    private mutating func startSole(_ context: TransferContext) -> [TransferAction] {
        // While no attempt ran, no bytes could be written, which is not a stall.
        lastWrittenAt = context.now
        if beginsAnew {
            let sharing = sharing(context)
            if hasStorage { replacesPart = true }
            forgetRepresentation()
            giveUpContent()
            ledger = RangeLedger()
            isConfirmed = isConfirmed && ranges == .works
            return startFirst(sharing: sharing, context)
        }
        if let source = nextSource(context), source != .primary, let gap = ledger.missing.first {
            return start(gap, from: source, context)
        }
        guard joinRung != nil else {
            if mirrorsGoOn { return [] }
            return startOver(because: lackOfProof, isChange: false)
        }
        guard let gap = ledger.missing.first else { return [] }
        return start(gap, context)
    }

    /// Creates and registers an attempt for the bytes `lease`, and returns the action that starts it.
    mutating func start(
        _ lease: ByteRange, isRace: Bool = false, from source: SourceID = .primary, at url: HTTPURL? = nil,
        chain: [HTTPURL] = [], sharing: ConnectionSharing = .none, _ context: TransferContext
    ) -> [TransferAction] {
        let id = AttemptID(nextID)
        nextID += 1
        let isFirst = representation == nil
        let isPlain = source == .primary && rangeDoubt.takePlain(beginsAnew: beginsAnew)
        let overlap = isFirst || isPlain ? 0 : overlap(before: lease, from: source)
        // The bytes to compare with are no longer held.
        guard !lease.isEmpty || overlap > 0 else { return [] }
        let target = url ?? (source == .primary ? resolved : self[source].resolved)
        // A third party may have named the source. Requests that follow from its URL carry no secret of the user.
        let isLedByUser = self[source].url.origin == terms.source.origin
        let isOurs = target.origin == terms.source.origin && isLedByUser
        let isDowngraded = target.scheme == .http && (hasLeftTLS || terms.source.scheme == .https)
        var asked = question(
            lease, overlap: overlap, isFirst: isFirst, from: source, isOurs: isOurs, isPlain: isPlain,
            atMost: sharing != .none ? SharingPolicy.smallLimit : nil)
        asked.nameOfURL = SafeFileName.ofURL(target, redirectedFrom: self[source].url, named: asked.nameOfURL)
        // A request that repeats a refused one omits every field that a server could reject.
        if isFirst, !isPlain, source == .primary { asked.condition = existing?.condition(at: target) }
        let plan = AttemptPlan(
            id: id, url: target, fields: fields(asked, isOurs: isOurs), sendsCredentials: isOurs,
            sendsNetrc: isOurs || isLedByUser && !isDowngraded, sendsStoredCookies: isLedByUser, question: asked,
            lease: lease, overlap: overlap, joinsDirectly: !isFirst && hasStorage && !replacesPart && !isPlain,
            chain: chain, isConfirmation: tally.isConfirming, isRace: isRace, isFurther: liveCount > 0,
            source: source, sharing: sharing)
        attempts.append(Attempt(plan: plan, startedAt: context.now, lastProgressAt: context.now))
        ledger.lease(lease, to: id, isRace: isRace)
        return [.start(plan)]
    }

    func overlap(before lease: ByteRange, from source: SourceID) -> Int64 {
        // If the length is unknown, only the bytes after the written ones are requested, to find the end.
        if ledger.completeLength == nil, isConfirmed { return 0 }
        let isWeak = (rung(at: source) ?? .unsafe) > .repeatedValidator || isDoubtful
        // A server that sends so few bytes at once would send nothing but the overlap.
        if self[source].givesOverlapAlone, !needsOverlap(at: source), !lease.isEmpty { return 0 }
        return min(ledger.writtenBefore(lease.lowerBound), isWeak ? Self.weakOverlap : Self.overlap)
    }

    /// Returns whether only a comparison of the bytes before the resume point can prove that a source's bytes fit.
    private func needsOverlap(at source: SourceID) -> Bool {
        switch rung(at: source) {
        case .ifRange, .repeatedValidator: isDoubtful
        // A checksum covers the whole file, even a copied part file. For a stream it comes too late.
        case .checksum: terms.isStream
        case .weakWithOverlap, .unsafe, .nothingToJoin, nil: true
        }
    }

    /// Returns whether the next request omits the overlap, the repeated bytes before the resume point: a complete
    /// response contained nothing else, and other proof suffices. Called when `attempt` ended without a new byte.
    mutating func goesOnWithoutOverlap(after attempt: Attempt) -> Bool {
        let source = attempt.plan.source
        guard attempt.plan.overlap > 0, !self[source].givesOverlapAlone, !needsOverlap(at: source) else { return false }
        self[source].givesOverlapAlone = true
        return true
    }

    private func question(
        _ lease: ByteRange, overlap: Int64, isFirst: Bool, from source: SourceID, isOurs: Bool,
        isPlain: Bool = false, atMost: Int64? = nil
    ) -> ResponseQuestion {
        let lower = lease.lowerBound - overlap
        let asked: ResponseQuestion.Asked
        if isPlain || isFirst && (ranges == .broken || terms.sequential) {
            asked = .whole
        } else if let atMost {
            asked = .range(ByteRange(lower, lower + atMost))
        } else {
            asked = lease.upperBound == .max ? .from(lower) : .range(ByteRange(lower, lease.upperBound))
        }
        var question = ResponseQuestion(
            asked: asked, rung: isFirst || isPlain ? .nothingToJoin : rung(at: source) ?? .nothingToJoin,
            known: known(at: source),
            holdsAllBeforeAsked: ledger.written.contains(ByteRange(0, lease.lowerBound)),
            workedBefore: isConfirmed,
            expectsWebPage: terms.acceptsWebPages || representation?.mediaType.map(WebPage.isPage(mediaType:)) ?? false,
            source: self[source].url, nameOfURL: self[source].nameOfURL)
        question.asksMirror = source != .primary
        question.replacesBytes = held != .nothing
        question.label = label
        question.earlierMediaType = representation?.mediaType ?? replacedMediaType
        question.adopt(terms)
        if source == .primary { question.linked = linked }
        question.sendsUser = terms.hasUser && isOurs
        return question
    }

    private func fields(_ question: ResponseQuestion, isOurs: Bool) -> HTTPFields {
        let proof: String? =
            if question.rung == .ifRange, case .strong(let value) = representation?.validator { value } else { nil }
        return RequestTerms.fields(
            question.asked, own: isOurs ? terms.userFields : HTTPFields(), confirms: tally.isConfirming, proof: proof,
            condition: question.condition)
    }
}
