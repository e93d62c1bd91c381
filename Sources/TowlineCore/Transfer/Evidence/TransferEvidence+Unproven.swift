/// The handling of responses whose end is not proven, for example by a length: a cut body looks like a complete one.
extension TransferEvidence {
    /// Requests the file again after a response without a proven end, so that another response confirms the length.
    ///
    /// - Returns: `nil` if the length counts.
    mutating func unprovenEnd(
        _ attempt: RunningAttempt, _ framing: AttemptEnd.Framing, at url: HTTPURL, _ work: inout TransferWork
    ) -> Reaction? {
        let response = UnprovenEnds.Response(
            length: attempt.position, representation: representation, framing: framing)
        let canJoin = joinRung(work.ledger) != nil
        let reaction = unproven.add(response, from: url, hasChecksum: !checksums.isEmpty, canJoin: canJoin, terms)
        if reaction != nil { work.needsOwnConnection = true }
        return reaction
    }

    /// Accepts the last response without a proven end as the file if the server refuses (`error`) to send it again: the
    /// link may be for a single use.
    ///
    /// - Returns: `nil` if no such response exists, or its bytes are no longer on disk.
    mutating func acceptUnproven(insteadOf error: TowlineError, _ work: inout TransferWork) -> [TransferAction]? {
        guard let answer = unproven.last, part.exists, checksums.isEmpty,
            [.refusedByServer, .notFound].contains(error.code)
        else { return nil }
        let all = ByteRangeSet([ByteRange(0, answer.length)])
        guard part.isReplaced || work.ledger.written == all else { return nil }
        unproven.forget()
        work.ledger = RangeLedger(completeLength: answer.length, written: all)
        representation = answer.representation
        representation?.completeLength = answer.length
        part.isReplaced = false
        return [learnAction()] + noticeWithoutLength(answer.length, answer.framing)
    }

    /// Returns a notice that nothing proves the length of the file; empty if the way in which the body ended proves it.
    func noticeWithoutLength(_ length: Int64, _ framing: AttemptEnd.Framing) -> [TransferAction] {
        let notice = TransferNotice.withoutLength(length, framing, isIgnored: terms.ignoresLength)
        return notice.map { [.notice($0)] } ?? []
    }
}
