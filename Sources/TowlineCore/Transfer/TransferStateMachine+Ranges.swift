/// The handling of refused ranges: some servers and firewalls refuse a request only because of its Range field.
///
/// Such a request is repeated once without Range before the refusal counts. Only a plain request shows that a file is
/// missing.
extension TransferStateMachine {
    /// The conclusions from refused range requests: whether a request without Range follows.
    struct RangeDoubt: Hashable, Sendable {
        /// `true` if the next request is sent without Range.
        var asksPlain = false
        /// `true` if a request without Range was sent, and no response was accepted since.
        var hasAskedPlain = false
        /// `true` if a status such as 404 refused the range request. Waiting does not help.
        var isCertain = false
        /// `true` if the request without Range was refused in the same way.
        var isRefuted = false
        /// `true` if the request without Range succeeded after a temporary refusal, and the range was requested once
        /// more.
        var asksAgain = false
        /// The number of temporary refusals in a row of requests that resume a download.
        var refusals = 0

        /// Returns whether the next request is sent without Range, and records that it is sent.
        ///
        /// - Parameter beginsAnew: `true` if no bytes are written. Requests then stay without Range once ranges are
        ///   certainly refused.
        mutating func takePlain(beginsAnew: Bool) -> Bool {
            guard asksPlain else { return false }
            hasAskedPlain = true
            asksPlain = isCertain && beginsAnew
            return true
        }

        /// Returns whether a range request may succeed now: the refusal was temporary, and the server supports ranges,
        /// as it has shown before (`hadRanges`) or announces in this response.
        func mayHavePassed(_ facts: ResponseFacts, hadRanges: Bool) -> Bool {
            hasAskedPlain && !isCertain && !asksAgain && (hadRanges || facts.acceptsRanges == true)
        }
    }

    /// Repeats a request without Range if its verdict may be due to the Range field.
    ///
    /// - Returns: `nil` if the verdict has another cause and is handled as usual.
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

    /// Returns whether the Range field may be the reason for a refusal with that status.
    private static func mayRefuseRange(_ status: Int) -> Bool {
        // 407 is about the proxy, and 425 and 429 are about the time.
        (400..<600).contains(status) && ![407, 425, 429].contains(status)
    }

    /// The number of temporary refusals in a row, each with its wait, at which a request without Range replaces the
    /// range request.
    private static let passingRefusals = 3

    /// Returns whether a refusal counts as temporary, so that the range is requested again after a wait. `waits`:
    /// `true` if the server asked for a pause.
    ///
    /// A server that has sent ranges before, or asks for a pause, gets a few such waits before a request without Range,
    /// whose response would replace the written bytes.
    private mutating func isPassing(waits: Bool) -> Bool {
        guard !beginsAnew, waits || ranges == .works else { return false }
        rangeDoubt.refusals += 1
        return rangeDoubt.refusals < min(Self.passingRefusals, terms.retry.allowedTries(limit: nil) ?? .max)
    }

    /// Records that a request was refused, perhaps for its Range field.
    ///
    /// - Parameters:
    ///   - passes: `true` if the refusal may be temporary: requests with and without Range then alternate, and all but
    ///     the first refusal count as failures.
    ///   - waits: `true` if the server asked for a pause.
    /// - Returns: `true` if the next request is sent at once, without Range, before the refusal counts.
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
        // Other downloads of this process that use all connections may be the reason, and only time helps.
        guard isFirst, !waits, !context.othersWork else {
            rangeDoubt.hasAskedPlain = true
            return false
        }
        return true
    }

    /// Handles a refused range if no other request can help: later requests omit Range, and the download starts over if
    /// bytes are written.
    mutating func withoutRange(
        _ id: AttemptID, _ reason: String, _ context: TransferContext
    ) -> [TransferAction] {
        // If other attempts receive ranges, the refusal is a fault of that connection.
        guard workingAtPrimary(context) == 0 else { return rangeRefused(id, reason, context) }
        if mirrorsGoOn { return dismiss(id) + primaryFailed(unusable(reason)) }
        ranges = .broken
        isSingle = true
        let actions = dismiss(id)
        guard ledger.written.isEmpty else { return actions + startOver(because: reason, isChange: false) }
        return actions
    }

    // MARK: Weak proof

    /// Handles a strong validator that is repeated only in weak form: from now on, bytes before each resume point must
    /// be compared as well.
    mutating func weakened(_ id: AttemptID, _ reason: String, _ context: TransferContext) -> [TransferAction] {
        guard !isWeakened, workingAtPrimary(context, besides: id) == 0 else {
            return rangeRefused(id, reason, context)
        }
        isWeakened = true
        // Other attempts that have not delivered anything yet were requested on a stronger rung.
        let actions = live.flatMap { dismiss($0.id) }
        guard checksums.isEmpty, !terms.isStream else { return actions }
        var lost = ledger.written
        lost.subtract(weaklyBelieved(ledger.written))
        for range in lost.ranges { giveUp(range) }
        return actions + lost.ranges.map { .withdraw($0) }
    }

    /// Returns the bytes in `written` that a weak validator and comparisons can prove. The end of each run is compared,
    /// so runs shorter than a comparison are discarded, and the last byte of the file is requested again.
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

    // MARK: Broken responses that cannot be resumed

    /// Handles a broken response whose bytes cannot be joined to the next one: it counts as a network failure, with a
    /// wait and the user's retry limit.
    ///
    /// - Returns: `nil` if the next request can resume.
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
