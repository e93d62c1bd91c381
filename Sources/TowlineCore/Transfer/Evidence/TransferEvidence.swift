/// The known facts about the file on the server, and the proof that joins new bytes to the written ones.
struct TransferEvidence: Sendable {
    let terms: TransferTerms
    /// The metadata (length, validators) of the file that the written bytes belong to; `nil` before the first response.
    var representation: Representation?
    /// The known checksums of the whole file.
    var checksums: [Checksum]
    /// The checksums that responses contained.
    var digests = ResponseDigests()
    /// The checksum of the file that a redirect response contained about its target; `nil` without one.
    var linked: LinkedChecksum?
    var ranges: RangeKnowledge
    var coding = ContentCoding()
    var part = HeldPart()
    /// The file that an update may replace; `nil` once a response shows another version of the file.
    var existing: ExistingFile?
    var changes = FileChanges()
    var unproven = UnprovenEnds()
    /// `true` if this transfer has received a response that fits the written bytes.
    var isConfirmed = false
    /// `true` if bytes of two responses were joined with less proof than a strong validator.
    var joinedWeakly = false
    /// The file name that the server gave; empty before the first response.
    var fileName = ""

    init(_ terms: TransferTerms) {
        self.terms = terms
        checksums = terms.options.checksum.map { [$0] } ?? []
        ranges = RangeKnowledge(support: terms.ignoresLength ? .broken : .unknown)
    }
}

/// The proof that joins bytes.
extension TransferEvidence {
    /// `true` if flipped bits are detected only by a digest of each response, because no checksum of the file is known.
    /// Responses then are not stopped early.
    var needsWholeResponses: Bool { digests.areSent && checksums.isEmpty }
}
