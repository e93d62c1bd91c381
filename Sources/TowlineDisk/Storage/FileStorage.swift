import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// Creates and examines the files of downloads: the part file `NAME.tow` with the incomplete bytes, and the journal
/// `NAME.tow-journal`, which records these bytes, next to the final `NAME`.
package final class FileStorage: Storage {
    let syscall: any Syscall
    let boot: BootIdentity
    let queue: SyncQueue
    let space: Preallocation
    private let shortfalls = Shortfalls()
    let folders: FolderPool
    let finished: FinishedFiles
    /// Creates a storage. `boot` and `lookupLife` are for tests.
    ///
    /// - Parameter forOneRun: `true` if the process ends with its downloads. Tasks that publish small files may then
    ///   block while the disk syncs, and the directory that was opened last stays open.
    /// - Parameter keptFree: the number of bytes that downloads of 1 MiB or more, or of unknown length, leave free on
    ///   their disk; a twentieth of the disk if that is less.
    /// - Parameter roots: the directories that contain all downloads. Links that lead out of them are not followed.
    package init(
        syscall: any Syscall = SystemCalls(), boot: BootIdentity? = nil, lookupLife: Duration = .milliseconds(20),
        forOneRun: Bool = false, keptFree: Int64 = 0, roots: StorageRoots = StorageRoots()
    ) {
        space = Preallocation(keptFree: keptFree)
        self.syscall = syscall
        self.boot = boot ?? BootIdentity.current(syscall)
        folders = FolderPool(
            syscall, shortfalls, self.boot, lookupLife: lookupLife, keepsLatest: forOneRun, roots: roots)
        finished = FinishedFiles(boot: self.boot, folders: folders)
        queue = SyncQueue(syscall: syscall, callersMayWait: forOneRun)
    }

    /// Calls `body` with the descriptor of an open directory. Throws if the directory cannot be opened.
    package func withDirectory<Value>(_ path: String, _ body: (Int32) -> Value) throws(TowlineError) -> Value {
        let directory = try folders.folder(path).descriptor
        let number = try directory.acquire()
        defer { directory.release() }
        return body(number)
    }

    /// Throws `unusableDestination` if a symbolic link in the path of a directory leads out of its root.
    package func checkRoots(_ directory: String) throws(TowlineError) {
        do throws(TowlineError) {
            _ = try folders.folder(directory)
        } catch {
            if error.systemError == EXDEV { throw error }
        }
    }

    /// Returns the status of the file with the final name of a place; `nil` if it does not exist or cannot be read.
    package func status(of place: Place) -> FileStatus? {
        (try? folders.folder(place.directory).status(of: place.name)) ?? nil
    }

    package func firstBytes(of place: Place) -> [UInt8] {
        guard let folder = try? folders.folder(place.directory),
            let file = try? folder.open(place.name, readOnly: true)
        else { return [] }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = try? bytes.withUnsafeMutableBytes { (buffer) throws(TowlineError) in
            try file.read(into: buffer, at: 0)
        }
        return Array(bytes.prefix(count ?? 0))
    }

    /// Removes the part file and the journal of an unfinished download from one of the URLs `links`. Keeps those of
    /// another download. Throws like `survey`, and if a file cannot be removed.
    package func discard(_ place: Place, from links: [LinkIdentity]) throws(TowlineError) {
        // The lock of the part file excludes downloads of other processes.
        guard case .unfinished(let open) = try survey(place), let part = open.sink as? PartFile else { return }
        // Another download may have started under the same name since this download ended.
        if let source = open.source, links.allSatisfy({ source.relation(to: $0) == .different }) { return part.close() }
        try part.remove()
        removeEarlier(place)
    }

    /// Removes the file with the final name of a place. Throws if that fails.
    package func remove(_ place: Place) throws(TowlineError) {
        let (folder, names) = try folders.enter(place)
        try folder.remove(names.final)
    }

    /// Reads the journal of the unfinished download of a place; throws like `JournalReader.inspect`.
    package func inspect(_ place: Place) throws(TowlineError) -> JournalReport {
        try JournalReader.open(folders.folder(place.directory), place.name).report
    }

    /// Opens the finished file of a place, or its part file if `isFinished` is `false`; throws like `ContentFile`.
    package func content(
        _ place: Place, isFinished: Bool, length: Int64?
    ) throws(TowlineError) -> ContentFile {
        let folder = try folders.folder(place.directory)
        return isFinished
            ? try .finished(in: folder, named: place.name, length: length)
            : try .unfinished(in: folder, named: place.name)
    }

    package func takeNotices(inDirectory directory: String) -> [String] { shortfalls.takeNotices(of: directory) }

    package func find(_ link: LinkIdentity, inDirectory directory: String) -> Place? {
        guard let folder = try? folders.folder(directory) else { return nil }
        var possible: Place?
        for name in folders.index(of: folder).names(of: link.group, read: { folders.listing(of: folder) }) {
            guard let names = try? PlaceNames(final: name).existing(in: folder),
                let source = folders.metadata(of: names.journal, in: folder)?.source,
                (try? folder.status(of: names.part)) != nil
            else { continue }
            let place = Place(directory: directory, name: name)
            switch source.relation(to: link) {
            case .same: return place
            case .signedAgain, .unknown: possible = possible ?? place
            case .different: break
            }
        }
        return possible
    }

    /// Returns whether the file under the final name is unchanged since Towline published it from one of the URLs
    /// `links`; `false` if it does not exist or another program created it. On a file system without extended
    /// attributes, each file of `length` bytes counts as published. Throws if the directory or the file cannot be
    /// opened.
    package func isPublished(_ place: Place, from links: [LinkIdentity], length: Int64?) throws(TowlineError) -> Bool {
        let folder = try folders.folder(place.directory)
        guard try folder.status(of: place.name)?.kind == .regular,
            let file = try folder.open(place.name, readOnly: true)
        else { return false }
        let status = try file.status()
        if FinishedMark.isKept(by: file) {
            guard let mark = FinishedMark(of: file, boot: folder.boot(boot)) else { return false }
            return !mark.isAdopted && links.contains { mark.relation(to: $0) != .different }
        }
        return status.size == length
    }

    /// Returns whether a process has locked the part file of a place, according to `/proc/locks`. Takes no lock itself,
    /// which could make another process fail.
    package func isInUse(_ place: Place) -> Bool {
        guard let (folder, names) = try? folders.enter(place), let file = try? folder.open(names.part, readOnly: true)
        else { return false }
        return LockOwner.process(locking: file) != nil
    }

    package func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError) {
        let (folder, names) = try folders.enter(place)
        try folder.checkReplaceable(names.final, isReplaced: isReplaced)
    }

    package func seemsVacant(_ place: Place) -> Bool {
        do throws(TowlineError) {
            let (folder, names) = try folders.enter(place)
            guard !folders.index(of: folder).mayHoldLeftover(of: names.final) else { return false }
            return try folder.status(of: names.final) == nil
        } catch {
            return false
        }
    }

    // MARK: Creating

    package func create(
        _ place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        let (folder, names) = try folders.enter(place)
        if terms.reservesSpace, let length = record.representation.completeLength,
            terms.journaled || space.hasPromises
        {
            try space.checkSpace(for: length, in: folder)
        }
        if terms.isAtHand, terms.requiresFreeName, !terms.journaled,
            let part = try createUnnamed(folder, names, record, terms)
        {
            return part
        }
        var displaced = Displaced()
        let file = try createPart(folder, names, terms, &displaced)
        // Between creation and lock, another process may have taken the file for a leftover and removed it. If the file
        // still has a name, it is this one: no process renames an empty part file.
        guard try file.lock(), try file.status().links > 0 else { throw LockOwner.busy(file) }
        // The file is still empty, so that a failure can remove it.
        do throws(TowlineError) {
            // Not before the lock: until then another download may finish here and take the name.
            if terms.requiresFreeName, try folder.status(of: names.final) != nil {
                throw .occupied(folder.path(of: names.final))
            }
            return try equip(file, folder, names, record, terms, &displaced)
        } catch {
            // A journal under this name may belong to another process that has just published its file.
            try? folder.remove(names.part)
            displaced.restore(in: folder)
            throw error
        }
    }

    /// Creates the part file `NAME.tow`. If a file that is not a part file has the name, renames that file until the
    /// download ends (`displaced`). Throws `destinationBusy` if another download has the name.
    private func createPart(
        _ folder: Folder, _ names: PlaceNames, _ terms: CreateTerms, _ displaced: inout Displaced
    ) throws(TowlineError) -> Descriptor {
        if let file = try folder.createPart(names.part) { return file }
        // A caller that requires a free name has already checked the place; other callers check it here.
        guard !terms.requiresFreeName, let other = try folder.open(names.part), try other.lock(),
            !FinishedMark.isUnfinished(other), folders.metadata(of: names.journal, in: folder) == nil,
            try folder.names(other, names.part)
        else {
            throw .inUse(folder.path(of: names.part), by: "another process", systemError: EEXIST)
        }
        return try displaced.create(names.part, in: folder) { (name) throws(TowlineError) in try folder.createPart(name)
        }
    }

    /// Creates a part file that has no name, so no other process can find it and it needs no lock. If another file
    /// takes the final name later, publishing detects it. Returns `nil` if the file system does not support unnamed
    /// files; throws if the part file's name or the final name is already taken.
    private func createUnnamed(
        _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, _ terms: CreateTerms
    ) throws(TowlineError) -> OpenPart? {
        let part = names.part
        guard let file = try folder.createUnnamed(for: part) else { return nil }
        // Another process may have started this download since the directory was read, and then owns the place.
        guard try folder.status(of: part) == nil else {
            throw .inUse(folder.path(of: part), by: "another process", systemError: EEXIST)
        }
        guard try folder.status(of: names.final) == nil else { throw .occupied(folder.path(of: names.final)) }
        var displaced = Displaced()
        return try equip(file, folder, names, record, terms, &displaced, isNamed: false)
    }

    /// Invalidates and removes a leftover journal without a part file. Otherwise its records could be applied to the
    /// new part file, for example after a power loss. If a file that is not a usable journal has the name, and the
    /// download needs a journal, renames that file until the download ends.
    private func retireStray(
        _ folder: Folder, _ names: PlaceNames, _ terms: CreateTerms, _ displaced: inout Displaced
    ) throws(TowlineError) {
        guard let file = try folder.open(names.journal) else { return }
        guard try file.lock() else { throw LockOwner.busy(file) }
        switch try JournalFile.read(file, boot: folder.boot(boot)) {
        case .live(let contents):
            try JournalFile(contents, file: file, folder: folder, name: names.journal, queue: queue).retire(as: .void)
        case .blank, .retired: try folder.remove(names.journal)
        case .damaged, .foreign: if terms.journaled { try displaced.move(names.journal, in: folder) }
        }
    }

    /// Adds the journal and the space reservation that `terms` requires to a new part file, and returns the open
    /// download. The part file must be locked unless it has no name.
    private func equip(
        _ file: Descriptor, _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, _ terms: CreateTerms,
        _ displaced: inout Displaced, isNamed: Bool = true
    ) throws(TowlineError) -> OpenPart {
        // A download without a journal makes no claims, and `requiresFreeName` implies that no journal exists here.
        if terms.journaled || !terms.requiresFreeName { try retireStray(folder, names, terms, &displaced) }
        let journal =
            terms.journaled
            ? try makeJournal(folder, names, record, terms.link, part: file.status().identity, &displaced) : nil
        // Before the length is set: the sync of a length includes earlier changes on file systems with a journal.
        if let journal { PartMark.put(on: file, journal: journal.id) }
        var reservation: SpaceReservation?
        do throws(TowlineError) {
            if terms.reservesSpace, let length = record.representation.completeLength {
                reservation = try space.reserve(length, for: file, in: folder, isAtHand: terms.isAtHand)
            } else if record.representation.completeLength == nil {
                reservation = space.watch()
            }
        } catch {
            if journal != nil { try? folder.remove(names.journal) }
            throw error
        }
        if isNamed, journal == nil { FinishedMark.putUnfinished(on: file) }
        if journal != nil {
            folders.index(of: folder).add(terms.link?.group ?? LinkIdentity.group(of: record.source), names.final)
        }
        let notices = displaced.notices
        displaced.notices = []
        let part = PartFile(
            file: file, folder: folder, names: names, journal: journal, queue: queue, source: record.source,
            boot: boot, displaced: displaced, reservation: reservation, isNamed: isNamed)
        return OpenPart(sink: part, journal: journal, claims: ByteRangeSet(), notices: notices)
    }

    /// Creates the journal under a temporary name, then renames it, so that the final name never has an incomplete
    /// journal. The caller must hold the part file's lock.
    private func makeJournal(
        _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, _ link: LinkIdentity?, part: FileIdentity,
        _ displaced: inout Displaced
    ) throws(TowlineError) -> JournalFile {
        try folder.removeLeftover(names.newJournal, if: JournalFile.isLeftover)
        let file = try displaced.create(names.newJournal, in: folder) { (name) throws(TowlineError) in
            try folder.create(name)
        }
        do throws(TowlineError) {
            guard try file.lock() else { throw LockOwner.busy(file) }
            let contents = try JournalFile.fill(file, record: record, link: link, part: part, boot: folder.boot(boot))
            guard try folder.rename(names.newJournal, to: names.journal) else {
                throw .inUse(folder.path(of: names.journal), by: "another process", systemError: EEXIST)
            }
            return JournalFile(contents, file: file, folder: folder, name: names.journal, queue: queue)
        } catch {
            try? folder.remove(names.newJournal)
            throw error
        }
    }

    /// Gives a new part file, which has a temporary name, the name of the present one. Removes the present one and its
    /// journal, or makes it the earlier one if `keeps`.
    private func exchange(
        _ old: PartFile, for file: Descriptor, keeps: Bool, _ displaced: inout Displaced
    ) throws(TowlineError) {
        let (folder, names) = (old.folder, old.names)
        do throws(TowlineError) {
            guard try file.lock() else { throw LockOwner.busy(file) }
            if keeps {
                // Files of others that have these names.
                for name in [names.earlier.part, names.earlier.journal] where try folder.status(of: name) != nil {
                    try displaced.move(name, in: folder)
                }
                try makeEarlier(old)
            } else {
                // From here on the old claims are gone permanently, even if a power loss restores the old names.
                try old.journal?.silence(as: .discarded)
                if !old.isOwn, try folder.status(of: names.part) != nil { try displaced.move(names.part, in: folder) }
            }
            try folder.rename(names.nextPart, over: names.part)
            // Not earlier: without the journal, a crash would leave the old part file without an owner.
            if !keeps, let journal = old.journal, try folder.names(journal.file, names.journal) {
                try folder.remove(names.journal)
            }
        } catch {
            try? folder.remove(names.nextPart)
            if keeps { try? restoreEarlier(folder, names) }
            throw error
        }
        if !keeps { old.close() }
    }

    package func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        guard let oldPart = old.sink as? PartFile else {
            throw TowlineError(
                .unusableDestination,
                "internal error: the download of \(place.path) cannot restart because its output is not a file. "
                    + "Please report this bug")
        }
        let (folder, names) = (oldPart.folder, oldPart.names)
        if !oldPart.hasName {
            try oldPart.appear()
            // A journal under this name may belong to another process that has just published its file.
            guard try folder.status(of: names.final) == nil else { throw .occupied(folder.path(of: names.final)) }
        }
        // A deleted part file leaves its name free; any other file under the name does not belong to this download.
        if try folder.status(of: names.part) != nil { _ = try oldPart.intactStatus() }
        var notices: [String] = []
        let keeps = try keepsReplaced(old, oldPart, record, terms, &notices)
        var displaced = oldPart.displaced
        // A leftover of a crash: this process holds the lock of the place.
        try folder.removeLeftover(names.nextPart)
        let file = try displaced.create(names.nextPart, in: folder) { (name) throws(TowlineError) in
            try folder.createPart(name)
        }
        try exchange(oldPart, for: file, keeps: keeps, &displaced)
        do throws(TowlineError) {
            var open = try equip(file, folder, names, record, terms, &displaced)
            open.notices += notices
            open.earlier = keeps ? HeldVersion(old) : notices.isEmpty ? old.earlier : nil
            oldPart.close()
            return open
        } catch {
            try? folder.remove(names.part)
            if keeps { try? restoreEarlier(folder, names) }
            displaced.restore(in: folder)
            guard keeps, error.code == .diskFull else { throw error }
            var (old, terms) = (old, terms)
            (old.earlier, terms.keepsReplaced) = (nil, false)
            var open = try replace(old, place: place, record: record, terms: terms)
            if let version = HeldVersion(old) { open.notices.append(version.deletionNotice) }
            return open
        }
    }
}

extension FileStorage {
    package func stream(
        to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]
    ) throws(TowlineError) -> OpenPart {
        OpenPart(
            sink: try StreamSink(syscall: syscall, output: output, algorithms: Set(algorithms)), journal: nil,
            claims: ByteRangeSet())
    }

    package func hasher(for checksum: Checksum) -> any ContentHasher { DigestContentHasher(checksum) }
}
