import Glibc
import Synchronization
internal import TowlineCore
internal import TowlineEngine

/// The open directories of a storage, and the index of the unfinished downloads in each.
final class FolderPool: Sendable {
    /// An open directory that is kept only while a download uses it, and the time of the last check of its path.
    private struct WeakFolder {
        weak var folder: Folder?
        /// The time, on the monotonic clock, of the last check that the path leads to this directory.
        var seen: Duration
    }

    /// The directory that was opened last, which stays open so that the next download into it needs no lookup.
    private struct Latest {
        let path: String
        let folder: Folder
        let seen: Duration
    }

    /// The time after which an open directory's path must be checked again, because it may lead to another directory:
    /// about the time that one small file takes.
    private let lookupLife: Duration

    private let syscall: any Syscall
    private let shortfalls: Shortfalls
    private let boot: BootIdentity
    let roots: StorageRoots
    /// The open directories by path, as weak references. Downloads into one directory share its file descriptor.
    private let folders = Mutex<[String: WeakFolder]>([:])
    /// The directory that was opened last, kept open between downloads so that the next one finds it without a lookup;
    /// `nil` unless `keepsLatest`.
    private let latest = Mutex<Latest?>(nil)
    /// `true` to keep the directory that was opened last open between downloads, so that the next download needs no
    /// lookup.
    private let keepsLatest: Bool
    /// The index of each directory's unfinished downloads. At most 64 are kept: few are in use at the same time.
    private let indices = Mutex<[(folder: FileIdentity, index: JournalIndex)]>([])

    init(
        _ syscall: any Syscall, _ shortfalls: Shortfalls, _ boot: BootIdentity, lookupLife: Duration, keepsLatest: Bool,
        roots: StorageRoots
    ) {
        (self.syscall, self.shortfalls, self.boot) = (syscall, shortfalls, boot)
        (self.lookupLife, self.keepsLatest, self.roots) = (lookupLife, keepsLatest, roots)
    }

    /// Returns the directory at a path: the shared open one, or a new one. Checks after each `lookupLife` that the path
    /// still leads to the open directory. Throws if the directory cannot be opened.
    func folder(_ path: String) throws(TowlineError) -> Folder {
        let now = MonotonicClock.now
        let last = latest.withLock { $0?.path == path ? $0 : nil }
        if let last, now - last.seen < lookupLife { return last.folder }
        let known = folders.withLock { folders in folders[path].map { ($0.folder, $0.seen) } }
        if case (let folder?, let seen)? = known {
            if now - seen < lookupLife { return folder }
            if leads(path, to: folder) {
                folders.withLock { $0[path]?.seen = now }
                if last != nil { latest.withLock { $0 = Latest(path: path, folder: folder, seen: now) } }
                return folder
            }
        }
        let opened = try Folder(path, syscall: syscall, shortfalls: shortfalls, roots: roots)
        if keepsLatest { latest.withLock { $0 = Latest(path: path, folder: opened, seen: now) } }
        folders.withLock { folders in
            folders = folders.filter { $0.value.folder != nil }
            folders[path] = WeakFolder(folder: opened, seen: now)
        }
        return opened
    }

    /// Returns whether a path still leads to an open directory, beneath its root.
    private func leads(_ path: String, to folder: Folder) -> Bool {
        var status = FileStatus()
        guard !roots.isEmpty else {
            return syscall.status(AT_FDCWD, path + "/.", &status) >= 0 && status.identity == folder.identity
        }
        let number = roots.open(path, Folder.pathOnly | O_DIRECTORY | O_CLOEXEC, syscall)
        guard number >= 0 else { return false }
        defer { _ = syscall.close(number) }
        return syscall.status(number, "", &status) >= 0 && status.identity == folder.identity
    }

    /// Opens the directory of a destination, and returns it with the names of the download's files. Throws
    /// `unusableDestination` if the final name is not a single path component or is too long.
    func enter(_ place: Place) throws(TowlineError) -> (Folder, PlaceNames) {
        let name = place.name
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(0x2F), !name.utf8.contains(0) else {
            throw TowlineError(
                .unusableDestination,
                "invalid file name \"\(name)\": a name must not be empty, \".\" or \"..\", and must not contain \"/\". "
                    + "Choose another name")
        }
        let folder = try folder(place.directory)
        // Checked before the first byte: names of an unfinished download are truncated, so creating them does not fail.
        guard SafeFileName.byteCount(name) <= SafeFileName.longestByteCount else {
            throw .opening(folder.path(of: name), ENAMETOOLONG)
        }
        return (folder, PlaceNames(final: name))
    }

    // MARK: Unfinished downloads

    /// Returns the index of the unfinished downloads in a directory.
    func index(of folder: Folder) -> JournalIndex {
        indices.withLock { indices in
            if let known = indices.first(where: { $0.folder == folder.identity }) { return known.index }
            if indices.count >= 64 { indices = [] }
            let made = JournalIndex()
            indices.append((folder.identity, made))
            return made
        }
    }

    /// Returns the metadata in a journal; `nil` if the journal is not usable.
    func metadata(of journal: String, in folder: Folder) -> MetadataBlock? {
        guard let file = try? folder.open(journal, readOnly: true),
            case .live(let contents) = try? JournalFile.read(file, boot: folder.boot(boot))
        else { return nil }
        return contents.metadata
    }

    /// Returns the unfinished downloads in a directory; `nil` if it cannot be read.
    func listing(of folder: Folder) -> JournalIndex.Listing? {
        guard let names = try? folder.names() else { return nil }
        let suffixes = PlaceNames(final: "")
        var listing = JournalIndex.Listing()
        for name in names {
            for suffix in [
                suffixes.part, suffixes.journal, suffixes.nextPart, suffixes.newJournal, suffixes.earlier.part,
                suffixes.earlier.journal,
            ] where name.hasSuffix(suffix) { listing.leftovers.insert(String(name.dropLast(suffix.count))) }
        }
        for final in JournalReader.finalNames(ofJournalsIn: names) {
            // A journal from another user must not choose a name that no server could choose (`.bashrc`).
            guard SafeFileName.isSafe(final), !PlaceNames.isAbbreviated(final),
                let existing = try? PlaceNames(final: final).existing(in: folder),
                let source = metadata(of: existing.journal, in: folder)?.record.source
            else { continue }
            listing.journals.append((LinkIdentity.group(of: source), final))
        }
        return listing
    }
}
