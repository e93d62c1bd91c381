/// The reactions of a transfer to a complete file that does not match its checksums.
extension TransferEvidence {
    /// Returns a notice that the file is accepted although `mismatches` include a checksum of the server: the user's
    /// own checksum matches, which nobody can forge. Returns `nil` otherwise.
    func outranked(_ mismatches: [ChecksumMismatch]) -> TransferNotice? {
        guard let checksum = terms.options.checksum, !checksum.isForgeable,
            !mismatches.contains(where: { $0.expected == checksum })
        else { return nil }
        return .outranked(mismatches.compactMap { digests.fields[$0.expected] }.first)
    }

    /// Handles a complete file that does not match its checksums: bytes that may be wrong are downloaded again, from
    /// other sources if possible. Otherwise the transfer fails.
    mutating func refuted(
        by mismatches: [ChecksumMismatch], _ sources: inout TransferSources, _ work: inout TransferWork
    ) -> Reaction {
        let isMine = mismatches.contains { $0.expected == terms.options.checksum }
        let field = mismatches.compactMap { digests.fields[$0.expected] }.first
        let cut = unproven.restart(of: work.ledger.completeLength, restarts: changes.restarts)
        if let reaction = sources.doubtMirrors(&self, &work) ?? cut { return reaction }
        if joinedWeakly, !terms.isStream, changes.restarts < 2 {
            // Only this checksum justified joining the bytes. As it does not match, the next download joins nothing.
            work.isSingle = true
            ranges.support = .broken
            let reason = "the downloaded file does not match its checksum; its parts may be from different versions"
            return Reaction([], .startOver(Restart(reason: reason, areBytesWrong: true)))
        }
        if !isMine, field?.isOfContent == true, let reaction = digests.repeatAll(field, &part, &work, terms) {
            return reaction
        }
        let values = mismatches.map(\.description).joined(separator: "; ")
        let url = sources.primary.url
        guard isMine else {
            let subject = "the downloaded file does"
            return Reaction([], .failAside(.wrongByServer(url, subject, field?.field, values: ": \(values)", terms)))
        }
        let error = TowlineError.wrongByUser(url, values, terms)
        return sources.replacePrimary(refutedBy: error, &self, &work) ?? Reaction([], .failAside(error))
    }
}
