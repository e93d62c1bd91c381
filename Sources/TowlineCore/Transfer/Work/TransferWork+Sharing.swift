/// The division of ranges among responses. A response is stopped only after another connection has delivered bytes
/// that are proven to be of the same version of the file (docs/internals/segments.md).
///
/// A lease is the range that an attempt is to deliver. `RunningAttempt.bound` is the offset at which its response ends
/// unless it is stopped. A further connection takes over the end of a lease immediately. The response waits there for a
/// moment, and is stopped if others deliver all of its rest. Otherwise it takes back the bytes that no other attempt
/// delivers.
extension TransferWork {
    /// The shortest and longest pause of a response at the bytes of another connection, which has to connect, send a
    /// request and deliver.
    static let shortestHold = Duration.milliseconds(250), longestHold = Duration.seconds(1)

    /// The additional pause while another connection delivers the next bytes, and only the bytes after them are
    /// missing.
    static let patientHold = Duration.seconds(2)

    /// Returns the actions that make responses pause before bytes that another connection may deliver. A response whose
    /// range was extended again no longer pauses.
    mutating func hold(_ context: TransferContext) -> [TransferAction] {
        live.compactMap { attempt in
            guard let end = ledger.lease(of: attempt.id)?.upperBound else { return nil }
            let isShared = end < min(attempt.bound, ledger.whole.upperBound) && attempt.position <= end
            let isNextBrought = isShared && isRelieved(attempt, of: ByteRange(end, end + 1), context)
            let until = attempt.pause.until + (isNextBrought ? Self.patientHold : .zero)
            let waits = isShared && until > context.now
            // A waiting response takes no bytes, which is not a stall.
            if waits, attempt.position + Self.largestPiece >= end {
                attempts.change(attempt.id) { $0.lastProgressAt = context.now }
            }
            let place = waits ? end : .max
            guard place != attempt.pause.offset || isNextBrought != attempt.pause.isExtended else { return nil }
            attempts.change(attempt.id) { ($0.pause.offset, $0.pause.isExtended) = (place, isNextBrought) }
            return .hold(attempt.id, at: place, for: max(.zero, until - context.now))
        }
    }

    /// The distance in bytes before its pause offset at which a pausing response may be stopped. A response receives
    /// data in blocks up to this size, and a block that crosses the offset waits as a whole.
    static let largestPiece: Int64 = 2 << 20

    /// The maximum ratio between the rate of a response and that of a slower connection that may replace its rest.
    static let tooSlow = 8.0

    /// The minimum number of bytes in transit on a connection that delivers bytes, assumed before it is stopped.
    static let underWay: Int64 = 256 << 10

    /// Stops responses whose remaining bytes other attempts deliver, but not before they have almost reached these
    /// bytes: until then, a response can take the rest back.
    mutating func stopRelieved(_ context: TransferContext) -> [TransferAction] {
        var actions = noteDeliveries()
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace {
            let bound = min(attempt.bound, ledger.whole.upperBound)
            guard let end = ledger.lease(of: attempt.id)?.upperBound, end < bound else { continue }
            let piece = attempt.pause.offset == end ? Self.largestPiece : Self.underWay
            let soon = max(piece, Int64((attempt.rates.recent.rate ?? 0) / 4))
            guard attempt.position + soon >= end, isRelieved(attempt, of: ByteRange(end, bound), context) else {
                continue
            }
            actions += stop(attempt.id, at: end)
        }
        return actions
    }

    /// Records which further connections have written their first bytes, and cancels those that began too late: another
    /// response has already passed their first byte.
    mutating func noteDeliveries() -> [TransferAction] {
        var actions: [TransferAction] = []
        for newcomer in live where newcomer.isAccepted && !newcomer.hasDelivered {
            let start = newcomer.plan.lease.lowerBound
            guard newcomer.position > start else { continue }
            attempts.change(newcomer.id) { $0.hasDelivered = true }
            if newcomer.plan.isFurther { further.rejections = 0 }
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
    func isRelieved(_ attempt: RunningAttempt, of range: ByteRange, _ context: TransferContext) -> Bool {
        var provided = ledger.written
        for other in live where other.id != attempt.id && other.hasDelivered && !other.plan.isRace {
            guard let lease = ledger.lease(of: other.id), isWorking(other, context.now) else { continue }
            let brought = other.position - other.plan.lease.lowerBound
            let mine = attempt.rates.recent.rate ?? 0
            let isFast = other.rates.recent.rate.map { $0 * Self.tooSlow >= mine }
            guard isFast ?? (brought >= min(Self.underWay, Int64(mine / 4))) else { continue }
            provided.insert(lease)
        }
        return provided.contains(range)
    }

    /// Returns whether an attempt at the primary source has delivered no byte yet while other responses of the source
    /// run. Its failure then only means fewer connections.
    func isExperiment(_ attempt: RunningAttempt, _ context: TransferContext) -> Bool {
        let hasBrought = attempt.isAccepted && attempt.position > attempt.plan.lease.lowerBound
        guard attempt.plan.source == .primary, !hasBrought, !hasNoRecentProgress(context) else { return false }
        return live.contains { $0.id != attempt.id && $0.isAccepted && $0.plan.source == .primary }
    }

    /// Returns whether the first bytes of an additional connection differ only because it reached another version of
    /// the file: the response that delivered the written bytes still runs, and belongs to a single version.
    func isOfAnotherVersion(_ attempt: RunningAttempt, _ context: TransferContext) -> Bool {
        isExperiment(attempt, context)
            && live.contains { other in
                other.isAccepted && other.plan.source == .primary
                    && other.plan.lease.lowerBound <= attempt.plan.seam.lowerBound
                    && attempt.plan.seam.upperBound <= other.position
            }
    }

    /// Reassigns the bytes from `offset` to the end of an attempt's range, for another connection. The attempt's
    /// response pauses there for a moment (`hold`).
    mutating func yield(
        _ id: AttemptID, from offset: Int64, to source: SourceID, rung: ResponseQuestion.Rung?, now: Duration
    ) -> [TransferAction] {
        // If only a checksum proves the bytes, two sources never write the same range.
        if rung == .checksum, attempts[id]?.plan.source != source { return stop(id, at: offset) }
        ledger.shrink(id, to: offset)
        let wait = min(max(Self.shortestHold, .seconds(4 * (pace.roundTrip ?? 0))), Self.longestHold)
        attempts.change(id) { $0.pause.until = now + wait }
        return []
    }

    /// The round-trip time in seconds below which a server is near. The throughput of a near server shows soon, so its
    /// first response is watched (`firstLook`) before its range is divided.
    static let near = 0.02

    /// The time during which the first response of a near server is watched before its range is divided.
    static let firstLook = Duration.milliseconds(20)

    /// Returns whether it is too early to divide the ranges of responses: bytes that the server already sent on a
    /// response are lost if it is cut. Too early: the first response of a near server may end soon, other responses may
    /// end soon once one has, or a rate limit may soon delay bytes.
    func isTooYoung(_ context: TransferContext) -> Bool {
        let accepted = live.filter(\.isAccepted)
        if accepted.isEmpty || accepted.contains(where: { $0.rates.recent.rate != nil }) { return false }
        return pace.hasCompleted || context.isLimited || firstLookAt.map { context.now < $0 } ?? false
    }

    /// The time when the first response of a near server (a short round trip) has been watched long enough to divide
    /// its range; `nil` if it is not watched.
    var firstLookAt: Duration? {
        // A round trip of zero means that the clock did not advance, so nothing was measured.
        guard let roundTrip = pace.roundTrip, roundTrip > 0, roundTrip < Self.near,
            !pace.hasCompleted
        else { return nil }
        return live.compactMap(\.acceptedAt).min().map { $0 + Self.firstLook }
    }

    /// Returns whether a response is expected to end so soon, at the rate of its first bytes, that dividing its range
    /// gains nothing.
    func isNearlyDone(_ attempt: RunningAttempt, _ now: Duration) -> Bool {
        guard let start = attempt.acceptedAt, now > start, attempt.received > 0 else { return false }
        let seconds = (now - start).seconds
        let lease = ledger.lease(of: attempt.id) ?? ByteRange(0, 0)
        return Double(attempt.notArrived(of: lease).count) / Double(attempt.received) * seconds < SplitPolicy.worthwhile
    }

    /// Returns the attempt whose missing bytes are to be requested a second time, the slowest one, and counts these
    /// bytes as wasted. Returns `nil` if every remainder is raced already, or if races would waste more than 1 % of the
    /// file.
    mutating func slowestToRace(
        _ runners: [SplitPolicy.Runner], _ policy: SplitPolicy, _ context: TransferContext
    ) -> SplitPolicy.Runner? {
        guard live.count > 1 || budget.target > 1 else { return nil }
        let allowed = max(0, (ledger.completeLength ?? 0) / 100 - further.wastedInRaces)
        let free = runners.filter { !isRaced($0, policy, context) }
        let slowest = policy.race(free, budget: allowed, typicalRate: pace.typicalRate)
        further.wastedInRaces += slowest?.remaining.count ?? 0
        return slowest
    }

    /// Returns whether another request for the missing bytes of an attempt (`runner`) runs and is not slow, so that no
    /// further one is needed.
    func isRaced(_ runner: SplitPolicy.Runner, _ policy: SplitPolicy, _ context: TransferContext) -> Bool {
        live.contains { rival in
            guard rival.plan.isRace, rival.plan.lease.intersection(runner.remaining) != nil else { return false }
            let isYoung = (context.now - rival.startedAt).seconds < 0.2 + 4 * policy.roundTrip
            return isYoung || rival.rates.recent.rate ?? 0 >= (pace.typicalRate ?? 0) / 4
        }
    }

    /// The maximum remaining time in seconds of a superfluous attempt that may finish, because ending it would waste
    /// bytes.
    static let soonDone = 10.0

    /// Ends the newest connections if they did not increase the rate, each after the bytes in transit, which arrive
    /// anyway.
    mutating func shed(_ evidence: TransferEvidence) -> [TransferAction] {
        guard further.hasSurplus else { return [] }
        further.hasSurplus = false
        guard !evidence.needsWholeResponses else { return [] }
        let youngest = live.sorted { $0.plan.id.value > $1.plan.id.value }
        return youngest.prefix(max(0, live.count - budget.target)).flatMap { attempt in
            guard attempt.isAccepted, let range = ledger.lease(of: attempt.plan.id) else {
                return dismiss(attempt.plan.id)
            }
            let rate = attempt.rates.recent.rate ?? 0
            guard Double(range.count) > rate * Self.soonDone else { return [] }
            let end = range.lowerBound + max(Self.underWay, Int64(rate / 4))
            return end < range.upperBound ? stop(attempt.plan.id, at: end) : []
        }
    }

    /// `true` if a running response has written bytes that only its own checksum checks (RFC 9530 §2). Once every byte
    /// is written, the transfer waits until the response ends and is compared, or is closed because it stalls.
    func awaitsDigests(_ evidence: TransferEvidence) -> Bool {
        evidence.needsWholeResponses
            && live.contains { $0.isAccepted && $0.position > $0.plan.lease.lowerBound }
    }

    /// The policy that divides ranges among connections, with the measured round-trip time and rate.
    var splitPolicy: SplitPolicy {
        var policy = SplitPolicy(roundTrip: pace.roundTrip ?? 0.05)
        if !budget.isFixed { policy.minimumSegment = SplitPolicy.thriftySegment(at: pace.typicalRate) }
        return policy
    }

    /// Returns whether the user's rate limit delays bytes. Another connection would add no throughput, and bytes that
    /// the server already sent on a response are lost if it is cut.
    func isHeldBack(_ context: TransferContext) -> Bool {
        pace.lastHeldBackAt.map { context.now - $0 < Self.holdMemory } ?? false
    }

    /// The time after which the range of a request without a response may be divided among connections without work.
    static let longHead = Duration.seconds(2)

    /// The time that a rate limit counts as active after it delayed bytes: a limit lets bytes through in bursts.
    static let holdMemory = Duration.seconds(1)

    /// Returns the attempts whose assigned ranges may be divided. A response that only its own digest checks is not
    /// cut.
    func splittable(_ evidence: TransferEvidence, _ context: TransferContext) -> [SplitPolicy.Runner] {
        if evidence.needsWholeResponses || isHeldBack(context) { return [] }
        if isTooYoung(context) { return [] }
        // Before the first attempt ends, a rate mainly shows how long its connection exists, so shares are equal.
        let isFirstRound = pace.typicalRate == nil
        return live.compactMap { attempt in
            guard let lease = ledger.leases[attempt.plan.id], !lease.isRace, !lease.range.isEmpty,
                lease.range.upperBound < .max, !(isFirstRound && isNearlyDone(attempt, context.now))
            else { return nil }
            // A request without a response after that time may never get one.
            let isSilent = !attempt.isAccepted && context.now - attempt.startedAt >= Self.longHead
            let rate = attempt.isAccepted ? attempt.rates.recent.rate : isSilent ? 1 : nil
            return SplitPolicy.Runner(
                id: attempt.plan.id, remaining: attempt.notArrived(of: lease.range), rate: isFirstRound ? nil : rate,
                silence: attempt.isAccepted || isSilent ? (context.now - attempt.lastProgressAt).seconds : 0)
        }
    }
}
