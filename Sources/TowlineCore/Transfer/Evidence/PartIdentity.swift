/// The evidence on whether a part file is the one that a journal describes.
///
/// Inode number and birth time are a hint, not proof: pools of disks, FAT and containers change them at each mount, and
/// a new file may get the number of a deleted one. The mark of a part file (`Mark`) names the journal. Copies of the
/// part file have the same mark; other files do not.
package struct PartIdentity: Hashable, Sendable {
    /// The extended attribute that names the journal of a part file.
    package enum Mark: Hashable, Sendable, CaseIterable {
        /// The file system has no extended attributes.
        case unsupported
        /// The file has no such attribute.
        case absent
        /// The attribute names this journal.
        case own
        /// The attribute names another journal.
        case other
    }

    /// The relation of a part file to a journal.
    package enum Verdict: Hashable, Sendable {
        /// The journal describes the file.
        case own
        /// The file may be the one that the journal describes. Durable bytes count if samples of them are equal to the
        /// bytes on the server.
        case renumbered
        /// The file is another one: the journal says nothing about it.
        case foreign
    }

    /// `true` if inode number and birth time are those that the journal states.
    package var hasSameNumber: Bool
    /// The attribute of the part file.
    package var mark: Mark
    /// `true` if the file has data wherever the journal claims durable bytes: no claim lies in a hole or after the end.
    package var holdsClaims: Bool
    /// `true` if the server sends ranges of the file with a strong validator, as far as is known.
    package var canBeSampled: Bool

    /// Creates the evidence on a part file.
    package init(hasSameNumber: Bool, mark: Mark, holdsClaims: Bool, canBeSampled: Bool) {
        self.hasSameNumber = hasSameNumber
        self.mark = mark
        self.holdsClaims = holdsClaims
        self.canBeSampled = canBeSampled
    }

    /// The relation of the part file to the journal, according to this evidence.
    package var verdict: Verdict {
        if mark == .other { return .foreign }
        if hasSameNumber { return .own }
        return mark != .absent && holdsClaims && canBeSampled ? .renumbered : .foreign
    }
}

extension Representation {
    /// Returns whether bytes of the file can be compared with those of the server later: its length and a strong
    /// validator are known.
    package var canBeSampled: Bool {
        guard completeLength != nil, case .strong = validator else { return false }
        return true
    }
}
