import Glibc
package import TowlineCore
package import TowlineEngine

/// What a journal tells of an unfinished download.
package struct JournalReport: Sendable {
    /// What the download is.
    package let record: DownloadRecord
    /// Bytes marked written, under whatever boot id, or durable.
    package let written: ByteRangeSet
    /// Bytes marked durable.
    package let durable: ByteRangeSet
    /// The process that is at the download.
    package let owner: Int32?
    /// Size of the part file; `nil` if there is none.
    package let partLength: Int64?
    /// The part file is the very one the journal speaks of.
    package let isSamePart: Bool
}

/// Reads a journal and changes nothing, also while the download runs.
package enum JournalReader {
    /// - Parameter path: the download's final path.
    /// - Throws: `unusableDestination` if there is no journal, or none that makes sense; `unsupportedJournal`.
    package static func inspect(path: String, syscall: any Syscall = SystemCalls()) throws(TowlineError)
        -> JournalReport
    {
        let (directory, name) = split(path)
        let folder = try Folder(directory, syscall: syscall)
        let names = PlaceNames(final: name)
        guard let file = try folder.open(names.journal, readOnly: true) else {
            throw TowlineError(
                .unusableDestination,
                "\(path): there is no unfinished download with a journal (files under 1 MiB have none)")
        }
        guard case .live(let contents) = try JournalFile.read(file, boot: BootIdentity.current(syscall)) else {
            throw TowlineError(.unusableDestination, "\(folder.path(of: names.journal)): not a journal, or damaged")
        }
        let part = try folder.open(names.part, readOnly: true)
        let status = try part?.status()
        return JournalReport(
            record: contents.metadata.record, written: ByteRangeSet(contents.runs.map(\.written)),
            durable: ByteRangeSet(contents.runs.map(\.durable)), owner: LockOwner.process(locking: file),
            partLength: status?.size, isSamePart: status?.identity == contents.metadata.part)
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: 0x2F) else { return (".", path) }
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        return (directory, String(path[path.index(after: slash)...]))
    }
}
