/// The state of a transfer's part file (the incomplete file on disk) and of the bytes in it that came from earlier
/// responses or transfers.
struct HeldPart: Sendable {
    /// `true` once a part file (the incomplete file on disk) exists.
    var exists = false
    /// `true` if the part file is out of date, so that the bytes of the next response go into a new one.
    var isReplaced = false
    /// The version of the file whose bytes are in the part file that the next response replaces; `nil` without such
    /// bytes.
    var replaced: HeldVersion?
    /// `true` if the part file is a copy, which may have wrong bytes: the bytes before each resume point are compared
    /// with those of the server.
    var isDoubtful = false
    /// The bytes that are requested again to prove a part file whose inode number changed (`HeldSamples`), with those
    /// before each of them; empty once the part file is proven.
    var unproven = ByteRangeSet()
    /// The number of bytes that an earlier transfer left and that this one uses.
    var resumedBytes: Int64 = 0
    /// `true` if the user has yet to be notified that bytes of an earlier transfer are reused.
    var announcesResuming = false
    /// The content generation, a number that increases when written bytes are discarded: the bytes that a reader of the
    /// incomplete file has may then be wrong.
    var generation = 0

    /// Increases the content generation if written bytes (recorded in `ledger`) are discarded, so that readers of the
    /// incomplete file read again.
    mutating func giveUp(_ ledger: RangeLedger) {
        if !ledger.written.isEmpty { generation += 1 }
        unproven = ByteRangeSet()
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
