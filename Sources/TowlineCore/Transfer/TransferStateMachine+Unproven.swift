/// Answers whose end nothing proves: a cut body looks like a whole one.
extension TransferStateMachine {
    /// An answer that began with the first byte and ended without proof.
    struct UnprovenAnswer: Sendable {
        let length: Int64
        let representation: Representation?
    }

    /// Requests the file again after an answer of unknown length whose end nothing proves.
    ///
    /// - Returns: `nil` if the length counts: two answers ended there, a checksum decides, or the bytes went to a
    ///   stream, which no further answer can correct.
    mutating func unprovenEnd(_ attempt: Attempt) -> [TransferAction]? {
        guard !terms.isStream, unproven?.length != attempt.position else { return nil }
        unproven = UnprovenAnswer(length: attempt.position, representation: representation)
        guard checksums.isEmpty else { return nil }
        needsOwnConnection = true
        let size = ByteCountText.format(attempt.position)
        let reason =
            "the server ended the response after \(size) and did not send the length of the file (HTTP/2),"
            + " so another request, over HTTP/1.1, has to confirm the length"
        guard joinRung == nil else { return [.notice(TransferNotice(.info, .retrying, reason))] }
        return startOver(because: reason, isChange: false)
    }

    /// Starts over, once, after an answer without a proven end that does not match its checksum: it may have been cut.
    ///
    /// - Returns: `nil` if the end was proven.
    mutating func restartUnproven() -> [TransferAction]? {
        guard let unproven, unproven.length == ledger.completeLength, tally.restarts == 0 else { return nil }
        return startOver(
            because: "the downloaded file does not match its checksum, probably because the response was cut (HTTP/2)",
            isChange: false)
    }

    /// Takes the answer without a proven end for the file if the server refuses to send another one: the link may be
    /// for a single use.
    ///
    /// - Returns: `nil` if there is no such answer, or its bytes are no longer on disk.
    mutating func acceptUnproven(insteadOf error: TowlineError) -> [TransferAction]? {
        guard let answer = unproven, hasStorage, checksums.isEmpty, [.refusedByServer, .notFound].contains(error.code)
        else { return nil }
        let all = ByteRangeSet([ByteRange(0, answer.length)])
        guard replacesPart || ledger.written == all else { return nil }
        unproven = nil
        ledger = RangeLedger(completeLength: answer.length, written: all)
        representation = answer.representation
        representation?.completeLength = answer.length
        replacesPart = false
        return [learnAction()]
            + (TransferNotice.withoutLength(answer.length, .stream).map { [.notice($0)] } ?? [])
    }
}
