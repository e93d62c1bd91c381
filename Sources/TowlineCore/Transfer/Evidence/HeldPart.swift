/// The state of a transfer's part file and of the bytes in it that came from earlier responses or transfers.
struct HeldPart: Sendable {
    /// `true` once a part file exists.
    var exists = false
    /// `true` if the part file is out of date, so that the bytes of the next response go into a new one.
    var isReplaced = false
    /// The version of the file whose bytes are in the part file that the next response replaces; `nil` without such
    /// bytes.
    var replaced: HeldVersion?
    /// The fate of the part file that the next response replaces.
    var replacement = Replacement.removed
    /// The version of the file in the earlier part file, which is beside the present one until the present one has as
    /// many bytes; `nil` without one.
    var earlier: HeldVersion?
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

    /// The fate of a part file when another one replaces it.
    enum Replacement: Hashable, Sendable {
        /// It is removed, because some of its bytes are wrong or lost.
        case removed
        /// It becomes the earlier part file. A response with its version does not make this transfer resume it.
        case kept
        /// It becomes the earlier part file, because the file changed. If the server returns to its version, the
        /// transfer resumes it.
        case keptForReturn
    }

    /// `true` if the part file that the next response replaces becomes the earlier one: it has more bytes than the
    /// present earlier one, and they can be resumed.
    var keepsReplaced: Bool {
        guard let replaced, replaced.coding == nil else { return false }
        return replacement != .removed && replaced.count > (earlier?.count ?? 0)
    }

    /// Returns whether the server returns with a response to a version that was replaced: `true` if the open part file
    /// still has its bytes, `false` if the earlier one has them, `nil` if it does not return.
    ///
    /// - Parameter present: the version of the present part file.
    func returns(to offer: ResponseFacts, from present: Representation?) -> Bool? {
        if present?.repeatsValidator(of: offer.representation, weakly: false) ?? false { return nil }
        if isReplaced, replacement == .keptForReturn, replaced?.isVersion(of: offer) ?? false { return true }
        let isLarger = !isReplaced || (replaced?.count ?? 0) <= (earlier?.count ?? 0)
        return isLarger && earlier?.isVersion(of: offer) ?? false ? false : nil
    }

    /// The notice that the bytes of the version that was replaced last are resumed.
    static let returnNotice = TransferNotice(
        .warning, .restarted, "the server sends the earlier version of the file again. Resuming its bytes")

    /// Returns whether the present part file has more bytes than the earlier one. Otherwise a server whose versions
    /// alternate could make the transfer restart for ever, with a few bytes of each version.
    func isAhead(_ ledger: RangeLedger) -> Bool { ledger.written.count > (earlier?.count ?? 0) }

    /// Removes the earlier part file if at least as many bytes of the present one are durable; `.max`: in any case.
    mutating func removeEarlier(ifReplacedBy durable: Int64 = .max) -> [TransferAction] {
        guard let earlier, durable >= earlier.count else { return [] }
        self.earlier = nil
        return [.removeEarlier]
    }

    /// Returns the actions that make room after an error of a running transfer: they remove the earlier part file if
    /// the disk is full. Returns none if the error has another reason, or there is no earlier part file.
    mutating func makeRoom(_ error: TowlineError, _ phase: TransferPhase) -> [TransferAction] {
        guard phase == .running, error.code == .diskFull, let earlier = earlier.take() else { return [] }
        return [.notice(TransferNotice(.warning, .disk, earlier.deletionNotice)), .removeEarlier]
    }

    /// Records that a new part file has replaced the present one, if it was out of date.
    mutating func noteReplaced() {
        (isReplaced, replaced, replacement) = (false, nil, .removed)
    }

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
