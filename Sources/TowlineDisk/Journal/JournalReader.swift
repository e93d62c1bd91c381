import Glibc
package import TowlineCore
package import TowlineEngine

/// The contents of an unfinished download's journal and the size of its part file, for display.
package struct JournalReport: Sendable {
    /// The metadata of the download: its URL, name, length, validators and checksums.
    package let record: DownloadRecord
    /// The URL of the download, for comparisons.
    package let source: StoredSource
    /// The byte ranges of the part file that the journal records as durable, or as written since the machine started.
    package let written: ByteRangeSet
    /// The byte ranges that the journal records as durable: they survive a power loss.
    package let durable: ByteRangeSet
    /// The size of the part file in bytes; `nil` if it does not exist.
    package let partLength: Int64?
    /// `true` if the part file is the file that the journal describes, not a copy.
    package let isSamePart: Bool
}

/// The kind of file or download at a path, for display. In its cases, `owner` is the ID of the process that has locked
/// it.
package enum PlaceReport: Sendable {
    /// An unfinished download with a journal; `owner` is the process that has locked the journal, or `nil`.
    case unfinished(JournalReport, owner: Int32?)
    /// A download without a journal, which cannot be resumed; `owner` is the process that has locked it, or `nil`.
    case unclaimed(partLength: Int64, owner: Int32?)
    /// A file that Towline completed, according to its extended attribute, and that is unchanged since.
    case finished(length: Int64)
    /// A regular file that Towline did not download, or that was changed since.
    case ordinary(length: Int64)
}

/// Reads a journal without changing it, even while the download runs.
package enum JournalReader {
    /// Examines a download's final path and the files next to it, and returns what exists there: an unfinished
    /// download, a finished one or an ordinary file.
    ///
    /// - Throws: `unusableDestination` if no file exists, or it is not a regular file; `unsupportedJournal` if the
    ///   journal has a newer format.
    package static func look(at path: String, syscall: any Syscall = SystemCalls()) throws(TowlineError)
        -> PlaceReport
    {
        let (directory, name) = split(path)
        let folder = try Folder(directory, syscall: syscall)
        let names = try PlaceNames(final: name).existing(in: folder)
        if !name.isEmpty {
            let boot = folder.boot(.current(syscall))
            if try folder.status(of: names.journal) != nil,
                !JournalFile.isForeign(names.journal, in: folder, boot: boot)
            {
                let found = try open(folder, name)
                return .unfinished(found.report, owner: LockOwner.process(locking: found.journal))
            }
            if let part = try folder.open(names.part, readOnly: true),
                try isUnclaimed(part, isNamed: folder.status(of: name) != nil, boot)
            {
                return .unclaimed(partLength: try part.status().size, owner: LockOwner.process(locking: part))
            }
        }
        guard !name.isEmpty, let status = try folder.status(of: name) else {
            throw TowlineError(.unusableDestination, try absence(of: path, names, in: folder), systemError: ENOENT)
        }
        guard status.kind == .regular else {
            throw TowlineError(
                .unusableDestination,
                "\(path) is not a regular file, and no unfinished download has this name. Give the path of a file")
        }
        // A file that may not be read counts as ordinary, not as an error.
        guard let file = try? folder.open(name, readOnly: true),
            FinishedMark(of: file, boot: folder.boot(.current(syscall))) != nil
        else {
            return .ordinary(length: status.size)
        }
        return .finished(length: status.size)
    }

    /// Returns whether `part`, a file without a journal under a part file's name, is an unfinished download. `isNamed`
    /// states whether a file with the final name exists.
    private static func isUnclaimed(_ part: Descriptor, isNamed: Bool, _ boot: BootIdentity) -> Bool {
        FinishedMark.isUnfinished(part) || LockOwner.process(locking: part) != nil
            || !isNamed && !FinishedMark.isFinished(part, boot: boot)
    }

    private static func absence(of path: String, _ names: PlaceNames, in folder: Folder) throws(TowlineError) -> String
    {
        if names.final.isEmpty { return "\(path) is a directory. Give the path of a file" }
        let absence = "\(path) does not exist, and no unfinished download has this name. Check the path"
        guard try folder.status(of: names.bad) != nil else { return absence }
        return "\(absence). A download with a wrong checksum is kept as \(names.bad)"
    }

    /// Reads the journal of the unfinished download whose final path is `path`.
    ///
    /// - Throws: `unusableDestination` if the journal does not exist or is damaged; `unsupportedJournal` if it has a
    ///   newer format.
    package static func inspect(path: String, syscall: any Syscall = SystemCalls()) throws(TowlineError)
        -> JournalReport
    {
        let (directory, name) = split(path)
        return try open(Folder(directory, syscall: syscall), name).report
    }

    /// Reads the journal of the unfinished download `name` in a directory. Returns its report, the open journal and the
    /// open part file (`nil` if it does not exist); throws like `inspect`.
    static func open(
        _ folder: Folder, _ name: String
    ) throws(TowlineError) -> (report: JournalReport, journal: Descriptor, part: Descriptor?) {
        let (path, syscall) = (folder.path(of: name), folder.descriptor.syscall)
        let names = try PlaceNames(final: name).existing(in: folder)
        guard let file = try folder.open(names.journal, readOnly: true) else {
            throw TowlineError(
                .unusableDestination,
                "there is no unfinished download of \(path): the journal file \(names.journal) does not exist "
                    + "(files under 1 MiB have no journal file). Check the path, or start the download again")
        }
        guard case .live(let contents) = try JournalFile.read(file, boot: folder.boot(.current(syscall))) else {
            throw TowlineError(
                .unusableDestination,
                "\(folder.path(of: names.journal)) is damaged or is not a journal file. "
                    + "Start the download again: it restarts from the beginning")
        }
        let part = try folder.open(names.part, readOnly: true)
        let status = try part?.status()
        let report = JournalReport(
            record: contents.metadata.record, source: contents.metadata.source,
            written: ByteRangeSet(contents.runs.map(\.written)),
            durable: ByteRangeSet(contents.runs.map(\.durable)), partLength: status?.size,
            isSamePart: status?.identity == contents.metadata.part)
        return (report, file, part)
    }

    /// Returns the final names that belong to the journals among the names of files, each once.
    package static func finalNames(ofJournalsIn names: [String]) -> [String] {
        let suffixes = [PlaceNames(final: ""), PlaceNames(final: "").earlier].map(\.journal)
        let found = names.compactMap { name in
            suffixes.first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
        }
        return Set(found).sorted()
    }

    /// Splits a path into its directory and its last component.
    static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return (".", path) }
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        return (directory, String(path[path.index(after: slash)...]))
    }
}
