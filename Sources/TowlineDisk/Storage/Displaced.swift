internal import TowlineCore

/// Files that do not belong to a download but have names that it needs, such as a finished file with the name
/// `NAME.tow`.
///
/// A name proves nothing: a part file is recognized by its journal or its mark. Any other file is renamed with a
/// notice, keeps its bytes, and gets its name back when the download ends. After a crash, the file keeps the temporary
/// name.
struct Displaced: Sendable {
    private var moves: [(name: String, aside: String)] = []
    /// The messages about the renamed files of other programs that the user has not seen yet.
    var notices: [String] = []

    /// Renames a file to a temporary name (`NAME-aside`) until `restore` is called, and adds a notice for the user.
    mutating func move(_ name: String, in folder: Folder) throws(TowlineError) {
        let aside = try folder.rename(name, toFreeNameLike: name + "-aside")
        moves.append((name, aside))
        notices.append(
            "\(folder.path(of: name)) does not belong to this download, which needs the name. The file was renamed to \(aside) "
                + "and gets its name back when the download ends")
    }

    /// Creates a file with `make`. If another file has the name, renames that file first. Throws `destinationBusy` if
    /// the name is taken again meanwhile.
    ///
    /// - Parameter make: creates the file under the name; returns `nil` if the name is taken.
    mutating func create(
        _ name: String, in folder: Folder, _ make: (String) throws(TowlineError) -> Descriptor?
    ) throws(TowlineError) -> Descriptor {
        if let file = try make(name) { return file }
        try move(name, in: folder)
        guard let file = try make(name) else {
            restore(in: folder)
            throw .inUse(folder.path(of: name), by: "another process")
        }
        return file
    }

    /// Renames the files that `move` renamed to their original names if these are free. A file whose name is taken
    /// keeps the temporary one.
    func restore(in folder: Folder) {
        for move in moves { _ = try? folder.rename(move.aside, to: move.name) }
    }
}

/// The functions of a directory that remove leftovers of a crash, and protect unfinished downloads from replacement.
extension Folder {
    /// Removes a file that a crash left under a temporary name; does nothing if no file has the name. Keeps a file that
    /// Towline did not create, according to `isOurs`, which examines the open file.
    func removeLeftover(_ name: String, if isOurs: (Descriptor) -> Bool = FinishedMark.isUnfinished)
        throws(TowlineError)
    {
        guard let file = try? open(name), isOurs(file) else { return }
        try remove(name)
    }

    /// Throws `destinationExists` if the file with this final name is the part file or the journal of another download
    /// that can be resumed or is running. No policy for existing files replaces or skips such a file.
    func refuseUnfinished(_ name: String, boot machine: BootIdentity) throws(TowlineError) {
        let suffixes = [PlaceNames(final: ""), PlaceNames(final: "").earlier]
        for suffix in suffixes.flatMap({ [$0.part, $0.journal] }) where name.hasSuffix(suffix) && name != suffix {
            let present = PlaceNames(final: String(name.dropLast(suffix.count)))
            let names = suffixes[1].part == suffix || suffixes[1].journal == suffix ? present.earlier : present
            guard let file = try? open(name) else { continue }
            var isOurs = FinishedMark.isUnfinished(file)
            if isOurs { isOurs = try !file.lock() }
            if let journal = try? open(names.journal, readOnly: true),
                case .live(let contents) = try? JournalFile.read(journal, boot: boot(machine))
            {
                let identity = try file.identity()
                isOurs =
                    name == names.journal || contents.metadata.part.isSameFile(as: identity)
                    || PartMark.of(file, journal: contents.header.id) == .own
            }
            if isOurs {
                throw TowlineError(
                    .destinationExists,
                    "\(path(of: name)) belongs to the unfinished download of \(path(of: names.final)). "
                        + "Complete that download first, or choose another name. This file cannot be overwritten"
                )
            }
        }
    }
}
