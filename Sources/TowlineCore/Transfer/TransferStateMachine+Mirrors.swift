/// Several sources for one file (RFC 5854 §4.2.14, RFC 6249 §4). They share its segments; if one fails, another
/// continues.
///
/// The primary source defines the file. Bytes of a mirror are joined only with proof: a checksum of the whole file,
/// verified before publishing, or the same strong entity tag (RFC 6249 §6, coordinated between the servers). A mirror
/// with another file is left out. Its bytes are downloaded again if only the checksum shows the difference.
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

    /// The proof with which a mirror's bytes are joined to those of the primary source; `nil` without proof. Even a
    /// strong date proves nothing between two servers.
    var mirrorRung: ResponseQuestion.Rung? {
        guard hasStorage, !replacesPart, contentCoding == nil, !tally.isConfirming, ledger.completeLength != nil,
            let representation
        else { return nil }
        if !checksums.isEmpty, !terms.isStream { return .checksum }
        guard case .strong = representation.validator, representation.entityTag != nil else { return nil }
        return .ifRange
    }

    /// Returns the proof with which the bytes of a source are joined to the written ones; `nil` if they cannot be
    /// joined.
    func rung(at source: SourceID) -> ResponseQuestion.Rung? { source == .primary ? joinRung : mirrorRung }

    /// Returns the metadata that a response of a source has to match; `nil` before the first response.
    func known(at source: SourceID) -> Representation? {
        let isProvenByChecksum = source == .primary ? ignoresValidators : mirrorRung == .checksum
        guard isProvenByChecksum else { return representation }
        return Representation(completeLength: ledger.completeLength, mediaType: representation?.mediaType)
    }

    /// Returns the number of connections of other transfers to the host of the primary source, which defines the file.
    func otherConnections(_ context: TransferContext) -> Int {
        var own = context.progress.count
        if !mirrors.isEmpty {
            own = context.progress.count { attempts[$0.id]?.plan.url.origin ?? resolved.origin == resolved.origin }
        }
        return max(0, context.hostConnections - own)
    }

    // MARK: Choice of the source

    /// Returns whether the primary source may get a request now: it is not left out, and no wait applies.
    func mayAskPrimary(_ context: TransferContext) -> Bool {
        primary.leftOut == nil && max(notBefore ?? .zero, context.hostNotBefore ?? .zero) <= context.now
    }

    /// Returns whether a mirror may get a request for missing bytes now.
    func mayAskMirror(_ context: TransferContext) -> Bool {
        guard mirrorRung != nil, liveCount > 0 || !beginsAnew else { return false }
        return mirrors.indices.contains { room(at: $0, context) > 0 }
    }

    /// Returns the number of connections that the mirror at `index` may have now; 0 if it is left out or a wait
    /// applies. Connections of other downloads to its host count as well, as they do for the primary source.
    func room(at index: Int, _ context: TransferContext) -> Int {
        let mirror = mirrors[index]
        guard mirror.leftOut == nil, mirror.notBefore ?? .zero <= context.now else { return 0 }
        let ceiling = mirror.ceiling(at: context.now) ?? budget.hostShare
        guard context.mirrors.indices.contains(index) else { return ceiling }
        let host = context.mirrors[index]
        guard host.notBefore ?? .zero <= context.now else { return 0 }
        return min(ceiling, host.ceiling ?? .max, max(1, budget.hostShare - host.otherConnections))
    }

    /// `true` if the download can continue without the primary source, from a mirror that has sent a valid range.
    var mirrorsGoOn: Bool {
        !ledger.written.isEmpty && mirrorRung != nil && mirrors.contains { $0.leftOut == nil && $0.hasWorked }
    }

    func unusable(_ reason: String) -> TowlineError { TowlineError(.invalidResponse, "\(primary.url): \(reason)") }

    /// The hosts of the mirrors, in the order of the mirrors.
    package var mirrorOrigins: [HTTPURL.Origin] { mirrors.map(\.resolved.origin) }

    /// Returns the source for the next request: the one that is expected to deliver most to one more connection, if all
    /// connections to a source share its rate equally. A mirror with an unknown rate is tried first, with one
    /// connection. Returns `nil` if no source may get a request. `avoided` is not chosen.
    func nextSource(_ context: TransferContext, besides avoided: SourceID? = nil) -> SourceID? {
        let primaryIsFree = mayAskPrimary(context)
        guard !mirrors.isEmpty else { return primaryIsFree ? .primary : nil }
        var free: [(source: SourceID, room: Int)] = []
        // Without proof to join its bytes to the held bytes, the primary would have to start over.
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

    /// The earliest time at which a source with a wait may get a request; `nil` if no source has a wait.
    var nextTry: Duration? {
        guard !mirrors.isEmpty else { return notBefore }
        var times = mirrorRung == nil ? [] : mirrors.filter { $0.leftOut == nil }.compactMap(\.notBefore)
        if primary.leftOut == nil, let notBefore { times.append(notBefore) }
        return times.min()
    }

    /// Lowers the connection limit of a source that refused a connection while `count` others received bytes.
    ///
    /// - Parameters:
    ///   - sentAt: the time of the refused request.
    ///   - recovery: the time after which one more connection is tried.
    /// - Returns: the number of connections that the server allows, as far as is known.
    @discardableResult
    mutating func limitConnections(
        of source: SourceID = .primary, to count: Int, sentAt: Duration? = nil,
        recovery: Duration = .seconds(20), _ context: TransferContext
    ) -> Int {
        // With mirrors, fewer connections to one source do not mean fewer in total.
        guard mirrors.isEmpty else {
            self[source].limit(to: count, now: context.now)
            return count
        }
        return budget.refused(beside: count, now: context.now, sentAt: sentAt, recovery: recovery)
    }

    /// Starts a race for the last bytes: a second request for those of the slowest attempt, at another source if
    /// possible.
    ///
    /// If only a checksum proves the bytes, two sources never write the same range: wrong bytes, which are not hashed,
    /// could overwrite bytes that were already hashed. A slow mirror is then replaced instead of raced.
    mutating func race(
        _ slowest: SplitPolicy.Runner, _ free: SourceID, _ context: TransferContext
    ) -> [TransferAction] {
        let slow = attempts[slowest.id]?.plan.source ?? .primary
        let other = mirrors.isEmpty ? free : nextSource(context, besides: slow) ?? free
        guard mirrorRung == .checksum, slow != .primary || other != .primary else {
            return start(slowest.remaining, isRace: true, from: other, context)
        }
        if slow != .primary, other != slow {
            // Received bytes that are not written yet are requested again as well.
            let all = ledger.lease(of: slowest.id) ?? slowest.remaining
            return dismiss(slowest.id) + start(all, from: other, context)
        }
        guard slow == .primary, free == .primary else { return [] }
        return start(slowest.remaining, isRace: true, context)
    }

    // MARK: The primary fails

    /// Leaves out the primary source after an error. A mirror then defines the file, or continues the download. Without
    /// a usable mirror, the transfer fails.
    mutating func primaryFailed(_ error: TowlineError) -> [TransferAction] {
        guard primary.leftOut == nil else { return [] }
        primary.leftOut = error
        guard !mirrors.isEmpty else { return failSources(error) }
        // The primary can no longer confirm a change that it claimed.
        if !ledger.written.isEmpty { tally.isConfirming = false }
        guard beginsAnew || mirrorRung != nil, mirrors.contains(where: { $0.leftOut == nil }) else {
            return failSources(error)
        }
        tally.failures = 0
        notBefore = nil
        return [leftOutNotice(primary.url, error.message)]
    }

    /// Replaces a primary source that is left out or has to wait with a mirror that may get a request earlier. Called
    /// while no attempt runs and no bytes are written. Does nothing until all attempts at mirrors have ended, which
    /// refer to mirrors by index.
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

    /// Delays the next request to the primary source, longer after each failure.
    mutating func waitForPrimary(_ context: TransferContext) {
        primary.failures += 1
        notBefore = context.now + terms.retry.backoff.delay(failures: primary.failures, jitter: context.jitter)
    }

    mutating func promote(_ index: Int) -> [TransferAction] {
        swap(&primary, &mirrors[index])
        resolved = primary.resolved
        pendingRedirect = nil
        // The knowledge about ranges concerns the previous server.
        (ranges, dislikesIfRange, isWeakened, rangeDoubt) = (.unknown, false, false, RangeDoubt())
        // The knowledge about sharing its connections does as well.
        needsOwnConnection = true
        isSingle = terms.sequential || terms.isStream
        tally.refusals = 0
        notBefore = primary.notBefore
        return [.notice(TransferNotice(.info, .retrying, "switching to another source of the file: \(primary.url)"))]
    }

    // MARK: Results of requests to mirrors

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

    /// Closes an attempt whose mirror is busy, and reports the requested `wait` and the connection limit to all
    /// downloads from its host.
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

    /// Records the rate of an ended attempt, and the bytes that it received from a mirror.
    ///
    /// - Returns: the actions that discard bytes. An attempt that was dismissed may write until the cancellation takes
    ///   effect, over bytes that other attempts have written and that are already hashed.
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

    /// Delays the next request to a mirror that delivered no bytes. After too many failures, leaves out the mirror.
    /// `wait`: the wait that the server requested; `limit`: the maximum number of tries; `nil` without one.
    mutating func postpone(
        _ index: Int, _ reason: String, _ wait: Duration?, limit: Int? = nil, _ context: TransferContext
    ) -> [TransferAction] {
        // The connections to a mirror fail within moments of each other, which counts as one failure.
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
            // The connection budget belongs to the primary alone again.
            if let ceiling = primary.ceiling { budget.lower(to: ceiling, now: primary.ceilingEnd) }
            primary.ceiling = nil
            return actions
        }
        // If a mirror was only unreachable, its transient error shows that another run may succeed.
        return actions + failSources(mirrors.compactMap(\.leftOut).first { $0.code == .transient } ?? error)
    }

    private func leftOutNotice(_ url: HTTPURL, _ reason: String) -> TransferAction {
        let name = "\(url): "
        let shown = reason.hasPrefix(name) ? reason : name + reason
        return .notice(TransferNotice(.warning, .sourceLeftOut, "\(shown). Continuing without this source"))
    }
}
