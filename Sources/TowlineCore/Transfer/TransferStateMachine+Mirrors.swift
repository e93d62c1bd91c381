/// Several places for one file (RFC 5854 §4.2.14, RFC 6249 §4): they share its segments, and where one fails another goes on.
///
/// What the primary says is the file; a mirror's bytes are joined to it only with proof: a checksum of the whole, which is
/// verified before publishing, or the same strong entity tag (RFC 6249 §6, coordinated between the servers). A mirror
/// that has another file is left out, and what it brought is fetched anew where only the checksum shows it.
extension TransferStateMachine {
    subscript(source: SourceID) -> FileSource {
        get {
            switch source {
            case .primary: primary
            case .mirror(let index): mirrors[index]
            }
        }
        set {
            switch source {
            case .primary: primary = newValue
            case .mirror(let index): mirrors[index] = newValue
            }
        }
    }

    /// By which rung a mirror's bytes are joined; `nil`: by none. A date proves nothing between two servers, however strong.
    var mirrorRung: ResponseQuestion.Rung? {
        guard hasStorage, !replacesPart, contentCoding == nil, !tally.isConfirming, ledger.completeLength != nil,
            let representation
        else { return nil }
        if !checksums.isEmpty, !terms.isStream { return .checksum }
        guard case .strong = representation.validator, representation.entityTag != nil else { return nil }
        return .ifRange
    }

    /// By which rung the bytes of a source are joined.
    func rung(at source: SourceID) -> ResponseQuestion.Rung? { source == .primary ? joinRung : mirrorRung }

    /// What a source's answer has to agree with.
    func known(at source: SourceID) -> Representation? {
        let isProvenByChecksum = source == .primary ? ignoresValidators : mirrorRung == .checksum
        guard isProvenByChecksum else { return representation }
        return Representation(completeLength: ledger.completeLength, mediaType: representation?.mediaType)
    }

    /// Connections of other transfers to the primary's host.
    func otherConnections(_ context: TransferContext) -> Int {
        var own = context.progress.count
        if !mirrors.isEmpty {
            own = context.progress.count { attempts[$0.id]?.plan.url.origin ?? resolved.origin == resolved.origin }
        }
        return max(0, context.hostConnections - own)
    }

    // MARK: Which one

    /// Whether the primary may be asked now.
    func mayAskPrimary(_ context: TransferContext) -> Bool {
        primary.leftOut == nil && max(notBefore ?? .zero, context.hostNotBefore ?? .zero) <= context.now
    }

    /// Whether a mirror may be asked now for what is missing.
    func mayAskMirror(_ context: TransferContext) -> Bool {
        guard mirrorRung != nil, liveCount > 0 || !beginsAnew else { return false }
        return mirrors.indices.contains { room(at: $0, context) > 0 }
    }

    /// How many connections a mirror may have now: those of other downloads to its host count, as the primary's do.
    func room(at index: Int, _ context: TransferContext) -> Int {
        let mirror = mirrors[index]
        guard mirror.leftOut == nil, mirror.notBefore ?? .zero <= context.now else { return 0 }
        let ceiling = mirror.ceiling(at: context.now) ?? budget.hostShare
        guard context.mirrors.indices.contains(index) else { return ceiling }
        let host = context.mirrors[index]
        guard host.notBefore ?? .zero <= context.now else { return 0 }
        return min(ceiling, host.ceiling ?? .max, max(1, budget.hostShare - host.otherConnections))
    }

    /// What is held can go on without the primary, at a mirror that has shown so.
    var mirrorsGoOn: Bool {
        !ledger.written.isEmpty && mirrorRung != nil && mirrors.contains { $0.leftOut == nil && $0.hasWorked }
    }

    func unusable(_ reason: String) -> TowlineError { TowlineError(.invalidResponse, "\(primary.url): \(reason)") }

    /// The hosts of the mirrors, in their order.
    package var mirrorOrigins: [HTTPURL.Origin] { mirrors.map(\.resolved.origin) }

    /// Where the next request goes: to whom it is expected to bring most, were all of a source's connections equal; one that
    /// is not known yet is tried first, by one connection. `nil`: to nobody.
    func nextSource(_ context: TransferContext, besides avoided: SourceID? = nil) -> SourceID? {
        let primaryIsFree = mayAskPrimary(context)
        guard !mirrors.isEmpty else { return primaryIsFree ? .primary : nil }
        var free: [(source: SourceID, room: Int)] = []
        // Where nothing joins its bytes to those held it would have to begin anew.
        if primaryIsFree, joinRung != nil || beginsAnew {
            free.append((.primary, min(primary.ceiling(at: context.now) ?? .max, context.hostCeiling ?? .max)))
        }
        if mirrorRung != nil { free += mirrors.indices.map { (.mirror($0), room(at: $0, context)) } }
        var best: (source: SourceID, share: Double, connections: Int)?
        for (source, room) in free where source != avoided {
            let own = live.filter { $0.plan.source == source }
            let origin = source == .primary ? resolved.origin : self[source].resolved.origin
            guard live.count(where: { $0.plan.url.origin == origin }) < room else { continue }
            let current = own.compactMap { $0.isAccepted ? $0.recent.rate : nil }.max()
            let rate = current ?? self[source].rate
            if rate == nil, !self[source].hasWorked, !own.isEmpty, source != .primary { continue }
            let share = (rate ?? .infinity) / Double(own.count + 1)
            if let best, (best.share, -best.connections) >= (share, -own.count) { continue }
            best = (source, share, own.count)
        }
        return best?.source
    }

    /// When one of the sources may be asked that have to be waited for now.
    var nextTry: Duration? {
        guard !mirrors.isEmpty else { return notBefore }
        var times = mirrorRung == nil ? [] : mirrors.filter { $0.leftOut == nil }.compactMap(\.notBefore)
        if primary.leftOut == nil, let notBefore { times.append(notBefore) }
        return times.min()
    }

    /// A server refused a connection while `count` others received bytes.
    ///
    /// - Parameter recovery: after this time one more is tried.
    /// - Returns: the number of connections that it allows, as far as is known.
    @discardableResult
    mutating func limitConnections(
        of source: SourceID = .primary, to count: Int, sentAt: Duration? = nil,
        recovery: Duration = .seconds(20), _ context: TransferContext
    ) -> Int {
        // Where there are others to ask, fewer here are no fewer in all.
        guard mirrors.isEmpty else {
            self[source].limit(to: count, now: context.now)
            return count
        }
        return budget.refused(beside: count, now: context.now, sentAt: sentAt, recovery: recovery)
    }

    /// A race for the last bytes, at another source where there is one.
    ///
    /// Where only a checksum will tell whose bytes are right, two sources never write the same ones: what was hashed could
    /// be overwritten with wrong ones that nobody hashes. A mirror that is slow then is not raced, but relieved.
    mutating func race(
        _ slowest: SplitPolicy.Runner, _ free: SourceID, _ context: TransferContext
    ) -> [TransferAction] {
        let slow = attempts[slowest.id]?.plan.source ?? .primary
        let other = mirrors.isEmpty ? free : nextSource(context, besides: slow) ?? free
        guard mirrorRung == .checksum, slow != .primary || other != .primary else {
            return start(slowest.remaining, isRace: true, from: other, context)
        }
        if slow != .primary, other != slow {
            // What came of it and is not written does not count any more either.
            let all = ledger.lease(of: slowest.id) ?? slowest.remaining
            return dismiss(slowest.id) + start(all, from: other, context)
        }
        guard slow == .primary, free == .primary else { return [] }
        return start(slowest.remaining, isRace: true, context)
    }

    // MARK: The primary fails

    /// The primary is of no use: a mirror says what the file is, or goes on with it.
    mutating func primaryFailed(_ error: TowlineError) -> [TransferAction] {
        guard primary.leftOut == nil else { return [] }
        primary.leftOut = error
        guard !mirrors.isEmpty else { return failSources(error) }
        // What the primary claimed of a change it cannot say any more.
        if !ledger.written.isEmpty { tally.isConfirming = false }
        guard beginsAnew || mirrorRung != nil, mirrors.contains(where: { $0.leftOut == nil }) else {
            return failSources(error)
        }
        tally.failures = 0
        notBefore = nil
        return [leftOutNotice(primary.url, error.message)]
    }

    /// Nothing runs, nothing is held, and the primary is asked no more, or later: a mirror that may be asked earlier takes
    /// its place, once none is known by its old one.
    mutating func askAnother(_ context: TransferContext) -> [TransferAction] {
        guard attempts.allSatisfy({ $0.plan.source == .primary }) else { return [] }
        primary.notBefore = max(notBefore ?? .zero, context.hostNotBefore ?? .zero)
        let candidates = mirrors.indices.filter { mirrors[$0].leftOut == nil }
        func order(_ index: Int) -> (Duration, Int) {
            (max(context.now, mirrors[index].notBefore ?? .zero), mirrors[index].failures)
        }
        guard let next = candidates.min(by: { order($0) < order($1) }) else {
            return primary.leftOut.map { failSources($0) } ?? []
        }
        let isEarlier = mirrors[next].notBefore ?? .zero < primary.notBefore ?? .zero
        return isEarlier || primary.leftOut != nil ? promote(next) : []
    }

    /// The primary is left alone for a while, the longer the more often nothing came of it.
    mutating func waitForPrimary(_ context: TransferContext) {
        primary.failures += 1
        notBefore = context.now + terms.retry.backoff.delay(failures: primary.failures, jitter: context.jitter)
    }

    mutating func promote(_ index: Int) -> [TransferAction] {
        swap(&primary, &mirrors[index])
        resolved = primary.resolved
        lead = nil
        // What was found of ranges was of the other server.
        (ranges, dislikesIfRange, isWeakened, rangeDoubt) = (.unknown, false, false, RangeDoubt())
        // And so is what is known of sharing its connections.
        needsOwnConnection = true
        isSingle = terms.sequential || terms.isStream
        tally.refusals = 0
        notBefore = primary.notBefore
        return [.notice(TransferNotice(.info, .retrying, "switching to another source of the file: \(primary.url)"))]
    }

    // MARK: What comes of a mirror

    mutating func mirrorAnswered(
        _ attempt: Attempt, _ index: Int, _ verdict: ResponseVerdict, _ context: TransferContext
    ) -> [TransferAction] {
        let (id, plan) = (attempt.id, attempt.plan)
        switch verdict {
        case .partial(let range, let facts):
            attempts.change(id) {
                $0.acceptedAt = now
                $0.digestField = facts.contentDigests.first?.field
            }
            setBound(of: id, to: range.upperBound)
            mirrors[index].resolved = plan.url
            mirrors[index].hasWorked = true
            isConfirmed = true
            if ranges == .unknown { ranges = .works }
            return []
        case .redirect(let location, _, _):
            return mirrorRung == nil ? dismiss(id) : redirected(id, location, nil, nil, context)
        case .transient(let reason, let retryAfter, let overloaded, let status):
            let actions = mirrorBusy(plan, retryAfter, overloaded, isOfHost: status > 403, context)
            if let error = retryAfter.flatMap({ tooLong($0, plan.url) }) {
                return actions + leaveOut(index, error)
            }
            return actions + postpone(index, reason, retryAfter, context)
        case .linkExpired(let status, _) where plan.url != mirrors[index].url:
            mirrors[index].resolved = mirrors[index].url
            let reason =
                "the link that this mirror redirects to no longer works (status \(status)), so the mirror is asked for"
                + " a new link"
            return dismiss(id) + postpone(index, reason, nil, context)
        case .linkExpired(_, let error), .permanent(let error): return dismiss(id) + leaveOut(index, error.message)
        case .changed(let reason, let facts):
            let isSameLength =
                facts.map { $0.representation.completeLength ?? ledger.completeLength }
                .map { $0 == ledger.completeLength } ?? (reason == Representation.tagChanged)
            guard mirrorRung == .ifRange, isSameLength else {
                mirrors[index].sample = .differs
                return dismiss(id) + leaveOut(index, reason)
            }
            let text =
                "this mirror sends a different ETag, so it may have a different file and is not used"
                + " (--checksum allows such mirrors)"
            return dismiss(id) + leaveOut(index, text)
        case .askWithoutRange(let reason), .rangeRefused(let reason), .weakened(let reason), .webPage(let reason),
            .conditionRefused(let reason):
            return dismiss(id) + leaveOut(index, reason)
        case .whole, .empty, .complete, .rangeIgnored, .notModified:
            let reason =
                "this mirror does not support range requests and cannot send parts of the file, so it is not used"
            return dismiss(id) + leaveOut(index, reason)
        }
    }

    /// Closes an attempt that a mirror answered with "later".
    private mutating func mirrorBusy(
        _ plan: AttemptPlan, _ wait: Duration?, _ overloaded: Bool, isOfHost: Bool, _ context: TransferContext
    ) -> [TransferAction] {
        let others = attempts.count { !$0.isDismissed && $0.isAccepted && $0.plan.source == plan.source }
        var actions = dismiss(plan.id)
        if isOfHost, let wait { actions.append(.report(.leaveAlone(wait), of: plan.url.origin)) }
        if overloaded, others > 0 {
            limitConnections(of: plan.source, to: others, context)
            actions.append(.report(.connections(others), of: plan.url.origin))
        }
        return actions
    }

    /// What an attempt that has ended says of whom it asked.
    ///
    /// - Returns: what to take back: what it wrote before it heard that it was given up may lie over bytes that others
    ///   had brought by then, and that were hashed.
    mutating func noteSource(of attempt: Attempt) -> [TransferAction] {
        guard !mirrors.isEmpty else { return [] }
        if !attempt.plan.isComparison, let rate = attempt.estimator.rate { self[attempt.plan.source].rate = rate }
        let lower = attempt.plan.lease.lowerBound
        guard attempt.plan.source != .primary, attempt.position > lower else { return [] }
        let trusted = attempt.isAccepted ? min(attempt.position, attempt.dismissedAt ?? .max) : lower
        if trusted > lower, !attempt.isDisbelieved {
            self[attempt.plan.source].brought.insert(ByteRange(lower, trusted))
        }
        guard attempt.isDisbelieved || !attempt.isAccepted || attempt.plan.question.rung == .checksum else { return [] }
        var actions: [TransferAction] = []
        if trusted < attempt.position {
            let late = ledger.written.intersection(ByteRange(trusted, attempt.position))
            for range in late.ranges {
                giveUp(range)
                actions.append(.withdraw(range))
            }
            if !late.isEmpty { contentGeneration += 1 }
        }
        guard attempt.isDisbelieved || !attempt.isAccepted else { return actions }
        return actions + ledger.written.gaps(in: ByteRange(lower, attempt.position)).map { .withdraw($0) }
    }

    mutating func mirrorEnded(
        _ attempt: Attempt, _ index: Int, _ result: AttemptResult, _ context: TransferContext
    ) -> [TransferAction] {
        let hasBrought = attempt.isAccepted && attempt.position > attempt.plan.lease.lowerBound
        if hasBrought { mirrors[index].failures = 0 }
        switch result {
        case .complete where attempt.plan.isComparison, .stopped where attempt.plan.isComparison:
            return compared(attempt, index)
        case .overlapDiffers: return seamDiffers(attempt)
        case .failed(let failure):
            let reason = TerminalSafeText.make(failure.message, width: 200)
            if hasBrought { return [] }
            guard case .transient(let limit) = RetryPolicy.classify(failure.kind) else {
                return leaveOut(index, reason)
            }
            return postpone(index, reason, nil, limit: limit, context)
        case .complete:
            guard !hasBrought, attempt.isAccepted, !goesOnWithoutOverlap(after: attempt) else { return [] }
            return postpone(index, Self.endedEarly, nil, context)
        case .stopped, .cancelled, .sinkFailed, .digestDiffers, .needsOwnConnection: return []
        }
    }

    /// Nothing came of a mirror: it is asked again later, and after too many times not at all.
    mutating func postpone(
        _ index: Int, _ reason: String, _ wait: Duration?, limit: Int? = nil, _ context: TransferContext
    ) -> [TransferAction] {
        // All its connections fail within moments: that is one failure, not one for each.
        if let until = mirrors[index].notBefore, until > context.now {
            if let wait { mirrors[index].notBefore = max(until, context.now + wait) }
            return []
        }
        mirrors[index].failures += 1
        let failures = mirrors[index].failures
        if terms.retry.isExhausted(failures: failures, limit: limit) { return leaveOut(index, reason, .transient) }
        let delay = max(terms.retry.backoff.delay(failures: failures, jitter: context.jitter), wait ?? .zero)
        mirrors[index].notBefore = context.now + delay
        if liveCount == 0 { waitReason = reason }
        guard failures == 1 else { return [] }
        let text = "\(mirrors[index].url): \(reason). Retrying this source later; continuing with the other sources"
        return [.notice(TransferNotice(.info, .retrying, text))]
    }

    private mutating func leaveOut(_ index: Int, _ error: TowlineError) -> [TransferAction] {
        leaveOut(index, error.message, error.code)
    }

    mutating func leaveOut(
        _ index: Int, _ reason: String, _ code: TowlineError.Code = .invalidResponse
    ) -> [TransferAction] {
        guard mirrors[index].leftOut == nil else { return [] }
        mirrors[index].leftOut = TowlineError(code, "\(mirrors[index].url): \(reason)")
        var actions = [leftOutNotice(mirrors[index].url, reason)]
        for attempt in live where attempt.plan.source == .mirror(index) && !attempt.isAccepted {
            actions += dismiss(attempt.id)
        }
        guard mirrors.allSatisfy({ $0.leftOut != nil }) else { return actions }
        guard let error = primary.leftOut else {
            // The primary alone has the budget to itself again.
            if let ceiling = primary.ceiling { budget.lower(to: ceiling, now: primary.ceilingEnd) }
            primary.ceiling = nil
            return actions
        }
        // What was only away is worth another run.
        return actions + failSources(mirrors.compactMap(\.leftOut).first { $0.code == .transient } ?? error)
    }

    private func leftOutNotice(_ url: HTTPURL, _ reason: String) -> TransferAction {
        let name = "\(url): "
        let shown = reason.hasPrefix(name) ? reason : name + reason
        return .notice(TransferNotice(.warning, .sourceLeftOut, "\(shown). Continuing without this source"))
    }
}
