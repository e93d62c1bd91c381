import Glibc
import Synchronization
package import TowlineCore
package import TowlineEngine

/// The storage that is a directory: `NAME.tow` and `NAME.tow-journal` beside `NAME`.
package final class FileStorage: Storage {
    private struct WeakFolder {
        weak var folder: Folder?
        /// When the path led there.
        var seen: Duration
    }

    private struct Latest {
        let path: String
        let folder: Folder
        let seen: Duration
    }

    /// For so long a path is taken to lead where it led: the few steps of one small file.
    private let lookupLife: Duration

    let syscall: any Syscall
    let boot: BootIdentity
    let queue: SyncQueue
    let space: Preallocation
    private let shortfalls = Shortfalls()
    /// Downloads into one directory share its descriptor.
    private let folders = Mutex<[String: WeakFolder]>([:])
    /// Holds the directory that was opened last, between one download and the next, and finds it without looking for it.
    private let latest = Mutex<Latest?>(nil)
    private let keepsLatest: Bool
    /// Not more than a few are in use at once.
    private let indices = Mutex<[(folder: FileIdentity, index: JournalIndex)]>([])

    /// Makes a storage. `boot` and `lookupLife` are for tests.
    ///
    /// - Parameter forOneRun: the process ends with its downloads. Tasks that publish small files may wait for a disk, and the
    ///   directory that was opened last stays open.
    /// - Parameter keptFree: bytes that long files leave free on their disk, or a twentieth of a small disk.
    package init(
        syscall: any Syscall = SystemCalls(), boot: BootIdentity? = nil, lookupLife: Duration = .milliseconds(20),
        forOneRun: Bool = false, keptFree: Int64 = 0
    ) {
        space = Preallocation(keptFree: keptFree)
        keepsLatest = forOneRun
        self.lookupLife = lookupLife
        self.syscall = syscall
        self.boot = boot ?? BootIdentity.current(syscall)
        queue = SyncQueue(syscall: syscall, callersMayWait: forOneRun)
    }

    package func takeNotices(inDirectory directory: String) -> [String] { shortfalls.takeNotices(of: directory) }

    package func find(source: String, inDirectory directory: String) -> Place? {
        guard let folder = try? folder(directory) else { return nil }
        for name in index(of: folder).names(of: source, read: { listing(of: folder) }) {
            let names = PlaceNames(final: name)
            guard self.source(of: names.journal, in: folder) == source, (try? folder.status(of: names.part)) != nil
            else { continue }
            return Place(directory: directory, name: name)
        }
        return nil
    }

    /// Whether the file under the final name is as it was published, from one of `sources`. Where the file system keeps no
    /// attributes, a file of that length is taken for it.
    package func isPublished(_ place: Place, from sources: [String], length: Int64?) -> Bool {
        guard let folder = try? folder(place.directory), let file = try? folder.open(place.name, readOnly: true),
            let status = try? file.status(), status.kind == .regular
        else { return false }
        if FinishedMark.isKept(by: file) {
            guard let mark = FinishedMark(of: file, boot: folder.boot(boot)) else { return false }
            return !mark.isAdopted && sources.contains { mark.isOf($0) }
        }
        return status.size == length
    }

    private func source(of journal: String, in folder: Folder) -> String? {
        guard let file = try? folder.open(journal, readOnly: true),
            case .live(let contents) = try? JournalFile.read(file, boot: folder.boot(boot))
        else { return nil }
        return contents.metadata.record.source
    }

    package func seemsVacant(_ place: Place) -> Bool {
        do throws(TowlineError) {
            let (folder, names) = try enter(place)
            let index = index(of: folder)
            guard !index.mayHoldLeftover(of: names.final) else { return false }
            // What another process has given that name a moment ago is found when this one creates its file.
            guard index.mayHold(names.final) else { return true }
            return try folder.status(of: names.final) == nil
        } catch {
            return false
        }
    }

    package func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError) {
        let (folder, names) = try enter(place)
        switch try folder.status(of: names.final)?.kind {
        case .other: throw .unusable(folder.path(of: names.final))
        case .directory: throw .opening(folder.path(of: names.final), EISDIR)
        case .link where Self.leadsToDevice(folder.path(of: names.final)):
            throw .unusable(folder.path(of: names.final))
        case .link where isReplaced: throw .link(folder.path(of: names.final))
        default: break
        }
    }

    /// As `/dev/stdout` does, of which there is one for all.
    private static func leadsToDevice(_ link: String) -> Bool {
        var found = stat()
        return ByteText.withCString(link) { stat($0, &found) } == 0
            && ![S_IFREG, S_IFDIR].contains(found.st_mode & S_IFMT)
    }

    private func listing(of folder: Folder) -> JournalIndex.Listing? {
        guard let names = try? folder.names() else { return nil }
        let suffixes = PlaceNames(final: "")
        var listing = JournalIndex.Listing(taken: NameFilter(expecting: names.count))
        for name in names {
            listing.taken.insert(name)
            for suffix in [suffixes.part, suffixes.journal, suffixes.nextPart, suffixes.newJournal]
            where name.hasSuffix(suffix) { listing.leftovers.insert(String(name.dropLast(suffix.count))) }
            guard name.hasSuffix(suffixes.journal) else { continue }
            let final = String(name.dropLast(suffixes.journal.count))
            // A journal that somebody else put here must not choose a name that no server could (`.bashrc`).
            guard SafeFileName.isSafe(final), !PlaceNames.isAbbreviated(final),
                let source = source(of: name, in: folder)
            else { continue }
            listing.journals.append((source, final))
        }
        return listing
    }

    func index(of folder: Folder) -> JournalIndex {
        indices.withLock { indices in
            if let known = indices.first(where: { $0.folder == folder.identity }) { return known.index }
            if indices.count >= 64 { indices = [] }
            let made = JournalIndex()
            indices.append((folder.identity, made))
            return made
        }
    }

    /// The directory, shared while somebody uses it. The path is looked up anew: it may lead elsewhere by now.
    func folder(_ path: String) throws(TowlineError) -> Folder {
        let now = MonotonicClock.now
        let last = latest.withLock { $0?.path == path ? $0 : nil }
        if let last, now - last.seen < lookupLife { return last.folder }
        let known = folders.withLock { folders in folders[path].map { ($0.folder, $0.seen) } }
        if case (let folder?, let seen)? = known {
            if now - seen < lookupLife { return folder }
            var status = FileStatus()
            if syscall.status(AT_FDCWD, path + "/.", &status) >= 0, status.identity == folder.identity {
                folders.withLock { $0[path]?.seen = now }
                if last != nil { latest.withLock { $0 = Latest(path: path, folder: folder, seen: now) } }
                return folder
            }
        }
        let opened = try Folder(path, syscall: syscall, shortfalls: shortfalls)
        if keepsLatest { latest.withLock { $0 = Latest(path: path, folder: opened, seen: now) } }
        folders.withLock { folders in
            folders = folders.filter { $0.value.folder != nil }
            folders[path] = WeakFolder(folder: opened, seen: now)
        }
        return opened
    }

    /// Opens the directory and makes sure that the name is one component.
    func enter(_ place: Place) throws(TowlineError) -> (Folder, PlaceNames) {
        let name = place.name
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(0x2F), !name.utf8.contains(0) else {
            throw TowlineError(
                .unusableDestination,
                "invalid file name \"\(name)\": a name must not be empty, \".\" or \"..\", and must not contain \"/\". "
                    + "Choose another name")
        }
        let folder = try folder(place.directory)
        // Known before the first byte: the names of an unfinished download are shorter.
        guard SafeFileName.byteCount(name) <= SafeFileName.longestByteCount else {
            throw .opening(folder.path(of: name), ENAMETOOLONG)
        }
        return (folder, PlaceNames(final: name))
    }

    // MARK: Creating

    package func create(
        _ place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        let (folder, names) = try enter(place)
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
        // Between creation and lock another process may have taken the file for a leftover, and removed it.
        // Where it still has a name it has this one: nobody gives an empty part file another.
        guard try file.lock(), try file.status().links > 0 else { throw LockOwner.busy(file) }
        // The file is still empty, so that a failure can remove it.
        do throws(TowlineError) {
            // Not before the lock: until then another download may finish here and take the name.
            if terms.requiresFreeName, try folder.status(of: names.final) != nil {
                throw .occupied(folder.path(of: names.final))
            }
            return try equip(file, folder, names, record, terms, &displaced)
        } catch {
            // What journal there is may be another's, who has just published.
            try? folder.remove(names.part)
            displaced.restore(in: folder)
            throw error
        }
    }

    /// Creates the part file. A file under its name that is no part file gets another name as long as the download
    /// takes.
    private func createPart(
        _ folder: Folder, _ names: PlaceNames, _ terms: CreateTerms, _ displaced: inout Displaced
    ) throws(TowlineError) -> Descriptor {
        if let file = try folder.createPart(names.part) { return file }
        // A caller that has not looked at the place does so now.
        guard !terms.requiresFreeName, let other = try folder.open(names.part), try other.lock(),
            !FinishedMark.isUnfinished(other), source(of: names.journal, in: folder) == nil,
            try folder.names(other, names.part)
        else {
            throw .inUse(folder.path(of: names.part), by: "another process", systemError: EEXIST)
        }
        return try displaced.create(names.part, in: folder) { (name) throws(TowlineError) in try folder.createPart(name)
        }
    }

    /// A part file that nobody else can find, and that needs no lock. What takes the final name from here on is found when
    /// it is published.
    private func createUnnamed(
        _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, _ terms: CreateTerms
    ) throws(TowlineError) -> OpenPart? {
        let part = names.part
        guard let file = try folder.createUnnamed(for: part) else { return nil }
        // Another process may have begun this download since the directory was read: the place is its own then.
        guard try folder.status(of: part) == nil else {
            throw .inUse(folder.path(of: part), by: "another process", systemError: EEXIST)
        }
        guard try folder.status(of: names.final) == nil else { throw .occupied(folder.path(of: names.final)) }
        var displaced = Displaced()
        return try equip(file, folder, names, record, terms, &displaced, isNamed: false)
    }

    /// A journal that lost its part file must not claim the one to come, not even after a power loss. A file that is no
    /// journal gets another name if a journal is to have this one.
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

    /// Gives a new, locked and named part file its journal and its space.
    private func equip(
        _ file: Descriptor, _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, _ terms: CreateTerms,
        _ displaced: inout Displaced, isNamed: Bool = true
    ) throws(TowlineError) -> OpenPart {
        // A download without a journal makes no claims, and `requiresFreeName` says that no journal was here.
        if terms.journaled || !terms.requiresFreeName { try retireStray(folder, names, terms, &displaced) }
        let journal =
            terms.journaled ? try makeJournal(folder, names, record, part: file.status().identity, &displaced) : nil
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
        let index = index(of: folder)
        if journal != nil { index.add(record.source, names.final) }
        let notices = displaced.notices
        displaced.notices = []
        let part = PartFile(
            file: file, folder: folder, names: names, journal: journal, queue: queue, index: index,
            source: record.source, boot: boot, displaced: displaced, reservation: reservation, isNamed: isNamed)
        return OpenPart(sink: part, journal: journal, claims: ByteRangeSet(), notices: notices)
    }

    /// Fills a journal under another name and lets it take its place; the caller holds the part file's lock.
    private func makeJournal(
        _ folder: Folder, _ names: PlaceNames, _ record: DownloadRecord, part: FileIdentity,
        _ displaced: inout Displaced
    ) throws(TowlineError) -> JournalFile {
        try folder.removeLeftover(names.newJournal, if: JournalFile.isLeftover)
        let file = try displaced.create(names.newJournal, in: folder) { (name) throws(TowlineError) in
            try folder.create(name)
        }
        do throws(TowlineError) {
            guard try file.lock() else { throw LockOwner.busy(file) }
            let contents = try JournalFile.fill(file, record: record, part: part, boot: folder.boot(boot))
            guard try folder.rename(names.newJournal, to: names.journal) else {
                throw .inUse(folder.path(of: names.journal), by: "another process", systemError: EEXIST)
            }
            return JournalFile(contents, file: file, folder: folder, name: names.journal, queue: queue)
        } catch {
            try? folder.remove(names.newJournal)
            throw error
        }
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
            // What journal there is may be another's, who has just published.
            guard try folder.status(of: names.final) == nil else { throw .occupied(folder.path(of: names.final)) }
        }
        if terms.reservesSpace, let length = record.representation.completeLength {
            try space.checkSpace(for: length, reusable: oldPart.file.status().size, in: folder)
        }
        // A part file that was deleted leaves its name to the next; anything else under the name is not ours to remove.
        if try folder.status(of: names.part) != nil { try oldPart.checkIntact() }
        var displaced = oldPart.displaced
        // A leftover of a crash. We hold the lock of the place.
        try folder.removeLeftover(names.nextPart)
        let file = try displaced.create(names.nextPart, in: folder) { (name) throws(TowlineError) in
            try folder.createPart(name)
        }
        do throws(TowlineError) {
            guard try file.lock() else { throw LockOwner.busy(file) }
            // From here on the old claims are gone for good, whatever a power loss brings back.
            try oldPart.journal?.silence(as: .discarded)
            if oldPart.isForeign, try folder.status(of: names.part) != nil {
                try displaced.move(names.part, in: folder)
            }
            try folder.rename(names.nextPart, over: names.part)
            // Not before: without it a crash would leave the old part file to nobody.
            if let journal = oldPart.journal, try folder.names(journal.file, names.journal) {
                try folder.remove(names.journal)
            }
        } catch {
            try? folder.remove(names.nextPart)
            throw error
        }
        oldPart.close()
        do throws(TowlineError) {
            return try equip(file, folder, names, record, terms, &displaced)
        } catch {
            try? folder.remove(names.part)
            displaced.restore(in: folder)
            throw error
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
