/// The reasons why a download cannot be resumed, and the notice that warns the user, when it begins, that an
/// interruption restarts it.
extension TransferEvidence {
    /// `true` if the server, as far as is known, sends no ranges, so that an interruption restarts the download.
    var lacksRanges: Bool {
        switch ranges.support {
        case .works, .claimed: false
        case .broken: true
        // A range request got the whole file, and the response did not mention ranges.
        case .unknown: isConfirmed || ranges.lackedBefore
        }
    }

    /// The reason, shown in messages to the user, why no new bytes can be joined to the written ones.
    var lackOfProof: String {
        terms.ignoresLength
            ? StartOverReason.ignoredLength : lacksRanges ? StartOverReason.noRanges : StartOverReason.noProof
    }

    /// The reason, as text, why another transfer could not resume with the written bytes but would start over; `nil` if
    /// it could resume.
    var startsOverBecause: String? {
        if terms.ignoresLength { return StartOverReason.ignoredLength }
        if terms.isStream { return "a download to standard output, a pipe or a device cannot be resumed" }
        if let name = coding.name {
            let name = TerminalSafeText.make(name, width: 20)
            return "the server compresses the file (Content-Encoding: \(name)), and compressed files cannot be resumed"
        }
        if lacksRanges { return StartOverReason.noRanges }
        guard let representation = representation, representation.validator == .none,
            checksums.isEmpty, !terms.options.allowsUnsafeResume
        else {
            return nil
        }
        return "the server sends neither an ETag nor a Last-Modified date to prove that the file is unchanged"
    }

    /// Notifies the user once, when the download begins, that an interruption restarts it.
    mutating func announceStartingOver(_ ledger: RangeLedger) -> [TransferAction] {
        guard let reason = startsOverBecause, coding.name == nil, !terms.isStream,
            !ranges.hasAnnouncedRestart,
            (ledger.completeLength ?? .max) >= StartOverReason.worthSaying
        else { return [] }
        ranges.hasAnnouncedRestart = true
        let wayOut = lacksRanges ? "" : ". To resume anyway, \(Remedy.checksum) or \(Remedy.unsafeResume)"
        let text = "\(reason). An interrupted download restarts from the beginning\(wayOut)"
        return [.notice(TransferNotice(.info, .singleStream, text))]
    }
}

/// The reasons why a download starts over instead of resuming, as texts for the user.
enum StartOverReason {
    /// The minimum length in bytes of a file for the notice that an interruption restarts the download.
    static let worthSaying: Int64 = 1 << 20

    /// The reason, shown to the user, why a download cannot be resumed if the server sends only whole files.
    static let noRanges = "the server does not support range requests for this file and can send only the whole file"

    /// The reason, shown in messages to the user, why a download that ignores Content-Length cannot be resumed.
    static let ignoredLength =
        "\(Remedy.ignoredLength), so only the whole file can be requested"

    /// The reason, shown to the user, why bytes cannot be joined to the written ones if the server sends no validator.
    static let noProof =
        "the server sends no strong ETag or date to prove that the file is unchanged"
        + " (to resume, \(Remedy.checksum) or \(Remedy.unsafeResume))"
}
