/// The part file, and the bytes of earlier responses in it.
struct HeldPart: Sendable {
    /// `true` once a part file exists.
    var exists = false
    /// `true` if the bytes of the next response go into a new part file.
    var isReplaced = false
    /// The kind of bytes in the part file that the next response replaces; `.nothing` without such a file.
    var replaced = HeldKind.nothing
    /// The media type of the bytes in the part file that the next response replaces.
    var replacedMediaType: String?
    /// `true` if the part file is a copy, so that bytes before resume points are compared.
    var isDoubtful = false
    /// The number of bytes that an earlier transfer left and that this one uses.
    var resumedBytes: Int64 = 0
    /// `true` if the user has yet to be notified that bytes of an earlier transfer are reused.
    var announcesResuming = false
    /// A number that increases when written bytes are discarded: the bytes that a reader has may then be wrong.
    var generation = 0

    /// Increases the content generation, the number that tells readers to read again, if written bytes are discarded.
    mutating func giveUp(_ ledger: RangeLedger) {
        if !ledger.written.isEmpty { generation += 1 }
    }

    /// Tells the user once that bytes are joined to those of an earlier transfer. Before the first joined byte, the
    /// server may turn out to have another file.
    mutating func announceResuming() -> [TransferAction] {
        guard announcesResuming else { return [] }
        announcesResuming = false
        let size = ByteCountText.format(resumedBytes)
        return [.notice(TransferNotice(.info, .resumed, "resuming: \(size) already downloaded"))]
    }
}
