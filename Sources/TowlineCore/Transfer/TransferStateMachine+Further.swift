/// The use of further connections, which are added to the first one. Each is an experiment: a running response is
/// stopped only after another connection has delivered proven bytes (docs/internals/segments.md).
///
/// A lease is the range that an attempt is to deliver. `Attempt.bound` is the offset at which its response ends unless
/// it is stopped. A further connection takes over the end of a lease at once. The response waits there for a moment, so
/// that no byte arrives twice, and is stopped if others deliver all of its rest. Otherwise it continues, and takes back
/// the bytes that no other attempt delivers.
extension TransferStateMachine {
    /// The reason why a further connection, one beside the first, delivered no bytes.
    struct Refusal: Sendable {
        var reason: String
        /// `true` if the server allows no more connections, or responds differently over another one. Any other failure
        /// may concern only that request, and counts when it happens again.
        var isLimit = true
        /// `true` if the server wants fewer connections, which concerns all downloads from this host.
        var concernsHost = false
        /// `true` if the response does not contain the requested range.
        var isAboutRanges = false
        /// `true` if the same request without `If-Range` may succeed.
        var mayBeIfRange = false
        var retryAfter: Duration?

        init(_ reason: String, isLimit: Bool = true) { (self.reason, self.isLimit) = (reason, isLimit) }

        static let noData = "a further connection received no data"

        init(_ failure: TransportFailure, _ reason: String) {
            self.reason = reason
            isLimit = RetryPolicy.mayBeTooMany(failure.kind)
        }

        /// Creates a refusal from the verdict on a response; `nil` if the verdict does not refuse the connection.
        init?(_ verdict: ResponseVerdict) {
            reason = "the server refused a further connection"
            switch verdict {
            case .partial, .redirect, .complete, .conditionRefused, .weakened, .changed, .notModified: return nil
            case .whole, .empty: isAboutRanges = true
            case .rangeIgnored: (isAboutRanges, mayBeIfRange) = (true, true)
            case .askWithoutRange(let why), .rangeRefused(let why): (reason, isAboutRanges) = (why, true)
            case .linkExpired(let status, _): (reason, concernsHost) = ("\(reason) (status \(status))", true)
            case .transient(let why, let wait, let overloaded, _):
                (reason, isLimit, concernsHost, retryAfter) = (why, overloaded, overloaded, wait)
            case .webPage(let why): reason = why
            case .permanent(let error): if let status = error.status { reason += " (status \(status))" }
            }
        }
    }

    /// The time after which a connection limit that a refusal lowered is raised again, at first and at most.
    private static let recovery = Duration.seconds(20), longestRecovery = Duration.seconds(3600)

    /// Returns whether an attempt at the primary source has delivered no byte yet while other responses of the source
    /// run. Its failure then only means fewer connections.
    func isExperiment(_ attempt: Attempt, _ context: TransferContext) -> Bool {
        let hasBrought = attempt.isAccepted && attempt.position > attempt.plan.lease.lowerBound
        guard attempt.plan.source == .primary, !hasBrought, !hasNoRecentProgress(context) else { return false }
        return live.contains { $0.id != attempt.id && $0.isAccepted && $0.plan.source == .primary }
    }

    /// Returns whether the first bytes of an additional connection differ only because it reached another version of
    /// the file: the response that delivered the written bytes still runs, and belongs to a single version.
    func isOfAnotherVersion(_ attempt: Attempt, _ context: TransferContext) -> Bool {
        isExperiment(attempt, context)
            && live.contains { other in
                other.isAccepted && other.plan.source == .primary
                    && other.plan.lease.lowerBound <= attempt.plan.seam.lowerBound
                    && attempt.plan.seam.upperBound <= other.position
            }
    }

    /// Ends an attempt on an additional connection that was refused. Its range returns to the running response, and
    /// fewer connections are used from now on. Running responses are not disturbed.
    mutating func giveBack(
        _ attempt: Attempt, _ refusal: Refusal, _ context: TransferContext
    ) -> [TransferAction] {
        var actions = dismiss(attempt.id)
        if refusal.mayBeIfRange, attempt.plan.question.rung == .ifRange, !dislikesIfRange {
            dislikesIfRange = true
            return actions
        }
        // Several requests that were sent together may all fail, which counts once.
        let isNew = lastRejectionAt.map { attempt.startedAt >= $0 } ?? true
        if isNew {
            lastRejectionAt = context.now
            tally.rejections += 1
        }
        if refusal.isAboutRanges {
            tally.refusals += 1
            if mirrors.isEmpty, tally.refusals >= (ranges == .works ? 4 : 2) { isSingle = true }
        }
        let wait = refusal.retryAfter
        guard refusal.isLimit || tally.rejections > 1 else {
            let delay = terms.retry.backoff.delay(failures: tally.rejections, jitter: context.jitter)
            notBefore = max(notBefore ?? .zero, context.now + max(delay, wait ?? .zero))
            waitsForServer = wait != nil
            return actions
        }
        // Other requests sent at the same time may be accepted: the last response shows how many the server allows.
        let waiting = live.count { $0.plan.source == .primary && !$0.isAccepted }
        let working = max(1, workingAtPrimary(context)) + waiting
        let recovery = min(Self.recovery * (1 << min(tally.lowerings, 10)), Self.longestRecovery)
        // A server that still counts closed connections allows more.
        let allowed = limitConnections(
            to: working, sentAt: attempt.startedAt, recovery: max(recovery, wait ?? .zero), context)
        guard allowed == working else { return actions }
        if isNew { tally.lowerings += 1 }
        if refusal.concernsHost { actions.append(.report(.connections(working), of: attempt.plan.url.origin)) }
        guard waiting == 0 else { return actions }
        let text = "\(refusal.reason). Continuing with \(working) connection\(working == 1 ? "" : "s") to this server"
        return actions + [.notice(TransferNotice(.info, .limited, text))]
    }

    // MARK: Ranges

    /// Reassigns the bytes from `offset` to the end of an attempt's range, for another connection. The attempt's
    /// response pauses there for a moment (`hold`).
    mutating func yield(_ id: AttemptID, from offset: Int64, to source: SourceID) -> [TransferAction] {
        // If only a checksum proves the bytes, two sources never write the same range.
        if mirrorRung == .checksum, attempts[id]?.plan.source != source { return stop(id, at: offset) }
        ledger.shrink(id, to: offset)
        let wait = min(max(Self.shortestHold, .seconds(4 * (roundTrip ?? 0))), Self.longestHold)
        attempts.change(id) { $0.holdUntil = now + wait }
        return []
    }

    /// The shortest and longest pause of a response at the bytes of another connection, which has to connect, send a
    /// request and deliver.
    private static let shortestHold = Duration.milliseconds(250), longestHold = Duration.seconds(1)
    /// The additional pause while another connection delivers the next bytes, and only the bytes after them are
    /// missing.
    private static let patientHold = Duration.seconds(2)

    /// Returns the actions that make responses pause before bytes that another connection may deliver. A response whose
    /// range was extended again no longer pauses.
    mutating func hold(_ context: TransferContext) -> [TransferAction] {
        live.compactMap { attempt in
            guard let end = ledger.lease(of: attempt.id)?.upperBound else { return nil }
            let isShared = end < min(attempt.bound, ledger.whole.upperBound) && attempt.position <= end
            let isNextBrought = isShared && isRelieved(attempt, of: ByteRange(end, end + 1), context)
            let until = attempt.holdUntil + (isNextBrought ? Self.patientHold : .zero)
            let waits = isShared && until > context.now
            // A waiting response takes no bytes, which is not a stall.
            if waits, attempt.position + Self.largestPiece >= end {
                attempts.change(attempt.id) { $0.lastProgressAt = now }
            }
            let place = waits ? end : .max
            guard place != attempt.heldAt || isNextBrought != attempt.isHeldLonger else { return nil }
            attempts.change(attempt.id) { ($0.heldAt, $0.isHeldLonger) = (place, isNextBrought) }
            return .hold(attempt.id, at: place, for: max(.zero, until - context.now))
        }
    }

    /// Makes the response of an attempt end at an offset.
    mutating func stop(_ id: AttemptID, at end: Int64) -> [TransferAction] {
        setBound(of: id, to: end)
        return [.shrink(id, end: end)]
    }

    /// Returns the range that an attempt writes unless it is stopped: from the next byte of its assigned range to the
    /// end of its response; `nil` if no range is assigned to it.
    package func response(of id: AttemptID) -> ByteRange? {
        guard let lease = ledger.lease(of: id), let attempt = attempts[id] else { return nil }
        return ByteRange(lease.lowerBound, max(lease.upperBound, min(attempt.bound, ledger.whole.upperBound)))
    }

    /// Records the offset at which the response of an attempt ends.
    mutating func setBound(of id: AttemptID, to end: Int64) {
        attempts.change(id) { $0.bound = min($0.bound, end) }
        if end < ledger.lease(of: id)?.upperBound ?? 0 { ledger.shrink(id, to: end) }
    }

    /// Extends the assigned range of each running response over bytes that it has still to send and that no other
    /// attempt delivers.
    mutating func reclaim() {
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace && !attempt.isDisbelieved {
            ledger.extend(attempt.id, to: attempt.bound)
        }
    }

    /// The distance in bytes before its pause offset at which a pausing response may be stopped. A response receives
    /// data in blocks up to this size, and a block that crosses the offset waits as a whole.
    private static let largestPiece: Int64 = 2 << 20
    /// The maximum ratio between the rate of a response and that of a slower connection that may replace its rest.
    private static let tooSlow = 8.0

    /// Stops responses whose remaining bytes other attempts deliver, but not before they have almost reached these
    /// bytes: until then, a response can take the rest back.
    mutating func stopRelieved(_ context: TransferContext) -> [TransferAction] {
        var actions = noteDeliveries()
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace {
            let bound = min(attempt.bound, ledger.whole.upperBound)
            guard let end = ledger.lease(of: attempt.id)?.upperBound, end < bound else { continue }
            let piece = attempt.heldAt == end ? Self.largestPiece : Self.underWay
            let soon = max(piece, Int64((attempt.recent.rate ?? 0) / 4))
            guard attempt.position + soon >= end, isRelieved(attempt, of: ByteRange(end, bound), context) else {
                continue
            }
            actions += stop(attempt.id, at: end)
        }
        return actions
    }

    /// Records which further connections have written their first bytes, and cancels those that began too late: another
    /// response has already passed their first byte.
    private mutating func noteDeliveries() -> [TransferAction] {
        var actions: [TransferAction] = []
        for newcomer in live where newcomer.isAccepted && !newcomer.hasDelivered {
            let start = newcomer.plan.lease.lowerBound
            guard newcomer.position > start else { continue }
            attempts.change(newcomer.id) { $0.hasDelivered = true }
            if newcomer.plan.isFurther { tally.rejections = 0 }
            guard !newcomer.plan.isRace else { continue }
            // Another response passed this offset long before, so all these bytes would arrive twice.
            let isLate = live.contains { other in
                other.id != newcomer.id && !other.plan.isRace && other.plan.lease.lowerBound < start
                    && other.position > start + Self.underWay && other.position < other.bound
            }
            if isLate { actions += dismiss(newcomer.id) }
        }
        return actions
    }

    /// Returns whether `attempt` may stop before a range: each byte is written, or assigned to an attempt that has
    /// delivered bytes and is not far slower. A response is not stopped before a range that was refused to others, or
    /// that they deliver too late.
    private func isRelieved(_ attempt: Attempt, of range: ByteRange, _ context: TransferContext) -> Bool {
        var provided = ledger.written
        for other in live where other.id != attempt.id && other.hasDelivered && !other.plan.isRace {
            guard let lease = ledger.lease(of: other.id), isWorking(other, context.now) else { continue }
            let brought = other.position - other.plan.lease.lowerBound
            let mine = attempt.recent.rate ?? 0
            let isFast = other.recent.rate.map { $0 * Self.tooSlow >= mine }
            guard isFast ?? (brought >= min(Self.underWay, Int64(mine / 4))) else { continue }
            provided.insert(lease)
        }
        return provided.contains(range)
    }

    // MARK: Delay before responses are shared

    /// The round-trip time in seconds below which a server is near: the throughput of a near server shows at once.
    private static let near = 0.02
    /// The time during which the first response of a near server is watched before its range is divided.
    private static let firstLook = Duration.milliseconds(20)

    /// Returns whether it is too early to divide the ranges of responses: bytes that the server already sent on a
    /// response are lost if it is cut. The first response of a near server may end soon, other responses may end soon
    /// once one has, and a rate limit may soon hold bytes back.
    func isTooYoung(_ context: TransferContext) -> Bool {
        let accepted = live.filter(\.isAccepted)
        if accepted.isEmpty || accepted.contains(where: { $0.recent.rate != nil }) { return false }
        return hasCompleted || context.isLimited || firstLookAt.map { context.now < $0 } ?? false
    }

    /// The time when the first response of a near server has been watched long enough; `nil` if it is not watched.
    var firstLookAt: Duration? {
        // A round trip of zero means that the clock did not advance, so nothing was measured.
        guard let roundTrip, roundTrip > 0, roundTrip < Self.near, !hasCompleted else { return nil }
        return live.compactMap(\.acceptedAt).min().map { $0 + Self.firstLook }
    }

    /// Returns whether a response is expected to end so soon, at the rate of its first bytes, that dividing its range
    /// gains nothing.
    func endsSoon(_ attempt: Attempt) -> Bool {
        guard let start = attempt.acceptedAt, now > start, attempt.received > 0 else { return false }
        let seconds = (now - start).seconds
        let lease = ledger.lease(of: attempt.id) ?? ByteRange(0, 0)
        return Double(attempt.notArrived(of: lease).count) / Double(attempt.received) * seconds < SplitPolicy.worthwhile
    }

    // MARK: Races

    /// Starts a race: a second request for the bytes that the slowest attempt still has to deliver. Returns no actions
    /// if every remainder is raced already, or if races would waste more than 1 % of the file.
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

    /// Returns whether another request for the missing bytes of an attempt (`runner`) runs and is not slow.
    private func isRaced(_ runner: SplitPolicy.Runner, _ policy: SplitPolicy, _ context: TransferContext) -> Bool {
        live.contains { rival in
            guard rival.plan.isRace, rival.plan.lease.intersection(runner.remaining) != nil else { return false }
            let isYoung = (context.now - rival.startedAt).seconds < 0.2 + 4 * policy.roundTrip
            return isYoung || rival.recent.rate ?? 0 >= (typicalRate ?? 0) / 4
        }
    }
}
