/// Verifies and publishes, once every byte is written.
extension TransferStateMachine {
    mutating func finish() -> [TransferAction] {
        let length = ledger.completeLength ?? 0
        guard !checksums.isEmpty else { return publish() }
        phase = .verifying
        return [.verify(checksums, length: length)]
    }

    private mutating func publish() -> [TransferAction] {
        phase = .publishing
        return [.publish(length: ledger.completeLength ?? 0, modified: representation?.lastModified)]
    }

    mutating func verified(_ mismatches: [ChecksumMismatch]) -> [TransferAction] {
        guard phase == .verifying else { return [] }
        if mismatches.isEmpty {
            return [.notice(.verified(checksums))] + publish()
        }
        if let actions = doubtMirrors() { return actions }
        if joinedWeakly, !terms.isStream, tally.restarts < 2 {
            // The bytes were joined on the strength of this checksum alone: it says no, so join nothing.
            isSingle = true
            ranges = .broken
            let reason = "the downloaded file does not match its checksum; its parts may be from different versions"
            return startOver(because: reason, isChange: false)
        }
        let mine = mismatches.contains { $0.expected == terms.checksum }
        let wrong =
            mine
            ? "the downloaded file does not match the expected checksum"
            : "the downloaded file does not match the checksum that the server sent"
        let values = mismatches.map(\.description).joined(separator: "; ")
        let error = TowlineError(
            .checksumMismatch,
            "\(primary.url): \(wrong): \(values). "
                + (terms.isStream
                    ? "The wrong bytes were already written to standard output. Discard the output"
                    : "The file was not saved under its final name. Check the checksum, or download again"))
        if mine, let actions = replacePrimary(refutedBy: error) { return actions }
        phase = .draining(.end(.failed(error)))
        return (terms.isStream ? [] : [.setAside]) + drained()
    }
}
