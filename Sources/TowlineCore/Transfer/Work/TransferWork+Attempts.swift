/// Functions that add, stop, count and remove the running attempts of a transfer, together with their assigned ranges.
extension TransferWork {
    /// The attempts that are neither cancelled nor refused.
    var live: [RunningAttempt] { attempts.filter { !$0.isDismissed } }

    /// The number of attempts that are neither cancelled nor refused.
    var liveCount: Int { attempts.count { !$0.isDismissed } }

    /// Returns whether an attempt receives bytes: its response is accepted, and it made progress in the last three
    /// seconds.
    func isWorking(_ attempt: RunningAttempt, _ now: Duration) -> Bool {
        !attempt.isDismissed && attempt.isAccepted && now - attempt.lastProgressAt < .seconds(3)
    }

    /// Returns whether no attempt has written a byte for the stall timeout, the user's limit for the time without a
    /// byte.
    func hasNoRecentProgress(_ context: TransferContext) -> Bool {
        context.now - pace.lastWrittenAt >= terms.options.stallTimeout
    }

    /// Returns the number of attempts that receive bytes, except `other`. An attempt without bytes for three seconds
    /// does not show what the server allows. If no new byte was written for a stall timeout, no attempt counts,
    /// whatever heads and overlaps arrive.
    func workingCount(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !hasNoRecentProgress(context) else { return 0 }
        return attempts.count { isWorking($0, context.now) && $0.id != other }
    }

    /// Returns the number of attempts at the primary source that receive bytes, except `other`; see `workingCount`. The
    /// attempts at one server say nothing about another server.
    func workingAtPrimary(_ context: TransferContext, besides other: AttemptID? = nil) -> Int {
        guard !hasNoRecentProgress(context) else { return 0 }
        return attempts.count { isWorking($0, context.now) && $0.id != other && $0.plan.source == .primary }
    }

    /// Returns the host that currently sends bytes for the primary, the source that defines the file; `nil` if no host
    /// does.
    func activeHost(now: Duration) -> HTTPURL.Origin? {
        attempts.first { isWorking($0, now) && $0.plan.source == .primary }?.plan.url.origin
    }

    /// Cancels an attempt whose response is not needed. Its range is free for others immediately, except for a stream:
    /// bytes written to a stream cannot be written again, and the attempt may write until it has ended.
    mutating func dismiss(_ id: AttemptID) -> [TransferAction] {
        guard let index = attempts.firstIndex(where: { $0.id == id }), !attempts[index].isDismissed else {
            return []
        }
        attempts[index].isDismissed = true
        attempts[index].dismissedAt = attempts[index].position
        if !terms.isStream { ledger.release(id) }
        return [.cancel(id)]
    }

    /// Makes the response of an attempt end at an offset, because other attempts deliver the bytes after it.
    mutating func stop(_ id: AttemptID, at end: Int64) -> [TransferAction] {
        setBound(of: id, to: end)
        return [.shrink(id, end: end)]
    }

    /// Records the offset at which the response of an attempt ends.
    mutating func setBound(of id: AttemptID, to end: Int64) {
        attempts.change(id) { $0.bound = min($0.bound, end) }
        if end < ledger.lease(of: id)?.upperBound ?? 0 { ledger.shrink(id, to: end) }
    }

    /// Returns the range that an attempt writes unless it is stopped: from the next byte of its assigned range to the
    /// end of its response; `nil` if no range is assigned to it.
    func response(of id: AttemptID) -> ByteRange? {
        guard let lease = ledger.lease(of: id), let attempt = attempts[id] else { return nil }
        return ByteRange(lease.lowerBound, max(lease.upperBound, min(attempt.bound, ledger.whole.upperBound)))
    }

    /// Extends the assigned range of each running response over bytes that it has still to send and that no other
    /// attempt delivers.
    mutating func reclaim() {
        for attempt in live where attempt.isAccepted && !attempt.plan.isRace && !attempt.isDisbelieved {
            ledger.extend(attempt.id, to: attempt.bound)
        }
    }

    /// Discards written bytes that may be wrong. A running comparison of received bytes with them no longer counts.
    mutating func giveUp(_ range: ByteRange) {
        ledger.withdraw(range)
        for index in attempts.indices where attempts[index].plan.seam.intersection(range) != nil {
            attempts[index].hasLostItsSeam = true
        }
    }

    /// Adds an attempt whose request is sent, and assigns its bytes to it.
    mutating func begin(_ plan: AttemptPlan, at startedAt: Duration, lastProgressAt: Duration? = nil) {
        attempts.append(
            RunningAttempt(plan: plan, startedAt: startedAt, lastProgressAt: lastProgressAt ?? startedAt))
        ledger.lease(plan.lease, to: plan.id, isRace: plan.isRace)
    }

    /// Records that the head of a response arrived.
    ///
    /// - Returns: the attempt; `nil` if it is not wanted any more.
    mutating func noteResponse(to id: AttemptID, _ now: Duration) -> RunningAttempt? {
        guard let index = attempts.firstIndex(where: { $0.id == id }), !attempts[index].isDismissed else { return nil }
        attempts[index].lastProgressAt = now
        let trip = (now - attempts[index].startedAt).seconds
        pace.roundTrip = min(pace.roundTrip ?? trip, trip)
        return attempts[index]
    }

    /// Removes and returns an attempt that ended; `nil` if it is unknown.
    mutating func remove(_ id: AttemptID, _ result: AttemptResult, now: Duration) -> RunningAttempt? {
        guard let attempt = attempts.remove(id) else { return nil }
        ledger.release(id)
        if attempt.isAccepted, case .complete = result { pace.hasCompleted = true }
        if !attempt.plan.isComparison, let rate = attempt.rates.average.rate {
            pace.typicalRate = max(rate, (pace.typicalRate ?? 0) * 0.75)
        }
        if result.closesConnection(isAccepted: attempt.isAccepted) { budget.closed(now: now) }
        return attempt
    }

    /// Cancels all attempts except `keeper`, whose response a restart uses.
    mutating func cancelAll(except keeper: AttemptID?) -> [TransferAction] {
        var actions: [TransferAction] = []
        for index in attempts.indices where attempts[index].id != keeper && !attempts[index].isDismissed {
            attempts[index].isDismissed = true
            actions.append(.cancel(attempts[index].id))
        }
        return actions
    }

    /// Makes an attempt, whose paused response is the complete new file, write from the first byte.
    mutating func restart(_ keeper: AttemptID) {
        let all = ByteRange(0, .max)
        attempts.change(keeper) { attempt in
            attempt.plan.lease = all
            attempt.plan.overlap = 0
            attempt.position = 0
            attempt.bound = .max
        }
        ledger.lease(all, to: keeper)
    }

    /// Discards the written bytes that are not in `durable`, and the bytes of all running attempts.
    mutating func loseBytes(except durable: ByteRangeSet) {
        // The journal may claim more, but the last bytes of a copied part file are not trusted yet.
        var lost = ledger.written
        lost.subtract(durable)
        for range in lost.ranges { ledger.withdraw(range) }
        for index in attempts.indices { attempts[index].isDisbelieved = true }
    }

    /// The attempts whose assigned bytes others have written.
    var beaten: [RunningAttempt] {
        attempts.filter { attempt in
            guard let range = ledger.lease(of: attempt.id), !range.isEmpty else { return false }
            return !attempt.isDismissed && ledger.written.contains(range)
        }
    }

    /// The end of the bytes to request from mirrors for comparison: the highest offset that the primary source has
    /// reached with at least 64 KiB before it; `nil` if it has delivered less.
    var sampleEnd: Int64? {
        let least = SegmentPlanner.weakOverlap
        let ends = live.filter { attempt in
            attempt.plan.source == .primary && attempt.isAccepted && !attempt.isDisbelieved
                && attempt.position - attempt.plan.lease.lowerBound >= least
        }
        return ends.map(\.position).filter { ledger.writtenBefore($0) >= least }.max()
    }

    /// Gives the next request its own connection if this one was shared, and for a while each request of the host's
    /// other downloads as well.
    mutating func stopSharing(_ plan: AttemptPlan) -> [TransferAction] {
        guard plan.sharesConnection else { return [] }
        needsOwnConnection = true
        return [.report(.sharingFailed, of: plan.url.origin)]
    }

    /// Returns the time without a byte after which an attempt counts as stalled; `nil` if only the limits of the
    /// transport (the HTTP client) apply.
    ///
    /// Connecting and the response head have limits of their own, which the transport keeps: a slow handshake or a
    /// server that packs an archive is not a stalled connection. While others deliver bytes, a further connection has
    /// at least the time for connecting: a request for its bytes elsewhere is better than a longer wait. A request in
    /// libcurl's queue for a shared connection has no limit of its own. A response whose bytes would be lost gets more
    /// time.
    func stallLimit(
        of attempt: RunningAttempt, _ evidence: TransferEvidence, _ context: TransferContext
    ) -> Duration? {
        if attempt.isAccepted, attempt.received > 0, ledger.written.count >= RunningAttempt.worthWaiting,
            evidence.rung(at: attempt.plan.source, ledger) == nil
        {
            return terms.patientTimeout
        }
        if attempt.isAccepted || attempt.plan.sharesConnection { return terms.options.stallTimeout }
        let others = workingCount(context, besides: attempt.id)
        return others > 0 ? max(terms.options.stallTimeout, terms.connectTimeout) : nil
    }
}
