import Glibc
package import TowlineCore
package import TowlineEngine
internal import TowlineThreads

/// The functions of `FileStorage` that examine a destination before a download: they find an unfinished download to
/// resume, a finished file, or another file.
extension FileStorage {
    /// The part file and the journal of the destination that is examined, open and locked; `nil` if they do not exist.
    struct Scene {
        let folder: Folder
        let names: PlaceNames
        var part: Descriptor?
        var journal: Descriptor?
        var notices: [String] = []
        /// The URL of the download that examines the destination (`DownloadRecord.source`); `nil` accepts any URL.
        var source: String?
        /// The version of the file in the earlier part file; `nil` without one.
        var earlier: HeldVersion?
        /// `true` to resume with a part file other than the one that the journal was created with, such as a copy.
        var allowsCopies = true

        /// Closes the part file and the journal, which releases their locks.
        func close() {
            part?.close()
            journal?.close()
        }
    }

    package func survey(
        _ place: Place, for source: String?, allowsCopies: Bool
    ) throws(TowlineError) -> Survey {
        let (folder, names) = try folders.enter(place)
        var notices: [String] = []
        while true {
            var scene = try lock(folder, names)
            (scene.source, scene.allowsCopies, scene.notices) = (source, allowsCopies, notices)
            do {
                if try restoresEarlier(&scene) {
                    scene.close()
                    continue
                }
                let found = try judge(&scene)
                if case .unfinished = found { return found }
                guard scene.earlier != nil, try folder.status(of: names.part) == nil else { return found }
            } catch {
                scene.close()
                throw error
            }
            // The part file was not usable, so the earlier one takes its place.
            notices = scene.notices
        }
    }

    /// Opens and locks the part file and the journal, if they exist. Starts again if another process renames or removes
    /// one meanwhile. Throws `destinationBusy` if another process has locked one.
    private func lock(_ folder: Folder, _ names: PlaceNames) throws(TowlineError) -> Scene {
        for _ in 0..<16 {
            var scene = Scene(folder: folder, names: names)
            scene.part = try folder.open(names.part)
            if let part = scene.part, try !part.lock() { throw LockOwner.busy(part) }
            scene.journal = try folder.open(names.journal)
            if let journal = scene.journal, try !journal.lock() { throw LockOwner.busy(journal) }
            // Neither file exists, so no lock is held. `create` detects a process that creates them first.
            if scene.part == nil, scene.journal == nil { return scene }
            if try isCurrent(scene.part, names.part, folder), try isCurrent(scene.journal, names.journal, folder) {
                return scene
            }
            scene.close()
        }
        throw .inUse(folder.path(of: names.part), by: "another process")
    }

    private func isCurrent(_ file: Descriptor?, _ name: String, _ folder: Folder) throws(TowlineError) -> Bool {
        guard let file else { return try folder.status(of: name) == nil }
        return try folder.names(file, name)
    }

    private func judge(_ scene: inout Scene) throws(TowlineError) -> Survey {
        guard let journal = scene.journal else { return try judgeWithoutJournal(&scene) }
        switch try JournalFile.read(journal, boot: scene.folder.boot(boot)) {
        case .live(let contents): return try judge(&scene, contents, journal)
        case .blank: try scene.folder.remove(scene.names.journal)
        case .foreign: break
        case .retired(let header, let metadata):
            // A crash occurred while a new generation replaced the old one. Its file is removed first: later no file
            // refers to it.
            try scene.folder.removeLeftover(scene.names.nextPart)
            if header.validity == .discarded, let part = scene.part, let recorded = metadata?.part,
                recorded.isSameFile(as: try part.status().identity), recorded.birthSeconds != 0 || !isFinished(scene)
            {
                try scene.folder.remove(scene.names.part)
                scene.part = nil
            }
            try scene.folder.remove(scene.names.journal)
        case .damaged:
            let name = try scene.folder.rename(scene.names.journal, toFreeNameLike: scene.names.journalAside)
            scene.notices.append(
                "the journal file \(journal.path) is damaged and was renamed to \(name). "
                    + "The download restarts from the beginning")
        }
        return try judgeWithoutJournal(&scene)
    }

    /// Returns whether the file under the part file's name is a finished download, according to its extended attribute.
    private func isFinished(_ scene: Scene) -> Bool {
        scene.part.map { FinishedMark.isFinished($0, boot: scene.folder.boot(boot)) } ?? false
    }

    /// Handles a part file without a usable journal, then examines the final name. Removes the part file only if its
    /// mark, an extended attribute, says that it is a part file. Any other file keeps its bytes. It keeps its name for
    /// now if it is a finished file, or if the download possibly needs no part file and has no earlier one;
    /// `create` renames it temporarily once a part file is needed.
    private func judgeWithoutJournal(_ scene: inout Scene) throws(TowlineError) -> Survey {
        if let part = scene.part {
            let isNameNeeded = try scene.folder.status(of: scene.names.final) == nil || scene.earlier != nil
            // A process that replaces a generation would hold the part file's lock.
            try scene.folder.removeLeftover(scene.names.nextPart)
            if FinishedMark.isUnfinished(part) {
                try scene.folder.remove(scene.names.part)
            } else if isNameNeeded, !isFinished(scene) {
                let name = try scene.folder.rename(scene.names.part, toFreeNameLike: scene.names.aside)
                scene.notices.append(
                    "the part file \(part.path) has no usable journal file and was renamed to \(name). "
                        + "The download restarts from the beginning")
            }
        }
        scene.close()
        return try finished.survey(scene.folder, scene.names, scene.notices, scene.source)
    }

    package func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey {
        let (folder, names) = try folders.enter(place)
        return try finished.survey(folder, names, [], source)
    }

    package func prove(
        _ place: Place, link: LinkIdentity, checksum: Checksum
    ) async throws(TowlineError) -> FileProof {
        let (folder, names) = try folders.enter(place)
        guard let file = try folder.open(names.final, readOnly: true) else { return .refuted(nil) }
        let found = try file.status()
        return try await WorkThread.run { flag throws(TowlineError) in
            do throws(TowlineError) {
                let wrong = try FileHasher.mismatches([checksum], in: file, length: found.size, unless: flag)
                if let mismatch = wrong.first { return .refuted(mismatch) }
            } catch {
                // The file was truncated meanwhile, which is not a disk error.
                if error.code != .cancelled, try !file.status().isUnchanged(since: found) { return .refuted(nil) }
                throw error
            }
            try flag.check(file.path)
            let adopted = try self.finished.adopt(file, found, in: folder, named: names.final, link: link)
            return adopted.map { .proven($0) } ?? .refuted(nil)
        }
    }

    private func judge(
        _ scene: inout Scene, _ contents: JournalFile.Contents, _ file: Descriptor
    ) throws(TowlineError) -> Survey {
        let journal = JournalFile(
            contents, file: file, folder: scene.folder, name: scene.names.journal, queue: queue)
        if let (name, length) = try published(scene, contents.metadata, claims: journal.written) {
            // Publishing was interrupted after the file got its final name; this completes the remaining steps.
            if let part = scene.part, try contents.metadata.part.isSameFile(as: part.identity()) {
                try scene.folder.remove(scene.names.part)
            }
            try finished.synchronize(scene.folder, naming: name)
            try journal.retire(as: .void)
            scene.close()
            return .finished(
                PublishedFile(path: scene.folder.path(of: name), length: length), source: contents.metadata.source)
        }
        guard let part = scene.part else {
            scene.notices.append(
                "the journal file \(file.path) exists, but its part file \(scene.names.part) is missing. "
                    + "The download restarts from the beginning")
            try journal.retire(as: .void)
            return try judgeWithoutJournal(&scene)
        }
        guard try part.status().links == 1 else {
            // The bytes also belong to another file and must not change.
            scene.notices.append(
                "the part file \(part.path) is a hard link to another file, so it is not used. "
                    + "The download restarts from the beginning")
            try journal.retire(as: .void)
            return try judgeWithoutJournal(&scene)
        }
        let verdict = try identity(of: part, contents, journal).verdict
        let isForeign = isFinished(scene) || !scene.allowsCopies
        if verdict == .foreign, isForeign, try DataMap.hasData(part, upTo: part.status().size) {
            // A journal next to another part file proves nothing: both may come from an archive or another user.
            let name = try scene.folder.rename(scene.names.part, toFreeNameLike: scene.names.aside)
            scene.notices.append(
                "the part file \(part.path) was copied or replaced since its journal file was written, so its bytes may be "
                    + "wrong. It was renamed to \(name), and the download restarts from the beginning. To use a copied "
                    + "part file, \(Remedy.checksum)")
            try journal.retire(as: .void)
            part.close()
            scene.part = nil
            return try judgeWithoutJournal(&scene)
        }
        var open = try resume(&scene, contents, journal, part, verdict)
        open.earlier = scene.earlier
        return .unfinished(open)
    }

    /// Returns the evidence on whether `part` is the part file that the journal describes.
    private func identity(
        of part: Descriptor, _ contents: JournalFile.Contents, _ journal: JournalFile
    ) throws(TowlineError) -> PartIdentity {
        let status = try part.status()
        let record = contents.metadata.record
        let hasSameNumber = contents.metadata.part.isSameFile(as: status.identity)
        var unheld = hasSameNumber ? ByteRangeSet() : journal.durable
        if !unheld.isEmpty { unheld.subtract(DataMap.data(of: part, upTo: status.size)) }
        return PartIdentity(
            hasSameNumber: hasSameNumber, mark: PartMark.of(part, journal: journal.id), holdsClaims: unheld.isEmpty,
            canBeSampled: !record.lacksRanges && record.representation.canBeSampled)
    }

    /// Returns the final name and the length in bytes of the file that the journal describes if it has been published;
    /// otherwise `nil`. `claims` are the byte ranges that the journal records as written.
    ///
    /// Publishing stores a mark before the file gets the name. A user may also have given an unfinished file this name.
    /// Without the mark, the journal must therefore record every byte, unless the file system has no attributes. If the
    /// file system has no birth times, the inode number alone proves nothing, as another file may have reused it: then
    /// only the mark counts.
    ///
    /// - Throws: `unusableDestination` if the unfinished part file has the name: the journal stays for a resume.
    private func published(
        _ scene: Scene, _ metadata: MetadataBlock, claims: ByteRangeSet
    ) throws(TowlineError) -> (String, Int64)? {
        for number in 0..<10_000 {
            let name = scene.names.numbered(number)
            guard let status = try scene.folder.status(of: name) else { return nil }
            guard status.kind == .regular, status.identity.isSameFile(as: metadata.part),
                status.size == metadata.record.representation.completeLength ?? status.size
            else { continue }
            guard let file = try scene.folder.open(name, readOnly: true) else { continue }
            if let mark = FinishedMark(of: file, boot: scene.folder.boot(boot)), mark.isOf(metadata.record.source) {
                try finished.makeDurable(file, mark)
                return (name, status.size)
            }
            guard status.identity.birthSeconds != 0 else { continue }
            // A journal of unknown length also claims every byte of an unfinished file.
            let isOfKnownLength = metadata.record.representation.completeLength != nil
            if isOfKnownLength, claims.contains(ByteRange(0, status.size)) || !FinishedMark.isKept(by: file) {
                return (name, status.size)
            }
            guard scene.part != nil else {
                throw TowlineError(
                    .unusableDestination,
                    "\(scene.folder.path(of: name)) is an unfinished download, not the complete file. "
                        + "Rename the file to \(scene.names.part) to resume the download")
            }
        }
        return nil
    }

    /// Removes `NAME.tow-next`, the leftover of a crash while a new part file replaced that of an older version of the
    /// file. If it may belong to the user, which is possible after a power loss, renames it with a notice instead.
    private func clearNext(_ scene: inout Scene) throws(TowlineError) {
        let (folder, next) = (scene.folder, scene.names.nextPart)
        guard let file = try? folder.open(next), !FinishedMark.isFinished(file, boot: folder.boot(boot)) else { return }
        guard !FinishedMark.isUnfinished(file) else { return try folder.remove(next) }
        let name = try folder.rename(next, toFreeNameLike: next + "-aside")
        scene.notices.append("\(file.path) is not used by this download and was renamed to \(name)")
    }

    /// Returns the byte ranges of `written`, the records of the journal, that the part file of `length` bytes does not
    /// contain, and adds a notice about them.
    private func missing(
        _ scene: inout Scene, _ written: ByteRangeSet, _ part: Descriptor, _ length: Int64, _ isDoubtful: Bool
    ) -> ByteRangeSet {
        var missing = written
        let isShorter = missing.ranges.last.map { $0.upperBound > length } ?? false
        missing.subtract(
            isDoubtful || scene.folder.reportsHoles
                ? DataMap.data(of: part, upTo: length) : ByteRangeSet([ByteRange(0, length)]))
        if isShorter {
            scene.notices.append(
                "the part file \(part.path) is shorter than its journal file states. "
                    + "The missing bytes are downloaded again")
        } else if !isDoubtful, !missing.isEmpty {
            scene.notices.append(
                "the part file \(part.path) lacks bytes that its journal file lists. "
                    + "The missing bytes are downloaded again")
            // The block before a hole may end with bytes that were not written.
            return ByteRangeSet(
                missing.ranges.map { ByteRange(max(0, $0.lowerBound - DataMap.largestBlock), $0.upperBound) })
        }
        return missing
    }

    /// Removes the journal's records of bytes that the part file does not contain, and returns the part file and the
    /// journal, open for the download.
    private func resume(
        _ scene: inout Scene, _ contents: JournalFile.Contents, _ journal: JournalFile, _ part: Descriptor,
        _ verdict: PartIdentity.Verdict
    ) throws(TowlineError) -> OpenPart {
        try clearNext(&scene)
        try? scene.folder.removeLeftover(scene.names.newJournal, if: JournalFile.isLeftover)
        if contents.damagedMarks > 0 {
            scene.notices.append(
                "the journal file \(journal.file.path) has \(contents.damagedMarks) damaged records. "
                    + "The bytes of these records are downloaded again")
        }
        let status = try part.status()
        var length = status.size
        if status.mode & 0o077 != 0 { FileMode.close(part, in: scene.folder) }
        let isDoubtful = verdict != .own
        let isRenumbered = verdict == .renumbered && !scene.allowsCopies
        if let complete = contents.metadata.record.representation.completeLength, length > complete {
            // A file that the journal does not describe may be a user's: it must not change.
            if !isDoubtful { try part.truncate(to: complete) }
            length = complete
        }
        // The current run may have written them to another file.
        if isRenumbered { journal.forgetWhatIsNotDurable() }
        for range in missing(&scene, journal.written, part, length, isDoubtful).ranges { try journal.withdraw(range) }
        if journal.written != journal.durable {
            // A sync reports write-back errors that were not reported yet; after an error, only durable bytes count.
            do {
                try part.synchronizeData()
            } catch {
                journal.forgetWhatIsNotDurable()
                scene.notices.append(
                    "\(error.message). Bytes that were not yet saved to the disk are downloaded again")
            }
        }
        if !isDoubtful { PartMark.add(to: part, journal: journal.id) }
        let sink = PartFile(
            file: part, folder: scene.folder, names: scene.names, journal: journal, queue: queue,
            source: contents.metadata.record.source, boot: boot,
            reservation: rest(of: status, journal, contents, scene.folder) ?? space.watch())
        return OpenPart(
            sink: sink, journal: journal, claims: journal.written, isDoubtful: isDoubtful,
            isRenumbered: isRenumbered, source: contents.metadata.source, notices: scene.notices)
    }
}

extension FileStorage {
    private func rest(
        of status: FileStatus, _ journal: JournalFile, _ contents: JournalFile.Contents, _ folder: Folder
    ) -> SpaceReservation? {
        guard let length = contents.metadata.record.representation.completeLength else { return nil }
        return space.rest(of: status, length: length, written: journal.written.count, in: folder)
    }
}

/// Finds the allocated ranges of a sparse file (`lseek(2)`, SEEK_DATA and SEEK_HOLE). Bytes in a hole were never
/// written.
enum DataMap {
    /// The maximum size of a file system's block in bytes.
    static let largestBlock: Int64 = 64 << 10

    /// Returns the byte ranges below `length` of the file that are allocated on the disk, not holes; the whole range if
    /// the file system reports no holes.
    static func data(of file: Descriptor, upTo length: Int64) -> ByteRangeSet {
        var data = ByteRangeSet()
        var offset: Int64 = 0
        while offset < length {
            let start = seek(file, offset, toHole: false)
            if start == -Int64(ENXIO) { break }
            let end = start < 0 ? start : seek(file, start, toHole: true)
            guard start >= offset, end > start else { return ByteRangeSet([ByteRange(0, length)]) }
            if start >= length { break }
            data.insert(ByteRange(start, min(end, length)))
            offset = end
        }
        return data
    }

    /// Returns whether the file has any allocated range; `false` if `length` is 0.
    static func hasData(_ file: Descriptor, upTo length: Int64) -> Bool {
        length > 0 && seek(file, 0, toHole: false) != -Int64(ENXIO)
    }

    /// Returns whether the file has a hole before the offset `length`; `false` if the file system reports no holes.
    static func hasHole(_ file: Descriptor, before length: Int64) -> Bool {
        let hole = seek(file, 0, toHole: true)
        return hole >= 0 && hole < length
    }

    private static func seek(_ file: Descriptor, _ offset: Int64, toHole: Bool) -> Int64 {
        guard let number = try? file.acquire() else { return -Int64(EBADF) }
        defer { file.release() }
        return file.syscall.seek(number, offset, toHole: toHole)
    }
}
