/// A transfer's knowledge of the file on the server, such as its metadata and checksums, and of the bytes already
/// written. It decides whether new bytes may be joined to them.
struct TransferEvidence: Sendable {
    let terms: TransferTerms
    /// The metadata (length, validators) of the file that the written bytes belong to; `nil` before the first response.
    var representation: Representation?
    /// The known checksums of the whole file, from the user and the server. The complete file must match them.
    var checksums: [Checksum]
    /// The checksums in the fields of responses, and the bytes requested again because one did not match.
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
    /// `true` if this transfer has received a response that defines the file or fits the written bytes. Only then may
    /// it add connections.
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

/// The effect of checksums in responses on how the requests of a transfer may be stopped.
extension TransferEvidence {
    /// `true` if flipped bits are detected only by a digest of each response, because no checksum of the file is known.
    /// Responses then are not stopped early.
    var needsWholeResponses: Bool { digests.areSent && checksums.isEmpty }
}
