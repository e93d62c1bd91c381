/// The changes of the file on the server that responses to a transfer showed or claimed, and the restarts of the
/// transfer because of them.
struct FileChanges: Sendable {
    /// The number of times that this transfer restarted at the first byte.
    var restarts = 0
    /// The number of restarts in a row, without new bytes joined to written ones between them. The retry limit applies
    /// to it.
    var discards = 0
    /// `true` while another request has to confirm that the file changed, as a response claimed.
    var isConfirming = false
    /// The version that a response claimed if a request for the whole file has to repeat it; `nil` without one.
    var claim: ClaimedVersion?
    /// The number of requests in a row that had to confirm a claimed change of the file.
    var confirmations = 0
    /// The number of claimed changes of the file that were not confirmed: the server seems to send several versions.
    var flips = 0
    /// `true` if the bytes of an earlier version were resumed, and no new bytes were joined to them since then.
    var hasReturned = false
    /// The paused response whose body becomes the file in a restart; `nil` if a restart sends a new request.
    var keptAnswer: ResponseFacts?
    /// The metadata (length, validators) of the file whose bytes a restart discarded. If the next response has the same
    /// validator but no length, this length applies.
    var givenUp: Representation?
    /// The length of the file whose bytes the response replaces, unless the response shows another version. A response
    /// that ends earlier only because its connection closed is incomplete.
    var minimumLength: Int64?
    /// The metadata (length, validators) of the file in the last response that defined the file. If it changes, readers
    /// of the incomplete file must read again.
    var lastAdopted: Representation?

    /// Records the length that a response without one must have if it does not show another version: that of the file
    /// whose bytes a restart discarded, or that of the `held` version.
    ///
    /// - Returns: that length if the response has the same strong validator, otherwise `nil`. A body that ends earlier
    ///   is incomplete, however it is framed (RFC 9112 §8).
    mutating func noteKnownLength(
        for facts: ResponseFacts, over held: Representation?, _ terms: TransferTerms
    ) -> Int64? {
        guard let known = givenUp ?? held, facts.contentCoding == nil, !terms.ignoresLength,
            known.contradiction(with: facts.representation) == nil,
            terms.changed != .accept || known.repeatsValidator(of: facts.representation, weakly: true)
        else { return nil }
        minimumLength = known.completeLength
        return known.repeatsValidator(of: facts.representation, weakly: false) ? known.completeLength : nil
    }

    /// Returns the metadata of the last response with the length of an earlier one, if the last one gave none and did
    /// not show another version.
    func withLength(_ last: Representation?) -> Representation? {
        var known = last
        known?.completeLength = last?.completeLength ?? minimumLength
        return known
    }

    /// The number of requests in a row that have to confirm a change if the server is known to send several versions.
    /// After them, the file counts as changed.
    private static let confirmationLimit = 4

    /// Returns whether a new validator is believed: another request confirmed the change, and the server is not known
    /// to send several versions. Otherwise the next request has to confirm it.
    ///
    /// - Parameter isConfirmation: `true` if the request had to confirm an earlier claim.
    mutating func isBelieved(isConfirmation: Bool) -> Bool {
        if isConfirmation, flips == 0 || confirmations >= Self.confirmationLimit { return true }
        (isConfirming, confirmations) = (true, confirmations + 1)
        return false
    }

    /// Forgets the claimed change of the file: it is confirmed, or the server does not repeat it.
    mutating func forgetClaim() { (isConfirming, claim) = (false, nil) }

    /// Forgets the version that a request for the whole file had to repeat: that request was answered or failed.
    mutating func endClaim() { if claim != nil { forgetClaim() } }

    /// Records that a request that had to confirm a change got the held version.
    mutating func noteFlip() {
        forgetClaim()
        flips += 1
    }

    /// Records that new bytes were joined to written ones, and that an earlier part file has fewer bytes.
    mutating func noteJoined() { (discards, hasReturned) = (0, false) }

    /// Counts a restart of the download at the first byte, and checks that the user's options and the retry limit allow
    /// it.
    ///
    /// - Parameter holdsBytes: `true` if written bytes are discarded.
    /// - Returns: the error with which the transfer fails instead; `nil` if it may restart.
    mutating func countRestart(_ restart: Restart, holdsBytes: Bool, _ terms: TransferTerms) -> TowlineError? {
        let reason = restart.reason
        if restart.isChange, terms.changed == .fail { return .changed(terms.source, reason) }
        if terms.isStream, holdsBytes {
            return .cannotRestartStream(terms.source, reason, isChange: restart.isChange)
        }
        (restarts, discards) = (restarts + 1, discards + 1)
        (isConfirming, claim, confirmations) = (false, nil, 0)
        guard let most = terms.retry.allowedTries(limit: nil), discards > most else { return nil }
        return .tooManyRestarts(terms.source, most, reason)
    }

    /// Counts a return to the version that was replaced last as a restart.
    ///
    /// - Returns: the error with which the transfer fails instead; `nil` if the retry limit allows it.
    mutating func countReturn(_ terms: TransferTerms) -> TowlineError? {
        hasReturned = true
        let restart = Restart(reason: "the server sends different versions of the file alternately")
        return countRestart(restart, holdsBytes: false, terms)
    }

    /// Decides whether a response may replace the held version, and records its claim if another request has to repeat
    /// it.
    ///
    /// - Parameters:
    ///   - isWhole: `true` if the body of the response is the whole file.
    ///   - plan: the request, which perhaps had to confirm an earlier claim.
    /// - Returns: the step that follows instead; `nil` if the response may be used.
    mutating func weigh(
        _ offer: ResponseFacts, isWhole: Bool, to plan: AttemptPlan, over held: HeldVersion, _ terms: TransferTerms
    ) -> Reaction.Next? {
        switch held.belief(in: offer) {
        case .same, .changed: return nil
        case .refused where terms.options.acceptsWebPages && offer.isWebPage: return nil
        case .refused: return .retry(plan, offer.refusal(keeping: held))
        case .unconfirmed:
            // The checksum of the whole file decides.
            if terms.options.checksum != nil { return nil }
            if let claim, plan.isConfirmation {
                return isWhole && claim.isRepeated(by: offer.representation)
                    ? nil : .retry(plan, offer.refusal(keeping: held))
            }
            (isConfirming, claim) = (true, ClaimedVersion(representation: offer.representation))
            return .confirm(
                reason: "the server seems to have another version of the file (\(offer.summary))."
                    + " Another request has to confirm the change")
        }
    }
}
