import TowlineCore
import TowlineDisk
import TowlineEngine

/// What the center asks of the disk beyond what transfers do.
protocol DownloadFiles: Sendable {
    /// What is there of an unfinished download, read from its journal without touching anything.
    func held(_ record: RegisteredDownload) -> HeldBytes?
    /// The finished file, or what is there of one that nobody is at, to be read.
    func content(_ record: RegisteredDownload) throws(TowlineError) -> ContentFile
    /// Whether the finished file is still there, as it was published.
    func hasFinished(_ record: RegisteredDownload) -> Bool
    /// Whether an unfinished download is under its name that was begun from a URL of its.
    func holds(_ record: RegisteredDownload) -> Bool
    /// Removes part file and journal, if they are this download's and no other process is at them.
    func discardUnfinished(_ record: RegisteredDownload)
    /// Removes the finished file, if it still is what this download published: what was there before it stays.
    func removeFinished(_ record: RegisteredDownload) throws(TowlineError)
    /// Room for a download, in bytes, as far as known.
    func freeSpace(_ directory: String) -> Int64?
    /// Unfinished downloads in a directory, as far as their journals tell.
    func unfinished(in directory: String) -> [UnfinishedFile]
}

/// What a journal tells.
struct HeldBytes: Hashable, Sendable {
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
    var held: HeldBytes
    var checksum: String?
    var publicAddressesOnly = false
}
