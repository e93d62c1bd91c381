import TowlineCore
import TowlineDisk
import TowlineEngine

/// Disk operations of the center. All are asynchronous, because a disk may take long to answer and the center must not
/// wait for it.
protocol DownloadFiles: Sendable {
    /// The bytes of unfinished downloads, by their journals; `nil` for a download without a journal.
    func held(_ records: [RegisteredDownload]) async -> [JournalSummary?]
    /// The finished file, or the bytes of a download without a transfer, to be read.
    func content(_ record: RegisteredDownload) async throws(TowlineError) -> ContentFile
    /// Whether the finished file is still there, as it was published.
    func hasFinished(_ record: RegisteredDownload) async -> Bool
    /// Whether an unfinished download is under its name that was begun from a URL of its.
    func holds(_ record: RegisteredDownload) async -> Bool
    /// Removes part file and journal, if they are this download's and no other process is at them.
    func discardUnfinished(_ record: RegisteredDownload) async
    /// Removes the finished file, if it still is what this download published: what was there before it stays.
    func removeFinished(_ record: RegisteredDownload) async throws(TowlineError)
    /// Room for a download, in bytes, as far as known.
    func freeSpace(_ directory: String) async -> Int64?
    /// Unfinished downloads in a directory, as far as their journals tell.
    func unfinished(in directory: String) async -> [UnfinishedFile]
}

/// What a journal tells.
struct JournalSummary: Hashable, Sendable {
    var name: String
    var completeLength: Int64?
    /// What the next run may go on with.
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
