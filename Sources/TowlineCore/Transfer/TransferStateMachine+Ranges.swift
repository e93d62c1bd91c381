/// Range is a wish: some servers and firewalls refuse a request for its Range field alone.
///
/// Such a request is repeated once without Range before the refusal counts. Only a plain request shows that a file is
/// missing.
extension TransferStateMachine {
    /// The knowledge from refused range requests.
    struct RangeDoubt: Hashable, Sendable {
        /// The next request is sent without Range.
        var asksPlain = false
        /// A request without Range was sent, and no response was accepted since.
        var hasAskedPlain = false
        /// A status such as 404 refused the range request. Waiting does not help.
        var isCertain = false
        /// The request without Range was refused in the same way.
        var isRefuted = false
        /// The plain request succeeded after a refusal that may pass, and the range was requested once more.
        var asksAgain = false
        /// So often in a row a request for the rest of what is held was refused in a way that may pass.
        var refusals = 0

        /// Takes the wish for a plain request.
        ///
        /// - Parameter beginsAnew: nothing is held, so requests stay plain once it is certain that ranges are refused.
        mutating func takePlain(beginsAnew: Bool) -> Bool {
            guard asksPlain else { return false }
            hasAskedPlain = true
            asksPlain = isCertain && beginsAnew
            return true
        }

        /// Returns true if a range request may succeed now: the refusal was temporary, and the server supports ranges.
        func mayHavePassed(_ facts: ResponseFacts, hadRanges: Bool) -> Bool {
            hasAskedPlain && !isCertain && !asksAgain && (hadRanges || facts.acceptsRanges == true)
        }
    }

    /// Repeats a request without Range if its verdict may be due to the Range field.
    ///
    /// - Returns: `nil` if the verdict counts.
    mutating func refusedForRange(
        _ id: AttemptID, _ verdict: ResponseVerdict, _ context: TransferContext
    ) -> [TransferAction]? {
        guard let attempt = attempts[id] else { return nil }
        let isPlain = attempt.plan.question.asked == .whole
        switch verdict {
        case .askWithoutRange: break
        case .permanent(let error):
            guard let status = error.status, Self.mayRefuseRange(status) else { return nil }
            if isPlain { rangeDoubt.isRefuted = true }
        case .linkExpired:
            if isPlain { rangeDoubt.isRefuted = true }
            // An expired link is first renewed, which keeps the bytes. Refusals of an old link do not count.
            if attempt.plan.url != primary.url, tally.expirations == 0 { return nil }
            if attempt.plan.url != resolved, attempt.plan.chain.isEmpty { return nil }
        case .transient(_, let retryAfter, _, let status):
            guard Self.mayRefuseRange(status) else { return nil }
            guard doubtsRange(attempt, passes: true, waits: retryAfter != nil, context) else { return nil }
            // The server may want fewer streams on one connection.
            return dismiss(id) + stopSharing(attempt.plan)
        default: return nil
        }
        return doubtsRange(attempt, passes: false, context) ? dismiss(id) : nil
    }

    /// Returns true if the Range field may be the reason for a refusal with that status.
    private static func mayRefuseRange(_ status: Int) -> Bool {
        // 407 is about the proxy, and 425 and 429 are about the time.
        (400..<600).contains(status) && ![407, 425, 429].contains(status)
    }

    /// So many refusals in a row that may pass, each with its wait, are those of a busy server.
    private static let passingRefusals = 3

    /// Returns whether a refusal is taken for one that passes, and the range is requested again after a wait.
    ///
    /// A server that has sent ranges before, or says when it has time, gets a few such waits before a plain request,
    /// whose response would replace the held bytes.
    private mutating func isPassing(waits: Bool) -> Bool {
        guard !beginsAnew, waits || ranges == .works else { return false }
        rangeDoubt.refusals += 1
        return rangeDoubt.refusals < min(Self.passingRefusals, terms.retry.allowedTries(limit: nil) ?? .max)
    }

    /// Notes that a request was refused, perhaps for its Range field.
    ///
    /// - Parameters:
    ///   - passes: the refusal may pass: plain and range requests then take turns, and all but the first count.
    ///   - waits: the server asked for a pause.
    /// - Returns: whether the next request is sent at once, without Range, before the refusal counts.
    mutating func doubtsRange(
        _ attempt: Attempt, passes: Bool, waits: Bool = false, _ context: TransferContext
    ) -> Bool {
        guard attempt.plan.source == .primary, attempt.plan.question.asked != .whole, !rangeDoubt.isRefuted,
            live.allSatisfy({ $0.id == attempt.id }), beginsAnew || !terms.isStream, !mirrorsGoOn
        else { return false }
        // Other sources are asked first.
        if passes, mirrors.contains(where: { $0.leftOut == nil }) { return false }
        if passes, isPassing(waits: waits) { return false }
        let isFirst = !rangeDoubt.hasAskedPlain || rangeDoubt.asksAgain
        rangeDoubt.asksPlain = true
        rangeDoubt.isCertain = rangeDoubt.isCertain || !passes
        guard passes else { return true }
        // Downloads of this process that take all connections are another reason, and time is the remedy.
        guard isFirst, !waits, !context.othersWork else {
            rangeDoubt.hasAskedPlain = true
            return false
        }
        return true
    }

    /// A range was refused where nothing more can be asked: without Range from here on.
    mutating func withoutRange(
        _ id: AttemptID, _ reason: String, _ context: TransferContext
    ) -> [TransferAction] {
        // While others bring ranges it is that connection's fault.
        guard workingAtPrimary(context) == 0 else { return rangeRefused(id, reason, context) }
        if mirrorsGoOn { return dismiss(id) + primaryFailed(unusable(reason)) }
        ranges = .broken
        isSingle = true
        let actions = dismiss(id)
        guard ledger.written.isEmpty else { return actions + startOver(because: reason, isChange: false) }
        return actions
    }

    // MARK: Weak proof

    /// A validator that was strong is repeated weakly: the third rung of the proof ladder.
    mutating func weakened(_ id: AttemptID, _ reason: String, _ context: TransferContext) -> [TransferAction] {
        guard !isWeakened, workingAtPrimary(context, besides: id) == 0 else {
            return rangeRefused(id, reason, context)
        }
        isWeakened = true
        // Others that have not delivered anything yet were asked for by a stronger rung.
        let actions = live.flatMap { dismiss($0.id) }
        guard checksums.isEmpty, !terms.isStream else { return actions }
        var lost = ledger.written
        lost.subtract(weaklyBelieved(ledger.written))
        for range in lost.ranges { giveUp(range) }
        return actions + lost.ranges.map { .withdraw($0) }
    }

    /// The bytes that a weak validator and comparisons can prove. The end of each run is compared, so runs shorter than
    /// a comparison are discarded, and the last byte of the file is requested again.
    func weaklyBelieved(_ written: ByteRangeSet) -> ByteRangeSet {
        var believed = written
        for run in written.ranges where run.lowerBound > 0 {
            if run.count < Self.weakOverlap { believed.remove(run) }
            if run.upperBound == representation?.completeLength {
                believed.remove(ByteRange(run.upperBound - 1, run.upperBound))
            }
        }
        return believed
    }

    // MARK: Breaks that lose all

    /// A response broke, and nothing of it can be joined to the next one: a failure of the network like others, with a
    /// wait and the user's limit.
    ///
    /// - Returns: `nil` if the next request resumes.
    mutating func lostBreak(_ reason: String, at position: Int64, _ context: TransferContext) -> [TransferAction]? {
        guard !terms.isStream, !mirrorsGoOn, !ledger.isWhole, joinRung == nil || tally.discards > 1 else { return nil }
        let isSamePlace = lastBreakAt == position
        lastBreakAt = position
        let hint = "it ended at the same byte as before, so the server's Content-Length may be wrong (--ignore-length)"
        let reason = isSamePlace ? "\(reason): \(hint)" : reason
        let tries = tally.discards + 1
        let allowed = terms.retry.allowedTries(limit: nil)
        if joinRung == nil, let allowed, tries >= allowed {
            let count = tries == 1 ? "1 attempt" : "\(tries) attempts"
            let wayOut = "The server cannot resume this download. \(count) failed"
            return primaryFailed(TowlineError(.transient, "\(primary.url): \(reason). \(wayOut)"))
        }
        let delay = terms.retry.backoff.delay(failures: tries, jitter: context.jitter)
        notBefore = context.now + delay
        waitReason = reason + (allowed.map { ", attempt \(tries) of \($0)" } ?? "")
        waitsForServer = false
        let text = "\(waitReason); retrying in \(DurationText.inSentence(delay))"
        return [.notice(TransferNotice(.info, .retrying, text))]
    }
}
