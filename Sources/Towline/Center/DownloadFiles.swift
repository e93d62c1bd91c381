import TowlineCore
import TowlineDisk
import TowlineEngine

/// The disk operations of the center. They are asynchronous, because a disk may be slow and must not block the center.
protocol DownloadFiles: Sendable {
    /// Returns the journal summaries of unfinished downloads; `nil` for a download without a journal.
    func held(_ records: [RegisteredDownload]) async -> [JournalSummary?]
    /// Opens the finished file, or the part file of a download without a transfer, for reading.
    func content(_ record: RegisteredDownload) async throws(TowlineError) -> ContentFile
    /// Returns whether the finished file still exists with its published length.
    func hasFinished(_ record: RegisteredDownload) async -> Bool
    /// Returns whether the download has a journal under its name with one of its URLs.
    func holds(_ record: RegisteredDownload) async -> Bool
    /// Deletes the part file and the journal, if they belong to this download and no other process uses them.
    func discardUnfinished(_ record: RegisteredDownload) async
    /// Deletes the finished file, if it still is the file that this download published. Keeps any other file.
    func removeFinished(_ record: RegisteredDownload) async throws(TowlineError)
    /// Returns the free space for a download in bytes; `nil` if unknown.
    func freeSpace(_ directory: String) async -> Int64?
    /// Returns the unfinished downloads in a directory that have a readable journal.
    func unfinished(in directory: String) async -> [UnfinishedFile]
}

/// The name, the length and the byte ranges that a journal contains.
struct JournalSummary: Hashable, Sendable {
    var name: String
    var completeLength: Int64?
    /// The byte ranges that the next transfer keeps.
    var written: ByteRangeSet
    var heldBytes: Int64 { written.count }
}

/// An unfinished download that was found on disk.
struct UnfinishedFile: Hashable, Sendable {
    var directory: String
    var source: String
    var held: JournalSummary
    var checksum: String?
    var publicAddressesOnly = false
}
