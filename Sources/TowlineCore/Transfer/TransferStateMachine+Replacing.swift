/// The replacement of stalled and slow connections (docs/internals/slow-connections.md).
extension TransferStateMachine {
    /// The last connection that was replaced for being slow.
    struct Replacement: Sendable {
        /// The rate of the connection, in bytes per second.
        var rate: Double
        /// The time of the replacement.
        var time: Duration
    }

    /// Replaces connections that stall, and those that are far slower than a new one is expected to be.
    mutating func replaceStalled(_ context: TransferContext) -> [TransferAction] {
        var actions: [TransferAction] = []
        for attempt in attempts where !attempt.isDismissed {
            let id = attempt.id
            guard let limit = patience(for: attempt, context), context.now - attempt.lastProgressAt >= limit else {
                continue
            }
            if attempt.plan.source == .primary, isExperiment(attempt, context) {
                actions += giveBack(attempt, Refusal(Refusal.noData), context)
                continue
            }
            // The other streams on a shared connection have stalled as well.
            actions += dismiss(id) + stopSharing(attempt.plan)
            let reason = "no data received from the server for \(DurationText.inSentence(limit))"
            if case .mirror(let index) = attempt.plan.source {
                if attempt.position > attempt.plan.lease.lowerBound { mirrors[index].failures = 0 }
                actions += postpone(index, reason, nil, context)
            } else if isFruitless(attempt, context) {
                actions += failedAttempt(reason, nil, .transient, context)
            } else {
                actions.append(.notice(TransferNotice(.info, .retrying, "\(reason). Opening a new connection")))
            }
            if case .running = phase { continue }
            return actions
        }
        return actions + replaceSlowest(context)
    }

    /// Gives the next request its own connection if this one was shared, and for a while each request of the host's
    /// other downloads as well.
    mutating func stopSharing(_ plan: AttemptPlan) -> [TransferAction] {
        guard plan.sharesConnection else { return [] }
        needsOwnConnection = true
        return [.report(.sharingFailed, of: plan.url.origin)]
    }

    /// Returns whether an attempt that ends now counts as a failure: it wrote no byte, no attempt did for a stall
    /// timeout, and no failure was counted in that time. Otherwise, connections that stall one after another, each
    /// replaced while another may still recover, would never use up the tries. An outage counts once, not once for each
    /// connection. A stall on a shared connection says nothing about this file, whose next request has a connection of
    /// its own.
    private func isFruitless(_ attempt: Attempt, _ context: TransferContext) -> Bool {
        guard attempt.position <= attempt.plan.lease.lowerBound, !attempt.plan.sharesConnection else { return false }
        let isNew = lastFailureAt.map { context.now - $0 >= terms.stallTimeout } ?? true
        return isNew && hasNoRecentProgress(context)
    }

    /// Returns whether no attempt has written a byte for the stall timeout, the user's limit for the time without a
    /// byte.
    func hasNoRecentProgress(_ context: TransferContext) -> Bool { context.now - lastWrittenAt >= terms.stallTimeout }

    // MARK: Slow connections

    private mutating func replaceSlowest(_ context: TransferContext) -> [TransferAction] {
        // Unless ranges are known to work, a new connection would begin at the first byte.
        guard ranges == .works || ranges == .claimed, joinRung != nil,
            mayAskPrimary(context) || mayAskMirror(context)
        else { return [] }
        let policy = ReplacementPolicy(stallTimeout: terms.stallTimeout, futile: weighReplacement(context))
        guard let slowest = overdue(policy, context) else { return [] }
        tally.futileReplacements += 1
        lastReplacement = Replacement(rate: slowest.estimator.rate ?? 0, time: context.now)
        let actions = replace(slowest, context)
        let rate = ByteCountText.format(Int64(slowest.estimator.rate ?? 0))
        guard isFruitless(slowest, context), slowest.plan.source == .primary else {
            let text = "a connection to the server is slow (\(rate)/s). Opening a new connection"
            return actions + [.notice(TransferNotice(.info, .retrying, text))]
        }
        return actions + failedAttempt("the connection to the server is too slow (\(rate)/s)", nil, .transient, context)
    }

    /// Starts a connection for the rest of a slow one, which continues until the new one delivers bytes.
    private mutating func replace(_ slow: Attempt, _ context: TransferContext) -> [TransferAction] {
        // Two attempts never write to a stream at once, nor do two sources if only a checksum proves the bytes.
        guard !terms.isStream, mirrors.isEmpty, slow.position > slow.plan.lease.lowerBound, !needsWholeAnswers,
            let rest = ledger.lease(of: slow.id), !rest.isEmpty
        else { return dismiss(slow.id) }
        ledger.shrink(slow.id, to: rest.lowerBound)
        return start(rest, context)
    }

    /// Records for each attempt since when it is slow.
    ///
    /// - Returns: the slowest of the attempts that were slow for longer than `policy` allows; `nil` without such an
    ///   attempt.
    private mutating func overdue(_ policy: ReplacementPolicy, _ context: TransferContext) -> Attempt? {
        let rated = live.filter { $0.isAccepted && !$0.plan.isRace && $0.estimator.rate != nil }
        var slowest: Attempt?
        for attempt in rated {
            let id = attempt.plan.id
            let rate = attempt.estimator.rate ?? 0
            let peers = rated.filter { $0.plan.id != id }.compactMap(\.estimator.rate)
            let range = ledger.lease(of: id)
            let runner = ReplacementPolicy.Runner(
                id: id, rate: rate, best: attempt.bestRate,
                remaining: range.flatMap { $0.upperBound < .max ? $0.count : nil })
            guard let patience = policy.patience(for: runner, peers: peers, typicalRate: typicalRate) else {
                attempts.change(id) { $0.slowSince = nil }
                continue
            }
            let since = attempt.slowSince ?? context.now
            attempts.change(id) { $0.slowSince = since }
            // If no other connection receives bytes either, the stall timeout handles the silence.
            if peers.isEmpty, context.now - attempt.lastProgressAt > .seconds(2) { continue }
            if context.now - since >= patience, rate < slowest?.estimator.rate ?? .infinity { slowest = attempt }
        }
        return slowest
    }

    /// Evaluates the last replacement of a slow connection. If the new one was faster, the count of futile ones is
    /// reset.
    ///
    /// - Returns: the number of replacements in a row that were not faster. Each one delays the next replacement more.
    private mutating func weighReplacement(_ context: TransferContext) -> Int {
        guard let last = lastReplacement else { return tally.futileReplacements }
        let policy = ReplacementPolicy(stallTimeout: terms.stallTimeout, futile: 0)
        // Bytes in socket buffers arrive at once and say nothing about the rate: three seconds suffice.
        let paid = live.contains { attempt in
            attempt.isAccepted && attempt.startedAt >= last.time && context.now - attempt.startedAt > .seconds(3)
                && policy.isBetter(attempt.estimator.rate ?? 0, than: last.rate)
        }
        if paid {
            tally.futileReplacements = 0
            lastReplacement = nil
        }
        return tally.futileReplacements
    }
}
