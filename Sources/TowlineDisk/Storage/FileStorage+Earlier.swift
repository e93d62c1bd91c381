internal import TowlineCore
package import TowlineEngine

/// The earlier part file of a download, `NAME.tow-old`, and its journal: the bytes of the version that the present part
/// file replaced (docs/on-disk-format.md, "The earlier part file").
///
/// `survey` locks the present part file first, and the earlier one only then. A process that changes the earlier one
/// has locked the present one.
extension FileStorage {
    /// The earlier part file and its journal, open and locked. Both exist, and the journal describes the part file.
    struct EarlierPart {
        let part: Descriptor
        let journal: JournalFile

        var version: HeldVersion { HeldVersion(journal.record.representation, count: journal.written.count) }

        func close() {
            journal.file.close()
            part.close()
        }
    }

    /// Opens the earlier part file of a place; returns `nil` without one. Removes what the removal of an earlier part
    /// file left at a crash. Keeps files that are not those of an earlier part file.
    ///
    /// - Parameter locks: `false` if this process has locked the present part file, so that no other process uses the
    ///   earlier one. A sync of this process may still hold its lock.
    func earlierPart(
        _ folder: Folder, _ names: PlaceNames, locks: Bool = true
    ) throws(TowlineError) -> EarlierPart? {
        let names = names.earlier
        guard let journal = try openIfOwn(names.journal, in: folder) else { return nil }
        let part = try openIfOwn(names.part, in: folder)
        var isUsed = false
        defer { if !isUsed { for file in [part, journal] { file?.close() } } }
        for file in [part, journal] where locks {
            guard let file else { continue }
            guard try file.lock() else { throw LockOwner.busy(file) }
        }
        switch try JournalFile.read(journal, boot: folder.boot(boot)) {
        case .live(let contents):
            let file = JournalFile(contents, file: journal, folder: folder, name: names.journal, queue: queue)
            guard let part else {
                try folder.remove(names.journal)
                return nil
            }
            guard try file.describes(part) else { return nil }
            isUsed = true
            return EarlierPart(part: part, journal: file)
        case .retired(_, let metadata):
            if let part, let recorded = metadata?.part, recorded.isSameFile(as: try part.status().identity) {
                try folder.remove(names.part)
            }
            try folder.remove(names.journal)
        case .blank, .damaged, .foreign: break
        }
        return nil
    }

    /// Opens a file that may have been created for a download; `nil` if it does not exist.
    private func openIfOwn(_ name: String, in folder: Folder) throws(TowlineError) -> Descriptor? {
        do throws(TowlineError) {
            return try folder.open(name)
        } catch  where error.code == .unusableDestination {
            return nil
        }
    }

    package func removeEarlier(_ place: Place) {
        guard let (folder, names) = try? folders.enter(place) else { return }
        try? removeEarlier(folder, names)
    }

    /// Removes the earlier part file, and then its journal.
    func removeEarlier(_ folder: Folder, _ names: PlaceNames) throws(TowlineError) {
        guard let earlier = try earlierPart(folder, names, locks: false) else { return }
        defer { earlier.close() }
        // A full disk may refuse a change of the journal, but not its removal.
        try? earlier.journal.silence(as: .discarded)
        try folder.remove(names.earlier.part)
        // Without the journal, a part file that a power loss restores would have no owner.
        try folder.descriptor.synchronizeAll()
        try folder.remove(names.earlier.journal)
    }

    /// Decides whether the part file that a new one replaces becomes the earlier one, and removes a previous earlier
    /// one that is in the way. Checks the space for the new part file. Adds a notice if the disk has no space for both.
    func keepsReplaced(
        _ old: OpenPart, _ part: PartFile, _ record: DownloadRecord, _ terms: CreateTerms, _ notices: inout [String]
    ) throws(TowlineError) -> Bool {
        let (folder, names) = (part.folder, part.names)
        var keeps = terms.keepsReplaced && part.hasName && part.journal != nil && !part.isForeign
        if keeps, let journal = part.journal?.file {
            let isNamed = try folder.names(part.file, names.part)
            keeps = try isNamed ? folder.names(journal, names.journal) : false
        }
        if keeps {
            try removeEarlier(folder, names)
            part.endReservation()
        }
        guard terms.reservesSpace, let length = record.representation.completeLength else { return keeps }
        // The space behind the last written byte is reserved, and not needed now.
        if keeps { try? part.file.truncate(to: part.journal?.written.ranges.last?.upperBound ?? 0) }
        let kept = keeps ? HeldVersion(old) : old.earlier
        do throws(TowlineError) {
            try space.checkSpace(for: length, reusable: keeps ? 0 : part.file.status().size, in: folder)
            return keeps
        } catch {
            guard error.code == .diskFull, let kept else { throw error }
            if !keeps { try removeEarlier(folder, names) }
            try space.checkSpace(for: length, reusable: part.file.status().size, in: folder)
            notices.append(kept.deletionNotice)
            return false
        }
    }

    /// Gives a part file and its journal the names of the earlier part file. Both are locked by this process, and the
    /// names are free. Each step is durable before the next one: no power loss combines a journal with another file.
    func makeEarlier(_ part: PartFile) throws(TowlineError) {
        let (folder, names) = (part.folder, part.names)
        try part.journal?.file.synchronizeData()
        try rename(names, names.earlier, folder)
    }

    /// Gives the earlier part file and its journal the names of the present ones. The names are free.
    func restoreEarlier(_ folder: Folder, _ names: PlaceNames) throws(TowlineError) {
        try rename(names.earlier, names, folder)
    }

    private func rename(_ old: PlaceNames, _ new: PlaceNames, _ folder: Folder) throws(TowlineError) {
        for (name, other) in [(old.part, new.part), (old.journal, new.journal)] {
            guard try folder.status(of: name) != nil else { continue }
            guard try folder.rename(name, to: other) else { throw .occupied(folder.path(of: other)) }
            try folder.descriptor.synchronizeAll()
        }
    }

    /// Gives the earlier part file its name back if the present one has no bytes, or does not exist because of a crash.
    /// Otherwise records its version in the scene.
    ///
    /// - Returns: `true` if files were renamed or removed, so that the place must be examined again.
    func restoresEarlier(_ scene: inout Scene) throws(TowlineError) -> Bool {
        let (folder, names) = (scene.folder, scene.names)
        if try completeRenaming(scene.part, scene.journal, folder, names) { return true }
        guard let earlier = try earlierPart(folder, names) else { return false }
        defer { earlier.close() }
        guard try removesEmptyPart(scene) else {
            scene.earlier = earlier.version
            return false
        }
        try restoreEarlier(folder, names)
        return true
    }

    /// Removes the present part file and its journal if it has no bytes that count.
    ///
    /// - Returns: `false` if it stays, because it has such bytes or may belong to another program.
    private func removesEmptyPart(_ scene: Scene) throws(TowlineError) -> Bool {
        let (folder, names) = (scene.folder, scene.names)
        if let file = scene.journal {
            switch try JournalFile.read(file, boot: folder.boot(boot)) {
            case .live(let contents):
                let journal = JournalFile(contents, file: file, folder: folder, name: names.journal, queue: queue)
                if let part = scene.part {
                    guard journal.written.isEmpty, try journal.describes(part) else { return false }
                }
                try journal.silence(as: .discarded)
            case .retired(_, let metadata):
                if let part = scene.part {
                    guard let recorded = metadata?.part, recorded.isSameFile(as: try part.status().identity)
                    else { return false }
                }
            case .blank, .damaged, .foreign: return false
            }
        } else if let part = scene.part, !FinishedMark.isUnfinished(part) {
            return false
        }
        if scene.part != nil { try folder.remove(names.part) }
        if scene.journal != nil { try folder.remove(names.journal) }
        try folder.descriptor.synchronizeAll()
        return true
    }

    /// Completes the steps of `makeEarlier` or `restoreEarlier` that a crash interrupted: a part file and its journal
    /// get the names of the present ones if one of them has the other name.
    ///
    /// - Returns: `true` if a file was renamed.
    private func completeRenaming(
        _ part: Descriptor?, _ journal: Descriptor?, _ folder: Folder, _ names: PlaceNames
    ) throws(TowlineError) -> Bool {
        let earlier = names.earlier
        guard (part == nil) != (journal == nil) else { return false }
        // Exactly one of the two has its name, and the other one may have that of the earlier part file.
        let (missing, other) = part == nil ? (names.part, earlier.part) : (names.journal, earlier.journal)
        guard let found = try openIfOwn(other, in: folder) else { return false }
        defer { found.close() }
        guard try found.lock(), let file = part ?? Optional(found), let record = journal ?? Optional(found),
            case .live(let contents) = try JournalFile.read(record, boot: folder.boot(boot)),
            try contents.metadata.part.isSameFile(as: file.status().identity)
                || PartMark.of(file, journal: contents.header.id) == .own
        else { return false }
        return try folder.rename(other, to: missing)
    }
}

extension JournalFile {
    /// Returns whether a part file is the one whose bytes the journal records.
    func describes(_ file: Descriptor) throws(TowlineError) -> Bool {
        try part.isSameFile(as: file.status().identity) || PartMark.of(file, journal: id) == .own
    }
}

extension HeldVersion {
    /// Creates the version of an open part file; `nil` if it has no journal.
    init?(_ part: OpenPart) {
        guard let journal = part.journal else { return nil }
        self.init(journal.record.representation, count: journal.written.count)
    }
}
