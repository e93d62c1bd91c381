/// The checksums that the responses to a transfer contained, and the bytes requested a second time because one did not
/// match.
struct ResponseDigests: Sendable {
    /// The response fields that contained checksums of the whole file, by checksum, so that error messages can name
    /// them.
    var fields: [Checksum: ServerChecksum] = [:]
    /// `true` if responses carry a digest of their content. It can be checked only on a complete response, so responses
    /// are not stopped early.
    var areSent = false
    /// The ranges that were requested a second time because a checksum of their response did not match.
    var repeated = ByteRangeSet()

    /// Requests all bytes once more after a mismatch with the server's checksum, because a bit may have flipped in
    /// transit.
    ///
    /// - Returns: `nil` if bytes were already requested a second time, or if written bytes cannot be discarded.
    mutating func repeatAll(
        _ field: ServerChecksum?, _ part: inout HeldPart, _ work: inout TransferWork, _ terms: TransferTerms
    ) -> Reaction? {
        let all = ByteRange(0, work.ledger.completeLength ?? 0)
        guard !terms.isStream, !all.isEmpty, repeated.intersection(all).isEmpty else { return nil }
        part.generation += 1
        repeated.insert(all)
        return Reaction(requestAgain(all, field?.field, &work), .downloadMore)
    }

    /// Discards bytes that do not match a checksum, so that they are requested again, and returns a notice for the
    /// user.
    private func requestAgain(_ wrong: ByteRange, _ field: String?, _ work: inout TransferWork) -> [TransferAction] {
        work.giveUp(wrong)
        return [.withdraw(wrong), .notice(.requestedAgain(wrong.count, field))]
    }

    /// Handles content of a response that does not match the response's own checksum. The bytes from the offset `start`
    /// on are requested a second time. A second mismatch means that the checksum is wrong.
    mutating func wrongContent(
        _ attempt: RunningAttempt, from start: Int64, _ part: inout HeldPart, _ sources: inout TransferSources,
        _ work: inout TransferWork
    ) -> Reaction {
        let (field, terms) = (attempt.digestField, sources.terms)
        let error = TowlineError.wrongByServer(sources.primary.url, "the received bytes do", field, terms)
        if terms.isStream { return Reaction([], .fail(error)) }
        var reaction: Reaction = []
        if case .mirror(let index) = attempt.plan.source {
            let text =
                "the bytes received from this mirror do not match the checksum that it sent\(TowlineError.named(field)),"
                + " so this mirror is not used any more"
            reaction = sources.leaveOut(index, text, &work)
        }
        let wrong = ByteRange(start, max(start, attempt.position))
        // A comparison writes no bytes.
        if attempt.plan.isComparison { return reaction }
        if !work.ledger.written.intersection(wrong).isEmpty { part.generation += 1 }
        let isRepeated = attempt.plan.source == .primary && !repeated.intersection(wrong).isEmpty
        guard isRepeated else {
            if attempt.plan.source == .primary { repeated.insert(wrong) }
            reaction.actions += requestAgain(wrong, field, &work)
            return reaction
        }
        // The user's own checksum decides when the file is complete.
        if let checksum = terms.options.checksum, !checksum.isForgeable { return reaction }
        if work.ledger.isWhole, work.attempts.isEmpty { return Reaction([], .failAside(error)) }
        work.giveUp(wrong)
        return Reaction([.withdraw(wrong)], .fail(error))
    }
}
