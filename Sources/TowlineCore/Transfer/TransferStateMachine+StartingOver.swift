/// What an interruption would cost, said before there is one.
extension TransferStateMachine {
    /// Shorter files start over anyway, and nobody minds.
    private static let worthSaying: Int64 = 1 << 20
    /// Why nothing goes on where a server gives only the whole.
    static let noRanges = "the server does not support range requests for this file and can send only the whole file"
    private static let ignoredLength =
        "the server's Content-Length is ignored (--ignore-length), so only the whole file can be requested"
    /// Why bytes cannot be joined to those held.
    static let noProof =
        "the server sends no strong ETag or date to prove that the file is unchanged"
        + " (--checksum or --unsafe-resume allows resuming)"

    /// The server gives no ranges of what is held, as far as is known.
    var lacksRanges: Bool {
        switch ranges {
        case .works, .claimed: false
        case .broken: true
        // A whole answer to a range, and no word of ranges in it.
        case .unknown: isConfirmed || heldLacksRanges
        }
    }

    /// Why nothing can be joined to the held bytes.
    var lackOfProof: String { terms.ignoresLength ? Self.ignoredLength : lacksRanges ? Self.noRanges : Self.noProof }

    /// Why another transfer could not go on with what is held, in words.
    var startsOverBecause: String? {
        if terms.ignoresLength { return Self.ignoredLength }
        if terms.isStream { return "a download to standard output, a pipe or a device cannot be resumed" }
        if let contentCoding {
            let name = TerminalSafeText.make(contentCoding, width: 20)
            return "the server compresses the file (Content-Encoding: \(name)), and compressed files cannot be resumed"
        }
        if lacksRanges { return Self.noRanges }
        guard let representation, representation.validator == .none, checksums.isEmpty, !terms.unsafeResume else {
            return nil
        }
        return "the server sends neither an ETag nor a Last-Modified date to prove that the file is unchanged"
    }

    /// Says so once, when the download begins.
    mutating func announceStartingOver() -> [TransferAction] {
        guard let reason = startsOverBecause, contentCoding == nil, !terms.isStream, tally.announcements == 0,
            (ledger.completeLength ?? .max) >= Self.worthSaying
        else { return [] }
        tally.announcements += 1
        let wayOut = lacksRanges ? "" : ". To resume anyway, use --checksum or --unsafe-resume"
        let text = "\(reason). An interrupted download restarts from the beginning\(wayOut)"
        return [.notice(TransferNotice(.info, .singleStream, text))]
    }
}
