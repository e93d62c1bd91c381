/// The support of a server for range requests, and the reliability of its validators, as its responses showed them. A
/// transfer resumes and uses several connections only if they allow it.
struct RangeKnowledge: Sendable {
    /// The server's support for range requests for this file, as far as responses have shown it.
    var support: RangeSupport
    /// The conclusions from requests that the server may have refused only because of their Range field.
    var doubt = RangeDoubt()
    /// The number of range requests refused by the server since it last sent a requested range. After a few, the
    /// transfer uses a single connection.
    var refusals = 0
    /// `true` if the server rejects `If-Range`: instead, each 206 response must repeat the strong validator.
    var dislikesIfRange = false
    /// `true` if the server repeats the strong validator only in weak form (`W/`): bytes before resume points are
    /// compared.
    var isWeakened = false
    /// `true` if responses of one version of the file have different validators and the user gave a checksum, the only
    /// proof then.
    var ignoresValidators = false
    /// `true` if an earlier transfer found that the server supports no range requests for the file. Before the first
    /// response of this transfer, messages then give this as the reason for a restart.
    var lackedBefore = false

    /// `true` once the user was notified that an interruption restarts the download. The notice is shown once.
    var hasAnnouncedRestart = false

    init(support: RangeSupport) { self.support = support }

    /// The support of a server for range requests (HTTP 206) for one file, as far as it is known.
    enum RangeSupport: Hashable, Sendable {
        case unknown
        /// Range requests work: the server sent a valid 206 response.
        case works
        /// The server announces range support, but has not sent a range yet.
        case claimed
        /// Range requests do not work: requests have no `Range` field from now on, and one connection is used.
        case broken
    }

    /// Resets what responses showed about the server, because another server serves the file from now on.
    mutating func forgetServer() {
        (support, doubt, refusals, dislikesIfRange, isWeakened) = (.unknown, RangeDoubt(), 0, false, false)
    }
}

/// The handling of refused ranges: some servers and firewalls refuse a request only because of its Range field.
///
/// Such a request is repeated once without Range before the refusal counts. Only a plain request shows that a file is
/// missing.
extension RangeKnowledge {
    /// The circumstances of a refused request, which decide whether it is repeated without a Range field.
    struct Refused {
        /// The refused request: the requested bytes, and the known length and validators of the file.
        var question: ResponseQuestion
        /// `true` if the request went to the primary source, and no other request runs. Other requests could show that
        /// ranges work.
        var isAlone: Bool
        /// `true` if there are no written bytes that another request could continue, so that the next request begins
        /// the file.
        var beginsAnew: Bool
        /// `true` if the link that refused the request is old, and a renewed one may work.
        var isOldLink: Bool
        /// `true` if the download can continue without the primary source.
        var mirrorsGoOn: Bool
        /// `true` if another source (a mirror) exists that may get a request.
        var hasMirror: Bool
        /// `true` if other transfers of this process receive bytes from the host.
        var othersWork: Bool
    }

    /// Returns whether a request is repeated without Range, because the server may have refused it only for that field.
    /// Otherwise the verdict on the response is handled as usual.
    mutating func blamesRange(_ verdict: ResponseVerdict, _ refused: Refused, _ terms: TransferTerms) -> Bool {
        let isPlain = refused.question.asked == .whole
        switch verdict {
        case .askWithoutRange: break
        case .permanent(let error):
            guard let status = error.status, Self.mayRefuseRange(status) else { return false }
            if isPlain { doubt.isRefuted = true }
        case .linkExpired:
            if isPlain { doubt.isRefuted = true }
            // An expired link is first renewed, which keeps the bytes. Refusals of an old link do not count.
            if refused.isOldLink { return false }
        case .transient(_, let retryAfter, _, let status):
            guard Self.mayRefuseRange(status) else { return false }
            return doubtsRange(refused, passes: true, waits: retryAfter != nil, terms)
        default: return false
        }
        return doubtsRange(refused, passes: false, terms)
    }

    /// Returns whether the Range field may be the reason for a refusal with this HTTP status.
    private static func mayRefuseRange(_ status: Int) -> Bool {
        // 407 is about the proxy, and 425 and 429 are about the time.
        (400..<600).contains(status) && ![407, 425, 429].contains(status)
    }

    /// The number of temporary refusals in a row, each followed by a wait, after which a request without a Range field
    /// replaces the range request.
    private static let passingRefusals = 3

    /// Returns whether a refused range request counts as a temporary refusal, so that the range is requested again
    /// after a wait. `waits`: `true` if the server asked for a pause.
    ///
    /// A server that has sent ranges before, or asks for a pause, gets a few such waits before a request without Range,
    /// whose response would replace the written bytes.
    private mutating func isPassing(_ refused: Refused, waits: Bool, _ terms: TransferTerms) -> Bool {
        guard !refused.beginsAnew, waits || support == .works else { return false }
        doubt.refusals += 1
        return doubt.refusals < min(Self.passingRefusals, terms.retry.allowedTries(limit: nil) ?? .max)
    }

    /// Records that a request was refused, perhaps for its Range field.
    ///
    /// - Parameters:
    ///   - passes: `true` if the refusal may be temporary: requests with and without Range then alternate, and all but
    ///     the first refusal count as failures.
    ///   - waits: `true` if the server asked for a pause.
    /// - Returns: `true` if the next request is sent immediately, without Range, before the refusal counts.
    mutating func doubtsRange(_ refused: Refused, passes: Bool, waits: Bool = false, _ terms: TransferTerms) -> Bool {
        guard refused.isAlone, refused.question.asked != .whole, !doubt.isRefuted,
            refused.beginsAnew || !terms.isStream, !refused.mirrorsGoOn
        else { return false }
        // Other sources are asked first.
        if passes, refused.hasMirror { return false }
        if passes, isPassing(refused, waits: waits, terms) { return false }
        let isFirst = !doubt.hasAskedPlain || doubt.asksAgain
        doubt.asksPlain = true
        doubt.isCertain = doubt.isCertain || !passes
        guard passes else { return true }
        // Other downloads of this process that use all connections may be the reason, and only time helps.
        guard isFirst, !waits, !refused.othersWork else {
            doubt.hasAskedPlain = true
            return false
        }
        return true
    }
}

/// The reactions to responses that do not contain the requested range. `mirrorsGoOn`: `true` if the download can
/// continue without the primary source.
extension RangeKnowledge {
    /// Handles a response that does not contain the requested range. The first refusal is retried; after the second,
    /// the download starts over without Range, on a single connection, unless other attempts or mirrors continue.
    mutating func rangeRefused(
        _ id: AttemptID, _ reason: String, mirrorsGoOn: Bool, _ sources: inout TransferSources,
        _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        refusals += 1
        let actions = work.dismiss(id)
        let others = work.workingAtPrimary(context)
        guard others == 0 else {
            goOnWith(others, &sources, &work, context)
            return Reaction(actions)
        }
        guard refusals >= 2 else { return Reaction(actions) }
        if mirrorsGoOn {
            return Reaction(actions, .primaryFailed(.unusable(sources.primary.url, reason)))
        }
        support = .broken
        work.isSingle = true
        hasAnnouncedRestart = true
        let text =
            "the server does not handle range requests correctly: \(reason)."
            + " Continuing with a single connection; an interrupted download cannot be resumed"
        return Reaction(
            actions + [.notice(TransferNotice(.warning, .singleStream, text))],
            .startOver(Restart(reason: reason, waits: true)))
    }

    /// Limits the connections to the number (`others`) of attempts that receive bytes, because the server sent one
    /// connection no valid range. After four refused ranges, no connection is added.
    func goOnWith(
        _ others: Int, _ sources: inout TransferSources, _ work: inout TransferWork, _ context: TransferContext
    ) {
        sources.limitConnections(to: others, &work.budget, context)
        if refusals >= 4, sources.mirrors.isEmpty { work.isSingle = true }
    }

    /// Handles a refused range request if no other request can help: later requests omit Range, and the download starts
    /// over if bytes are written.
    mutating func withoutRange(
        _ id: AttemptID, _ reason: String, mirrorsGoOn: Bool, _ sources: inout TransferSources,
        _ work: inout TransferWork,
        _ context: TransferContext
    ) -> Reaction {
        // If other attempts receive ranges, the refusal is a fault of that connection.
        guard work.workingAtPrimary(context) == 0 else {
            return rangeRefused(id, reason, mirrorsGoOn: mirrorsGoOn, &sources, &work, context)
        }
        if mirrorsGoOn {
            return Reaction(work.dismiss(id), .primaryFailed(.unusable(sources.primary.url, reason)))
        }
        support = .broken
        work.isSingle = true
        let actions = work.dismiss(id)
        guard !work.ledger.written.isEmpty else { return Reaction(actions) }
        return Reaction(actions, .startOver(Restart(reason: reason)))
    }
}
