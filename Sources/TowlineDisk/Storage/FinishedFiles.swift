import Glibc
internal import TowlineCore
internal import TowlineEngine

/// Examines files that are complete under their final names, and makes them durable before a download relies on them.
struct FinishedFiles: Sendable {
    let boot: BootIdentity
    let folders: FolderPool

    /// Examines the file under the final name. Syncs it first if a download from the URL `wanted` relies on it.
    func survey(
        _ folder: Folder, _ names: PlaceNames, _ notices: [String], _ wanted: String?
    ) throws(TowlineError) -> Survey {
        guard let status = try folder.status(of: names.final) else { return .nothing(notices: notices) }
        guard status.kind == .regular, let file = try? folder.open(names.final, readOnly: true),
            let mark = FinishedMark(of: file, boot: folder.boot(boot))
        else {
            try folder.refuseUnfinished(names.final, boot: boot)
            guard status.kind == .regular else { return .occupied(nil) }
            let path = folder.path(of: names.final)
            return .occupied(PublishedFile(path: path, length: status.size, modified: status.modifiedSeconds))
        }
        // Only a download from the same source relies on this file. If many downloads want one name, each would sync
        // all before it.
        if wanted.map({ mark.isOf($0) }) ?? true {
            // The process that named the file may have ended before the name was durable, and small files have no
            // journal that records it. If the file was created without a name, the file itself may not contain its new
            // name yet.
            if try !makeDurable(file, mark), status.size <= CreateTerms.mostAtHand { try file.synchronizeAll() }
            try synchronize(folder, naming: names.final)
        }
        return .finished(
            PublishedFile(path: file.path, length: status.size, modified: mark.modified, version: mark.server),
            source: StoredSource { mark.relation(to: $0) })
    }

    /// Stores a mark in a file whose checksum was verified: it states that the file came from a URL.
    ///
    /// - Parameter found: the status of the file before it was read.
    /// - Returns: `nil` if the file changed meanwhile.
    func adopt(
        _ file: Descriptor, _ found: FileStatus, in folder: Folder, named name: String, link: LinkIdentity
    ) throws(TowlineError) -> PublishedFile? {
        // The bytes must be durable before the mark that vouches for them.
        try file.synchronizeAll()
        // Another process may have written to the file or taken its name meanwhile.
        guard try file.status().isUnchanged(since: found), try folder.names(file, name) else { return nil }
        // An existing mark keeps its source.
        let mark =
            FinishedMark(of: file, boot: folder.boot(boot)) ?? FinishedMark(adopted: found, link: link)
        (mark.lasting ?? mark).store(in: file)
        try file.synchronizeAll()
        try synchronize(folder, naming: name)
        return PublishedFile(path: file.path, length: found.size, modified: found.modifiedSeconds)
    }

    /// Syncs a file that was published without a sync, and makes its mark (the extended attribute of a finished file)
    /// permanent: until then, the mark is valid only until the machine restarts. Callers rely on a file that is
    /// reported as finished.
    ///
    /// - Returns: `false` if the mark is permanent; the file is then not synced.
    @discardableResult
    func makeDurable(_ file: Descriptor, _ mark: FinishedMark) throws(TowlineError) -> Bool {
        guard let lasting = mark.lasting else { return false }
        // The bytes must be durable before the mark that vouches for them.
        try file.synchronizeAll()
        lasting.store(in: file)
        try file.synchronizeAll()
        return true
    }

    /// Makes the names in a directory durable, among them `name`, on which a download relies.
    func synchronize(_ folder: Folder, naming name: String) throws(TowlineError) {
        do {
            try folders.index(of: folder).sync.synchronize(folder)
        } catch {
            throw .naming(folder.path(of: name), because: error)
        }
    }
}
