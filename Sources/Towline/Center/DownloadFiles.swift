import TowlineCore
import TowlineDisk
import TowlineEngine

/// The disk operations of a `Downloader`: reads journals, opens files for readers, and deletes part files and finished
/// files. They are asynchronous, because a disk may be slow and must not block an actor.
protocol DownloadFiles: Sendable {
    /// Reads the journals of unfinished downloads and returns their summaries (name, size, byte ranges), in the order
    /// of `records`; `nil` for a download without a readable journal.
    func held(_ records: [RegisteredDownload]) async -> [JournalSummary?]
    /// Opens the finished file, or the part file of an unfinished download that does not run, for reading. Throws
    /// `unusableDestination` if the file is missing or was changed.
    func content(_ record: RegisteredDownload) async throws(TowlineError) -> ContentFile
    /// Returns whether the finished file still exists with the length that it had when it finished.
    func hasFinished(_ record: RegisteredDownload) async -> Bool
    /// Compares the finished file with a checksum. Returns the difference, or `nil` if the file matches. Throws if the
    /// file cannot be read, or was changed meanwhile.
    func mismatch(_ record: RegisteredDownload, _ checksum: Checksum) async throws(TowlineError) -> ChecksumMismatch?
    /// Returns whether an unfinished file of this download exists: a journal under its name that contains one of its
    /// URLs.
    func holds(_ record: RegisteredDownload) async -> Bool
    /// Deletes the part file and the journal of a download, if they belong to this download and no other process uses
    /// them. Throws, such as `diskPermission`, if they cannot be examined or deleted.
    func discardUnfinished(_ record: RegisteredDownload) async throws(TowlineError)
    /// Deletes the finished file, if it still is the file that this download published. Keeps any other file. Throws,
    /// such as `diskPermission`, if the file cannot be examined or deleted.
    func removeFinished(_ record: RegisteredDownload) async throws(TowlineError)
    /// Returns the free space of the file system that contains a directory, in bytes; `nil` if unknown.
    func freeSpace(_ directory: String) async -> Int64?
    /// Returns whether the files of an unfinished download can be created or written at present: its directory allows
    /// that, and no other process has locked its part file.
    func isWritable(_ record: RegisteredDownload) async -> Bool
    /// Returns the file system that contains a directory or, if the directory does not exist, its nearest parent; `nil`
    /// if unknown.
    func fileSystem(_ directory: String) async -> FileSystemIdentity.Finding?
    /// Returns the unfinished downloads in a directory that have a readable journal.
    func unfinished(in directory: String) async -> [UnfinishedFile]
}

/// The name, the length and the downloaded byte ranges of an unfinished download, as read from its journal.
struct JournalSummary: Hashable, Sendable {
    var name: String
    var completeLength: Int64?
    /// The downloaded byte ranges, which the next transfer keeps. Empty if the part file is not the file that the
    /// journal describes.
    var written: ByteRangeSet
    var heldBytes: Int64 { written.count }
}

/// An unfinished download that was found on the disk by its journal, for example after the registry was lost.
struct UnfinishedFile: Hashable, Sendable {
    var directory: String
    var source: String
    var held: JournalSummary
    var checksum: Checksum?
    var publicAddressesOnly = false
    /// The ID that the download had in the list of a downloader; `nil` if no list contained the download.
    var id: DownloadID?
}
