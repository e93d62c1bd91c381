/// The handling of responses whose end is not proven, for example by a length: a cut body looks like a complete one.
extension TransferStateMachine {
    /// A response that began with the first byte of the file, and whose end is not proven.
    struct UnprovenAnswer: Sendable {
        let length: Int64
        let representation: Representation?
        let framing: AttemptEnd.Framing
        /// The number of such responses so far, including this one.
        let count: Int
    }

    /// The number of responses with unproven ends, each at another length, after which the transfer fails.
    private static let mostUnproven = 5

    /// Requests the file again after a response of unknown length without a proven end.
    ///
    /// - Returns: `nil` if the length counts: two responses ended there, or a checksum decides. No further response can
    ///   correct bytes written to a stream: over HTTP/2 the length counts; without close_notify, where anybody on the
    ///   path can cut the response, it does not.
    mutating func unprovenEnd(_ attempt: Attempt, _ framing: AttemptEnd.Framing) -> [TransferAction]? {
        if terms.isStream {
            return framing == .unclosed && terms.checksum == nil ? fail(unprovenStream(attempt.position)) : nil
        }
        guard unproven?.length != attempt.position else { return nil }
        let count = (unproven?.count ?? 0) + 1
        unproven = UnprovenAnswer(
            length: attempt.position, representation: representation, framing: framing, count: count)
        guard checksums.isEmpty else { return nil }
        guard count < Self.mostUnproven else { return fail(differentLengths(count)) }
        needsOwnConnection = true
        let size = ByteCountText.format(attempt.position)
        let how = framing == .stream ? " (HTTP/2)" : " and ended TLS without a closing message (close_notify)"
        let reason =
            "the server ended the response after \(size) and did not send the length of the file\(how),"
            + " so another request\(framing == .stream ? ", over HTTP/1.1," : "") has to confirm the length"
        guard joinRung == nil else { return [.notice(TransferNotice(.info, .retrying, reason))] }
        return startOver(because: reason, isChange: false)
    }

    private func unprovenStream(_ length: Int64) -> TowlineError {
        TowlineError(
            .lengthUnproven,
            "\(primary.url): the server ended the response after \(ByteCountText.format(length)) without sending its length"
                + " and without closing TLS (close_notify), so the output may be incomplete. Use --checksum to verify it."
                + " With -o FILE, another request confirms the length")
    }

    private func differentLengths(_ count: Int) -> TowlineError {
        TowlineError(
            .lengthUnproven,
            "\(primary.url): each of \(count) responses ended at another length, and the server does not send the length of"
                + " the file, so the file may be incomplete. Use --checksum to verify the file, or try again later")
    }

    /// Starts over, once, after a checksum mismatch of a response whose end was not proven: it may have been cut.
    ///
    /// - Returns: `nil` if the end was proven, or if the transfer has already started over.
    mutating func restartUnproven() -> [TransferAction]? {
        guard let unproven, unproven.length == ledger.completeLength, tally.restarts == 0 else { return nil }
        return startOver(
            because: "the downloaded file does not match its checksum, probably because the response was cut",
            isChange: false)
    }

    /// Accepts the last response without a proven end as the file if the server refuses (`error`) to send it again: the
    /// link may be for a single use.
    ///
    /// - Returns: `nil` if no such response exists, or its bytes are no longer on disk.
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
        return [learnAction()] + noticeWithoutLength(answer.length, answer.framing)
    }
}
