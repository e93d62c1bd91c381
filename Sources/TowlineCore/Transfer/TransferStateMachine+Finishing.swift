/// The verification and publishing of a file, once every byte is written.
extension TransferStateMachine {
    mutating func finish() -> [TransferAction] {
        let length = ledger.completeLength ?? 0
        // If the checksum does not match, the next state is connecting.
        lastReceivedAt = nil
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
        let mine = mismatches.contains { $0.expected == terms.checksum }
        let field = mismatches.compactMap { digestFields[$0.expected] }.first
        if !mine, let checksum = terms.checksum, !checksum.isForgeable {
            return [.notice(.outranked(field))] + publish()
        }
        if let actions = doubtMirrors() ?? restartUnproven() { return actions }
        if joinedWeakly, !terms.isStream, tally.restarts < 2 {
            // Only this checksum justified joining the bytes. As it does not match, the next download joins nothing.
            isSingle = true
            ranges = .broken
            let reason = "the downloaded file does not match its checksum; its parts may be from different versions"
            return startOver(because: reason, isChange: false)
        }
        if !mine, field?.isOfContent == true, let actions = repeatAll(field) { return actions }
        let values = mismatches.map(\.description).joined(separator: "; ")
        let error = mine ? wrongByUser(values) : wrongByServer("the downloaded file does", field?.field, ": \(values)")
        if mine, let actions = replacePrimary(refutedBy: error) { return actions }
        phase = .draining(.end(.failed(error)))
        return (terms.isStream ? [] : [.setAside]) + drained()
    }

    private func wrongByUser(_ values: String) -> TowlineError {
        TowlineError(
            .checksumMismatch,
            "\(primary.url): the downloaded file does not match the expected checksum: \(values). "
                + (terms.isStream
                    ? "The wrong bytes were already written to the output. Discard the output"
                    : "The file was not saved under its final name. Check the checksum, or download again"))
    }

    /// Returns the error for bytes that do not match a checksum from the server.
    ///
    /// - Parameters:
    ///   - subject: the subject of the error message, with its verb.
    ///   - field: the name of the field with the checksum; `nil` if unknown.
    ///   - values: the expected and computed checksums, which follow the field in the message.
    private func wrongByServer(_ subject: String, _ field: String?, _ values: String = "") -> TowlineError {
        let wayOut =
            terms.isStream
            ? "The bytes were already written to the output. Discard the output and download again"
            : "The file was not saved under its final name. Download again, or use --ignore-server-checksums if the"
                + " server's checksum may be wrong"
        return TowlineError(
            .checksumMismatch,
            "\(primary.url): \(subject) not match the checksum that the server sent\(Self.named(field))\(values)."
                + " \(wayOut)")
    }

    private static func named(_ field: String?) -> String { field.map { " (\($0))" } ?? "" }

    /// Requests all bytes once more after a mismatch with the server's checksum, because a bit may have flipped in
    /// transit.
    ///
    /// - Returns: `nil` if bytes were already requested a second time, or if written bytes cannot be discarded.
    private mutating func repeatAll(_ field: ServerChecksum?) -> [TransferAction]? {
        let all = ByteRange(0, ledger.completeLength ?? 0)
        guard !terms.isStream, !all.isEmpty, repeated.intersection(all).isEmpty else { return nil }
        phase = .running
        contentGeneration += 1
        repeated.insert(all)
        return requestAgain(all, field?.field)
    }

    private mutating func requestAgain(_ wrong: ByteRange, _ field: String?) -> [TransferAction] {
        giveUp(wrong)
        let size = ByteCountText.format(wrong.count)
        let text =
            "\(size) of received data do not match the checksum that the server sent\(Self.named(field))"
            + " and are downloaded again"
        return [.withdraw(wrong), .notice(TransferNotice(.warning, .retrying, text))]
    }

    /// Handles content of a response that does not match the response's own checksum. The bytes from the offset `start`
    /// on are requested a second time. A second mismatch means that the checksum is wrong.
    mutating func wrongContent(_ attempt: Attempt, from start: Int64) -> [TransferAction] {
        let field = attempt.digestField
        if terms.isStream { return fail(wrongByServer("the received bytes do", field)) }
        var actions: [TransferAction] = []
        if case .mirror(let index) = attempt.plan.source {
            actions = leaveOut(
                index,
                "the bytes received from this mirror do not match the checksum that it sent\(Self.named(field)),"
                    + " so this mirror is not used any more")
        }
        let wrong = ByteRange(start, max(start, attempt.position))
        // A comparison writes no bytes.
        if attempt.plan.isComparison { return actions }
        if !ledger.written.intersection(wrong).isEmpty { contentGeneration += 1 }
        let isRepeated = attempt.plan.source == .primary && !repeated.intersection(wrong).isEmpty
        guard isRepeated else {
            if attempt.plan.source == .primary { repeated.insert(wrong) }
            return actions + requestAgain(wrong, field)
        }
        // The user's own checksum decides when the file is complete.
        if let checksum = terms.checksum, !checksum.isForgeable { return actions }
        let error = wrongByServer("the received bytes do", field)
        if ledger.isWhole, attempts.isEmpty {
            phase = .draining(.end(.failed(error)))
            return actions + [.setAside] + drained()
        }
        giveUp(wrong)
        return actions + [.withdraw(wrong)] + fail(error)
    }
}
