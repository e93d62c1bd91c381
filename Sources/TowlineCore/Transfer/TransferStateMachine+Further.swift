/// Further connections. Each is an experiment: a running response is stopped only after another connection has
/// delivered proven bytes (DESIGN.md §5).
///
/// A lease is what an attempt is to bring by the plan. `Attempt.bound` is where its response ends if nobody stops it. A
/// further connection gets the end of a lease at once, and the response is stopped there with the first bytes that the
/// further connection has written. If none come, the range returns to the response, which was never interrupted.
extension TransferStateMachine {
    /// The reason why a further connection delivered no bytes.
    struct Refusal: Sendable {
        var reason: String
        /// The server allows no more connections, or answers differently over another one. Anything else may be a
        /// failure of that one request, and counts when it happens again.
        var isLimit = true
        /// The server wants fewer connections, which concerns all downloads from this host.
        var concernsHost = false
        /// The response does not answer the range.
        var isAboutRanges = false
        /// The same request without `If-Range` may be answered.
        var mayBeIfRange = false
        var retryAfter: Duration?

        init(_ reason: String, isLimit: Bool = true) { (self.reason, self.isLimit) = (reason, isLimit) }

        static let noData = "a further connection received no data"

        init(_ failure: TransportFailure, _ reason: String) {
            self.reason = reason
            isLimit = RetryPolicy.mayBeTooMany(failure.kind)
        }

        /// Returns `nil` for a verdict that is no refusal.
        init?(_ verdict: ResponseVerdict) {
            reason = "the server refused a further connection"
            switch verdict {
            case .partial, .redirect, .complete, .conditionRefused, .weakened: return nil
            case .whole, .empty: isAboutRanges = true
            case .rangeIgnored: (isAboutRanges, mayBeIfRange) = (true, true)
            case .askWithoutRange(let why), .rangeRefused(let why): (reason, isAboutRanges) = (why, true)
            case .changed(let why, _): (reason, isAboutRanges) = (why, true)
            case .linkExpired(let status, _): (reason, concernsHost) = ("\(reason) (status \(status))", true)
            case .transient(let why, let wait, let overloaded, _):
                (reason, isLimit, concernsHost, retryAfter) = (why, overloaded, overloaded, wait)
            case .webPage(let why): reason = why
            case .permanent(let error): if let status = error.status { reason += " (status \(status))" }
            }
        }
    }

    /// Until then a server may count a connection that was closed before its response had ended.
    private static let closingLife = Duration.seconds(10)
    /// So often in a row a refusal may be one of a server that counts such connections.
    private static let lateRefusals = 3
    /// Failures within that time are one.
    private static let sameFailure = Duration.seconds(1)
    /// How long a lower number of connections lasts, at first and at most.
    private static let recovery = Duration.seconds(20), longestRecovery = Duration.seconds(3600)

    /// Returns whether an attempt has delivered no byte yet and other responses run.
    func isExperiment(_ attempt: Attempt, _ context: TransferContext) -> Bool {
        let hasBrought = attempt.isAccepted && attempt.position > attempt.plan.lease.lowerBound
        guard attempt.plan.source == .primary, !hasBrought, !isBarren(context) else { return false }
        return live.contains { $0.id != attempt.id && $0.isAccepted && $0.plan.source == .primary }
    }

    /// Ends an experiment that failed. Its range returns to the running response, and fewer connections are used from
    /// here on. Running responses are not disturbed.
    mutating func giveBack(
        _ attempt: Attempt, _ refusal: Refusal, _ context: TransferContext
    ) -> [TransferAction] {
        var actions = dismiss(attempt.id)
        if refusal.mayBeIfRange, attempt.plan.question.rung == .ifRange, !dislikesIfRange {
            dislikesIfRange = true
            return actions
        }
        let isNew = lastRejectionAt.map { context.now - $0 >= Self.sameFailure } ?? true
        if isNew {
            lastRejectionAt = context.now
            tally.rejections += 1
        }
        if refusal.isAboutRanges {
            tally.refusals += 1
            if mirrors.isEmpty, tally.refusals >= (ranges == .works ? 4 : 2) { isSingle = true }
        }
        let wait = refusal.retryAfter
        let mayBeLate = lingering(context) > 0 && tally.rejections <= Self.lateRefusals
        guard refusal.isLimit || tally.rejections > 1, !mayBeLate else {
            let delay = terms.retry.backoff.delay(failures: tally.rejections, jitter: context.jitter)
            notBefore = max(notBefore ?? .zero, context.now + max(delay, wait ?? .zero))
            waitsForServer = wait != nil
            return actions
        }
        let working = max(1, workingAtPrimary(context))
        let recovery = min(Self.recovery * (1 << min(tally.lowerings, 10)), Self.longestRecovery)
        if isNew { tally.lowerings += 1 }
        limitConnections(to: working, recovery: max(recovery, wait ?? .zero), context)
        if refusal.concernsHost { actions.append(.report(.connections(working), of: attempt.plan.url.origin)) }
        guard isNew else { return actions }
        let text = "\(refusal.reason). Continuing with \(working) connection\(working == 1 ? "" : "s") to this server"
        return actions + [.notice(TransferNotice(.info, .limited, text))]
    }

    /// Notes a connection that was closed before its response had ended.
    mutating func noteClosing(_ attempt: Attempt, _ result: AttemptResult, _ context: TransferContext) {
        switch result {
        case .stopped, .cancelled:
            guard attempt.isAccepted else { return }
            closings.removeAll { context.now - $0 >= Self.closingLife }
            closings.append(context.now)
        default: break
        }
    }

    /// Connections that were closed so lately that the server may still count them.
    private func lingering(_ context: TransferContext) -> Int {
        closings.count { context.now - $0 < Self.closingLife } + attempts.count { $0.isDismissed && $0.isAccepted }
    }

    // MARK: Ranges

    /// Gives the end of a lease to another connection. The response continues until that connection delivers bytes.
    mutating func yield(_ id: AttemptID, from offset: Int64, to source: SourceID) -> [TransferAction] {
        // If only a checksum proves the bytes, two sources never write the same range.
        if mirrorRung == .checksum, attempts[id]?.plan.source != source { return stop(id, at: offset) }
        ledger.shrink(id, to: offset)
        return []
    }

    /// Ends a response at an offset.
    mutating func stop(_ id: AttemptID, at end: Int64) -> [TransferAction] {
        setBound(of: id, to: end)
        wastedInCuts += cutCost(attempts[id]?.recent.rate, isLimited: false)
        return [.shrink(id, end: end)]
    }

    /// The range that an attempt writes unless it is stopped: from the beginning of its lease to the end of its response.
    package func response(of id: AttemptID) -> ByteRange? {
        guard let lease = ledger.lease(of: id), let attempt = attempts[id] else { return nil }
        return ByteRange(lease.lowerBound, max(lease.upperBound, min(attempt.bound, ledger.whole.upperBound)))
    }

    /// Notes where the response of an attempt ends.
    mutating func setBound(of id: AttemptID, to end: Int64) {
        attempts.change(id) { $0.bound = min($0.bound, end) }
        if end < ledger.lease(of: id)?.upperBound ?? 0 { ledger.shrink(id, to: end) }
    }

    /// Gives each running response what it has still to send and nobody else brings.
    mutating func reclaim(_ context: TransferContext) {
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace && !attempt.isDisbelieved {
            ledger.extend(attempt.id, to: attempt.bound, across: repeatable(by: attempt, context))
        }
    }

    /// The number of written bytes that a response may repeat to reach missing bytes behind them. If the server has just
    /// refused further connections, repeated bytes cost less than the end of the only response.
    private func repeatable(by attempt: Attempt, _ context: TransferContext) -> Int64 {
        guard live.count == 1, tally.rejections > 0, !mayAskPrimary(context) || budget.target <= 1 || isSingle else {
            return 0
        }
        return max(1 << 20, (ledger.completeLength ?? 0) / 20)
    }

    /// Stops responses where another connection has begun to bring their bytes, not before they are nearly there: until
    /// then they can take the rest back.
    mutating func stopRelieved() -> [TransferAction] {
        var actions = noteDeliveries()
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace {
            guard let end = ledger.lease(of: attempt.id)?.upperBound, end < min(attempt.bound, ledger.whole.upperBound)
            else { continue }
            let soon = max(Self.underWay, Int64((attempt.recent.rate ?? 0) / 4))
            guard attempt.position + soon >= end, isDelivered(end, besides: attempt.id) else { continue }
            actions += stop(attempt.id, at: end)
        }
        return actions
    }

    /// Notes which further connections have written their first bytes.
    private mutating func noteDeliveries() -> [TransferAction] {
        var actions: [TransferAction] = []
        for newcomer in live where newcomer.isAccepted && !newcomer.hasDelivered {
            let start = newcomer.plan.lease.lowerBound
            guard newcomer.position > start else { continue }
            attempts.change(newcomer.id) { $0.hasDelivered = true }
            tally.rejections = 0
            guard !newcomer.plan.isRace else { continue }
            // Another was there long before, and all of that would come once more.
            let isLate = live.contains { other in
                other.id != newcomer.id && !other.plan.isRace && other.plan.lease.lowerBound < start
                    && other.position > start + Self.underWay && other.position < other.bound
            }
            if isLate { actions += dismiss(newcomer.id) }
        }
        return actions
    }

    /// Returns whether a byte is written, or is to come from an attempt that has shown that it brings some.
    private func isDelivered(_ offset: Int64, besides id: AttemptID) -> Bool {
        ledger.written.range(holding: offset) != nil
            || live.contains { other in
                other.id != id && other.hasDelivered && !other.plan.isRace
                    && ledger.lease(of: other.id)?.contains(offset) == true
            }
    }

    // MARK: Sizes

    /// The least that a request asks for: an eighth of a second's worth, and so much that the round trip that a request
    /// costs does not show.
    private var leastPiece: Int64 {
        let rate = (estimator.rate ?? 0) / Double(max(budget.target, liveCount, 1))
        let seconds = max(0.125, 6 * (roundTrip ?? 0))
        return max(256 << 10, Int64(min(rate * seconds, 1e15)))
    }

    /// The share of each connection in the bytes that are not written.
    private var share: Int64 {
        let connections = Int64(max(budget.ceiling, 1))
        return ((ledger.completeLength ?? 0) - ledger.written.count + connections - 1) / connections
    }

    /// The beginning of a gap, as long as one request asks for, so that all connections end together. A response then
    /// ends at its segment's end. A response that is cut wastes the bytes under way.
    mutating func piece(of gap: ByteRange) -> ByteRange {
        let front = atFront(gap)
        guard front == gap, wanted.isEmpty, gap.upperBound < .max, budget.target > 1 else { return noted(front) }
        let size = max(share, leastPiece)
        guard gap.count >= size + leastPiece else { return gap }
        return noted(ByteRange(gap.lowerBound, gap.lowerBound + size))
    }

    private mutating func noted(_ piece: ByteRange) -> ByteRange {
        lastPieceEnd = piece.upperBound
        return piece
    }

    /// The part of the segment that would end last which a free connection takes over.
    mutating func cut(
        _ runners: [SplitPolicy.Runner], _ policy: SplitPolicy, _ context: TransferContext
    ) -> SplitPolicy.Cut? {
        guard let cut = frontCut(runners) ?? policy.cut(runners),
            let victim = runners.first(where: { $0.id == cut.victim })
        else { return nil }
        // The first cut is that of the response that was asked for everything.
        let cost = cutCost(victim.rate, isLimited: context.isLimited)
        let most = max((ledger.completeLength ?? 0) * 3 / 100, Self.underWay)
        guard wastedInCuts == 0 || wastedInCuts + cost <= most else { return nil }
        guard wanted.isEmpty, front == nil, victim.remaining.count >= 4 * leastPiece else { return cut }
        let late = Int64((victim.rate ?? 0) * 2 * policy.delay(until: victim.rate ?? 0))
        let own = min(
            max(share, leastPiece, late),
            cut.segment.lowerBound - victim.remaining.lowerBound)
        let rest = ByteRange(victim.remaining.lowerBound + own, victim.remaining.upperBound)
        return SplitPolicy.Cut(victim: cut.victim, segment: piece(of: rest))
    }

    /// So many bytes of a response at that rate are on their way when it is cut.
    private func cutCost(_ rate: Double?, isLimited: Bool) -> Int64 {
        // The buffers on both sides are full then.
        if isLimited { return 2 * Self.underWay }
        return Int64(min(max((rate ?? 0) * max(0.05, 2 * (roundTrip ?? 0)), 16_384), 4_194_304))
    }

    // MARK: Races

    /// Starts a race for the slowest remainder that nobody races yet.
    mutating func raceSlowest(
        _ runners: [SplitPolicy.Runner], _ policy: SplitPolicy, _ source: SourceID, _ context: TransferContext
    ) -> [TransferAction] {
        guard live.count > 1 || budget.target > 1 else { return [] }
        let allowed = max(0, (ledger.completeLength ?? 0) / 100 - wastedInRaces)
        let free = runners.filter { !isRaced($0, policy, context) }
        guard let slowest = policy.race(free, budget: allowed, typicalRate: typicalRate) else { return [] }
        wastedInRaces += slowest.remaining.count
        return race(slowest, source, context)
    }

    /// Returns whether a connection races for a remainder and is not slow itself.
    private func isRaced(_ runner: SplitPolicy.Runner, _ policy: SplitPolicy, _ context: TransferContext) -> Bool {
        live.contains { rival in
            guard rival.plan.isRace, rival.plan.lease.intersection(runner.remaining) != nil else { return false }
            let isYoung = (context.now - rival.startedAt).seconds < 0.2 + 4 * policy.roundTrip
            return isYoung || rival.recent.rate ?? 0 >= (typicalRate ?? 0) / 4
        }
    }
}
