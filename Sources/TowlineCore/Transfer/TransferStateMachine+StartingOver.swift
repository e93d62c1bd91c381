/// What an interruption would cost, said before there is one.
extension TransferStateMachine {
    /// Shorter files start over anyway, and nobody minds.
    private static let worthSaying: Int64 = 1 << 20
    /// Why nothing goes on where a server gives only the whole.
    static let noRanges = "the server does not offer ranges"

    /// The server gives no ranges of what is held, as far as is known.
    var lacksRanges: Bool {
        switch ranges {
        case .works, .claimed: false
        case .broken: true
        // A whole answer to a range, and no word of ranges in it.
        case .unknown: isConfirmed || heldLacksRanges
        }
    }

    /// Why another transfer could not go on with what is held, in words.
    var startsOverBecause: String? {
        if terms.isStream { return "standard output keeps nothing" }
        if contentCoding != nil { return "the server sends it coded" }
        if lacksRanges { return Self.noRanges }
        guard let representation, representation.validator == .none, checksums.isEmpty, !terms.unsafeResume else {
            return nil
        }
        return "the server gives no validator"
    }

    /// Says so once, when the download begins.
    mutating func announceStartingOver() -> [TransferAction] {
        guard let reason = startsOverBecause, contentCoding == nil, !terms.isStream, tally.announcements == 0,
            (ledger.completeLength ?? .max) >= Self.worthSaying
        else { return [] }
        tally.announcements += 1
        let wayOut = lacksRanges ? "" : " (--checksum or --unsafe-resume would allow to go on)"
        let text = "\(reason): an interruption starts over\(wayOut)"
        return [.notice(TransferNotice(.info, .singleStream, text))]
    }
}
