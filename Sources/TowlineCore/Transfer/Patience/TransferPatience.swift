/// The failures of a transfer so far, and its waits before further requests.
struct TransferPatience: Sendable {
    let terms: TransferTerms
    /// The number of attempts in a row that received no bytes. The retry limit applies to it.
    var failures = 0
    /// The time when an attempt without a received byte was last counted as a failure.
    var lastFailureAt: Duration?
    /// The number of times in a row that a link expired. After three renewals, the source counts as failed.
    var expirations = 0
    /// The number of failed syncs to disk. The second one ends the transfer.
    var syncFailures = 0
    /// The reason for the current wait before the next request, shown in messages to the user.
    var waitReason = ""
    /// `true` if the current wait before the next request was requested by the server (`Retry-After`).
    var waitsForServer = false
    /// `true` if the current wait before the next request follows a failure of the network, not an answer of the
    /// server.
    var lacksNetwork = false
    /// `true` while the machine has no network.
    private(set) var isNetworkLost = false
    /// The value of `isNetworkLost` before the last change of the network.
    private var wasNetworkLost = false
    /// The attempt whose slow response was reported to the user, so that each is reported once.
    var announcedSilence: AttemptID?
    /// The offset at which a response that cannot be resumed last ended early. The same offset again suggests a wrong
    /// Content-Length.
    var lastBreakAt: Int64?

    init(_ terms: TransferTerms) { self.terms = terms }

    /// The number of tries that a transfer keeps for the time after other transfers of the process have released the
    /// connections that a server allows.
    private static let triesAfterOthers = 3
    /// The maximum number of tries, before its first byte, of a source that replaces one whose file does not match the
    /// user's checksum: the checksum may be wrong, and the user must not wait long for an unreachable server.
    private static let triesAfterRefutation = 3

    /// A request to the primary source that received no bytes, and the circumstances that decide whether and when it is
    /// retried (`countFailure`).
    struct Failure {
        /// The reason for the failed request, shown in messages to the user.
        var reason: String
        /// The details of the transport in parentheses, which messages add to the reason and lists do not show.
        var detail = ""
        /// A sentence for the error after the last try that tells the user how to get the file.
        var wayOut = ""
        /// The wait before the next request that the server requested; `nil` without one.
        var wait: Duration?
        /// The code of the error with which the transfer fails if its tries are used up.
        var code = TowlineError.Code.transient
        /// The network failure in the error if the tries of the transfer are used up; `nil` if the server answered.
        var cause: TowlineError.NetworkFailure?
        /// The maximum number of tries before the first byte of the file for this kind of failure; `nil`: only the
        /// user's limit applies.
        var limit: Int?
        /// `true` if the failure is typical of one connection too many. Other transfers of this process that receive
        /// bytes from the host may use all allowed connections. This transfer must not fail because they take long.
        var isTooMany = false
    }

    /// Counts an attempt at the primary source that received no bytes, and waits before the next one, or fails.
    mutating func countFailure(
        _ failure: Failure, _ evidence: TransferEvidence, _ sources: inout TransferSources, _ ledger: RangeLedger,
        _ context: TransferContext
    ) -> Reaction {
        let beginsAnew = evidence.beginsAnew(ledger)
        // An outage breaks all connections within moments, which counts as one failure.
        if let notBefore = sources.primary.notBefore, notBefore > context.now {
            // Each response states how long to wait; the longest wait counts.
            if let wait = failure.wait {
                sources.primary.notBefore = max(notBefore, context.now + wait)
                waitsForServer = true
            }
            return []
        }
        lastFailureAt = context.now
        let hasMirrors = !sources.mirrors.isEmpty
        var limit = ledger.written.isEmpty ? failure.limit : nil
        if sources.refutation != nil { limit = min(limit ?? .max, Self.triesAfterRefutation) }
        let allowed = terms.retry.allowedTries(limit: limit)
        let isCrowdedOut = failure.isTooMany && context.othersWork && !hasMirrors
        let most = isCrowdedOut ? allowed.map { $0 - Self.triesAfterOthers } : nil
        failures = max(failures, min(failures + 1, most ?? .max))
        sources.primary.failures += 1
        sources.primary.tries += 1
        // Before the first byte, all sources are asked one after another, each with its own tries and waits.
        let isInTurn = beginsAnew && hasMirrors
        let tried = isInTurn ? sources.primary.tries : failures
        if terms.retry.isExhausted(failures: tried, limit: limit) {
            let count = tried == 1 ? "1 attempt" : "\(tried) attempts"
            let wayOut = failure.wayOut.isEmpty ? "" : ". " + failure.wayOut
            let message = "\(sources.primary.url): \(failure.reason)\(failure.detail). \(count) failed\(wayOut)"
            return Reaction(
                [], .primaryFailed(TowlineError(failure.code, message, networkFailure: failure.cause)))
        }
        // Bytes from mirrors make up for a failure, but do not justify requests to the primary without a wait.
        let counted = isInTurn || !hasMirrors ? tried : max(tried, sources.primary.failures)
        let delay = terms.retry.backoff.delay(
            failures: isCrowdedOut ? sources.primary.tries : counted, jitter: context.jitter)
        let wait = max(delay, failure.wait ?? .zero)
        sources.primary.notBefore = context.now + wait
        let explanation =
            isCrowdedOut ? ", probably because other downloads use all connections that the server allows" : ""
        waitReason = failure.reason + explanation
        let count = isCrowdedOut ? "" : terms.attemptCount(tried, of: allowed, failure.code)
        waitsForServer = failure.wait != nil
        lacksNetwork = failure.cause != nil
        if hasMirrors, failures < sources.primary.failures, !beginsAnew { return [] }
        let who = hasMirrors ? "\(sources.primary.url): " : ""
        // If another source is available, the next request may go there, and at another time.
        let asksAnother = beginsAnew && sources.mirrors.contains { $0.leftOut == nil }
        let end = asksAnother ? "" : "; retrying in \(DurationText.inSentence(wait))"
        let text = "\(who)\(failure.reason)\(failure.detail)\(explanation)\(count)\(end)"
        return Reaction([.notice(TransferNotice(.info, .retrying, text))])
    }

    /// Waits before the request that has to confirm a change. The wait does not count as a failure.
    mutating func waitToConfirm(_ reason: String, _ primary: inout FileSource, now: Duration) -> [TransferAction] {
        (waitReason, waitsForServer, lacksNetwork) = (reason, false, false)
        primary.wait(until: now + terms.confirmationWait)
        return [.notice(TransferNotice(.info, .retrying, reason))]
    }

    /// Handles a response that ended early and whose bytes cannot be joined to the next one: it counts as a network
    /// failure, with a wait and the user's retry limit.
    ///
    /// - Parameters:
    ///   - canJoin: `true` if there is proof to join new bytes to the written ones, so that the transfer only waits.
    ///   - discards: the number of restarts since bytes were last joined.
    mutating func countBreak(
        _ reason: String, at position: Int64, canJoin: Bool, discards: Int, _ sources: inout TransferSources,
        _ context: TransferContext
    ) -> Reaction {
        let isSamePlace = lastBreakAt == position
        lastBreakAt = position
        let hint = "it ended at the same byte as before, so \(Remedy.wrongLength)"
        let reason = isSamePlace ? "\(reason): \(hint)" : reason
        let tries = discards + 1
        let allowed = terms.retry.allowedTries(limit: nil)
        if !canJoin, let allowed, tries >= allowed {
            let count = tries == 1 ? "1 attempt" : "\(tries) attempts"
            let wayOut = "The server cannot resume this download. \(count) failed"
            let message = "\(sources.primary.url): \(reason). \(wayOut)"
            return Reaction([], .primaryFailed(TowlineError(.transient, message, networkFailure: .connectionLost)))
        }
        let delay = terms.retry.backoff.delay(failures: tries, jitter: context.jitter)
        sources.primary.notBefore = context.now + delay
        (waitReason, waitsForServer, lacksNetwork) = (reason, false, true)
        // Without a restart of the file, the number of attempts is not limited.
        let count = terms.attemptCount(tries, of: canJoin ? nil : allowed, .transient)
        let text = "\(reason)\(count); retrying in \(DurationText.inSentence(delay))"
        return Reaction([.notice(TransferNotice(.info, .retrying, text))])
    }

    /// The time without a response after which the user gets a notice that the transfer waits for the server.
    private static let silence = Duration.seconds(8)

    /// Notifies the user, once for each slow first response, that the transfer waits for it: a server may pack an
    /// archive before it responds.
    mutating func announceSilence(_ work: TransferWork, _ context: TransferContext) -> [TransferAction] {
        guard let attempt = work.live.first, work.liveCount == 1, !attempt.isAccepted, announcedSilence != attempt.id,
            context.now - attempt.startedAt >= Self.silence
        else { return [] }
        announcedSilence = attempt.id
        let limit = DurationText.inSentence(terms.headTimeout)
        let text =
            "the server has not responded for \(DurationText.inSentence(Self.silence)). Once connected,"
            + " \(Remedy.headTimeout) is \(limit)"
        return [.notice(TransferNotice(.info, .waiting, text))]
    }

    /// Waits for the host, which asked for a pause, while no attempt runs. Fails if the pause is longer than the user
    /// accepts.
    mutating func waitForHost(_ sources: inout TransferSources, _ context: TransferContext) -> Reaction {
        if let host = context.hostNotBefore, host > (sources.primary.notBefore ?? .zero) {
            waitReason = "the server asked for a pause before the next request (Retry-After)"
            waitsForServer = true
            sources.primary.notBefore = host
        }
        guard waitsForServer, sources.mirrors.isEmpty, let notBefore = sources.primary.notBefore,
            let error = terms.tooLong(notBefore - context.now, sources.primary.url)
        else { return [] }
        return Reaction([], .primaryFailed(error))
    }

    /// The time without a byte after which a connection that was open while the network was lost is replaced.
    private static let silenceAfterLoss = Duration.seconds(1)

    /// Records a change of the machine's network. Returns whether a network is available now, perhaps another one.
    mutating func replaceNetwork(_ network: NetworkState) -> Bool {
        (wasNetworkLost, isNetworkLost) = (isNetworkLost, network == .unavailable)
        return network == .available
    }

    /// Resets the waits and counts of failures after a change of the network, so that the next attempt starts at once:
    /// failures on the old network say little about the new network. A wait that the server asked for stays, because it
    /// concerns the server. After a loss, also ends the attempts that receive no bytes: the system may wait minutes
    /// until it sends on their connections again. A response that no other could continue stays, unless it has been
    /// silent for the stall timeout. Without a loss, other running attempts continue.
    mutating func networkReturned(
        _ sources: inout TransferSources, _ work: inout TransferWork, _ evidence: inout TransferEvidence,
        _ context: TransferContext
    ) -> [TransferAction] {
        let startsOver = evidence.startsOverBecause != nil
        let silent = work.live.filter { attempt in
            attempt.rates.isSilent
                || wasNetworkLost && context.now - attempt.lastProgressAt >= Self.silenceAfterLoss
                    && !(startsOver && attempt.isAccepted)
        }
        let isWaiting = work.liveCount == 0 && sources.primary.notBefore != nil && !waitsForServer
        guard isWaiting || !silent.isEmpty else { return [] }
        var actions: [TransferAction] = []
        for attempt in silent { actions += work.dismiss(attempt.id) + work.stopSharing(attempt.plan) }
        if !waitsForServer {
            (failures, evidence.changes.discards) = (0, 0)
            sources.forgetFailures()
        }
        let text = "the network connection of this machine changed. Reconnecting to the server now"
        return actions + [.notice(TransferNotice(.info, .retrying, text))]
    }

    /// Records that an attempt at a source wrote bytes, which resets the counts of its failures.
    mutating func noteProgress(at source: SourceID, _ sources: inout TransferSources) {
        failures = 0
        sources[source].tries = 0
        // Bytes of another source are written.
        sources.refutation = nil
        if sources.mirrors.isEmpty || source == .primary { expirations = 0 }
    }

    /// Waits before the request that follows a restart of the download. The first restart is immediate. A server that
    /// makes every response useless is not asked in a loop.
    mutating func wait(
        before restart: Restart, discards: Int, _ sources: inout TransferSources, jitter: Double, now: Duration
    ) {
        guard discards > 1, restart.keeper == nil, restart.waits else { return }
        let delay = terms.retry.backoff.delay(failures: discards - 1, jitter: jitter)
        sources.primary.wait(until: now + delay)
        (waitReason, lacksNetwork) = (restart.reason, false)
    }

    /// Discards the bytes that are not in `durable` after a failed sync: Linux may drop pages whose write-back failed.
    /// A second failed sync ends the transfer with `error`. A failure after which there is more room does not count.
    ///
    /// - Parameter room: the actions that make room on a full disk.
    mutating func lostBytes(
        except durable: ByteRangeSet, _ error: TowlineError, _ room: [TransferAction], _ work: inout TransferWork
    ) -> Reaction {
        if room.isEmpty { syncFailures += 1 }
        work.loseBytes(except: durable)
        guard syncFailures < 2 else { return Reaction([], .fail(error)) }
        let text = "\(error.message). The downloaded bytes that were not yet saved to disk are downloaded again"
        return Reaction(room + [.notice(TransferNotice(.warning, .disk, text))], .drain(.resume))
    }
}
