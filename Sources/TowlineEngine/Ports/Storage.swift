package import TowlineCore

/// Opens and creates the files of downloads: part files, journals and finished files. A call may block while it opens a
/// file, takes a lock without waiting, or runs `fallocate`.
package protocol Storage: AnyObject, Sendable {
    /// Examines a place (directory and final name), and locks an unfinished download there.
    ///
    /// Completes a publishing that a crash interrupted. Throws `destinationBusy` if another process holds the lock,
    /// `unsupportedJournal` for a newer journal format (left untouched), and `unusableDestination` for a directory that
    /// does not exist and for a part file that is a link, a FIFO or a directory. Sets a damaged journal aside (renames
    /// it) with a notice. Makes a finished file durable if it came from the URL `source`; `nil` means any URL. Sets a
    /// part file that its journal does not describe (a copy) aside with a notice unless `allowsCopies`.
    func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey

    /// Examines the file under the final name only and ignores an unfinished download: returns `.nothing`, `.finished`
    /// or `.occupied`. Locks no file. Makes a finished file durable as `survey(_:for:allowsCopies:)` does.
    func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey

    /// Returns the place of an unfinished download in `directory` whose journal names the URL `source`; `nil` if none
    /// exists. For callers that do not know the file name yet.
    func find(source: String, inDirectory directory: String) -> Place?

    /// Returns whether a place has neither a file nor, according to the last `find` in the directory, an unfinished
    /// download. `create` detects files that other processes added later. Cheaper than `survey`.
    func seemsVacant(_ place: Place) -> Bool

    /// Throws `unusableDestination` if the final name belongs to a directory, a pipe, a socket or a device, because a
    /// downloaded file must not replace them.
    ///
    /// - Parameter isReplaced: `true` if the download will replace an existing file. A symbolic link then throws as
    ///   well: neither the link nor its target, which may be in another directory, is replaced.
    func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError)

    /// Creates and locks the part file for a place, creates the journal if `terms.journaled`, and reserves disk space
    /// if `terms.reservesSpace`. `record` is the description of the download that the journal stores.
    ///
    /// Throws `diskFull` before the first byte if the file cannot fit.
    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart

    /// Creates a complete file from bytes in memory under a free final name; durable if `file.durable`. A crash leaves
    /// the complete file or no file.
    ///
    /// Releases the bytes in memory (`BufferedBody.release`) while it waits for the disk, because the file has them.
    ///
    /// - Returns: `.declined` if a file may exist at the place, the file system does not support the operation, or a
    ///   step failed. The directory is then unchanged; `survey`, `create` and `Sink.publish` report the reason. `.lost`
    ///   if the bytes are no longer in memory either.
    /// - Throws: if the file is complete and durable, but its name may not survive a power loss.
    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome

    /// Creates a new part file with the next generation number, and removes `old`: new bytes are never written to a
    /// file that old journal marks describe. A crash leaves the old part file, the new one or neither, never a mixture.
    func replace(_ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError)
        -> OpenPart

    /// Compares the file under the final name with a checksum. A file that matches becomes a finished download of the
    /// URL `source`: it is made durable and, if the file system keeps attributes, marked with that URL. An existing
    /// mark with another URL is kept.
    ///
    /// - Returns: `.refuted` if the checksum does not match; the file is then unchanged.
    /// - Throws: `cancelled` if the task is cancelled; another error if the file cannot be read or made durable.
    func prove(_ place: Place, source: String, checksum: Checksum) async throws(TowlineError) -> FileProof

    /// Returns messages for the user about system calls that the file system of a directory does not support. Each
    /// message is returned once; empty if there is no new message.
    func takeNotices(inDirectory directory: String) -> [String]

    /// Opens an output, such as standard output, for bytes that are written once and in order, and hashes them with
    /// `algorithms` as they pass. The result has no journal.
    ///
    /// Throws if the output cannot be opened.
    func stream(to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]) throws(TowlineError) -> OpenPart

    /// Returns a hasher that takes bytes as they arrive and compares their hash with `checksum`.
    func hasher(for checksum: Checksum) -> any ContentHasher
}

extension Storage {
    /// Examines a place like `survey(_:for:allowsCopies:)`, and sets no copied part file aside.
    package func survey(_ place: Place, for source: String? = nil) throws(TowlineError) -> Survey {
        try survey(place, for: source, allowsCopies: true)
    }
}

extension Storage {
    /// Returns no notices about lacking system calls of a file system: the default for a storage that is not a file
    /// system.
    package func takeNotices(inDirectory directory: String) -> [String] { [] }

    /// Returns `.declined`: the default for a storage that cannot publish a file from memory.
    package func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        .declined
    }
}

/// The outcome of `Storage.publishAtOnce`, which publishes a small file from memory.
package enum SmallFileOutcome: Sendable, Hashable {
    /// The file is complete and exists under its final name.
    case published(PublishedFile)
    /// The file was not created, and its bytes are in memory as before: the caller can publish it with a part file.
    case declined
    /// The file was not created, and its bytes are lost because of a disk failure: the file must be requested again.
    case lost
}

/// The complete body of a response in memory: the content of a small file.
package protocol BufferedBody: AnyObject, Sendable {
    /// The bytes of the body; empty after `release`.
    var held: [UInt8] { get }
    /// Frees the memory of the bytes once the storage has written them to a file.
    func release()
    /// Stores the bytes again after `release`, because the file that had them could not be published.
    func hold(_ bytes: [UInt8])
}

/// A complete small file (less than 1 MiB) in memory, which `Storage.publishAtOnce` writes.
package struct SmallFile: Sendable {
    /// The bytes of the file, at most `CreateTerms.mostAtHand`.
    package let body: any BufferedBody
    /// The URL of the file, without secrets (as in `DownloadRecord.source`).
    package let source: String
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package let modified: Int64?
    /// The ETag and the date that the server sent, for later comparison with the server's file; `nil` to store none.
    package let version: PublishedVersion?
    /// `true` to wait until the file is on stable storage before the publishing ends.
    package let durable: Bool

    /// Creates the description of a small file from its body and metadata.
    package init(
        body: any BufferedBody, source: String, modified: Int64?, version: PublishedVersion? = nil, durable: Bool
    ) {
        self.body = body
        self.source = source
        self.modified = modified
        self.version = version
        self.durable = durable
    }
}

/// The final location of a download: a directory and a file name in that directory.
package struct Place: Hashable, Sendable {
    /// The path of the directory in which the file is or will be.
    package var directory: String
    /// The file name, one path component.
    package var name: String

    /// Creates a place from the path of a directory and a file name.
    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    /// The path of the file: directory and name.
    package var path: String { directory == "/" ? "/" + name : directory + "/" + name }
}

/// The result of examining a place with `Storage.survey`; it decides how a download begins.
package enum Survey: Sendable {
    /// The place has neither a file nor an unfinished download. `notices` are messages for the user, for example about
    /// a journal that was set aside.
    case nothing(notices: [String])
    /// An unfinished download, which this process has locked and can resume or replace.
    case unfinished(OpenPart)
    /// A file that is known to be a finished download; `source` can be compared with a URL.
    case finished(PublishedFile, source: PublishedSource)
    /// The name belongs to a file that is not known to be a download. The value is `nil` if that is not a regular file.
    case occupied(PublishedFile?)
}

/// The result of comparing an existing file with a checksum.
package enum FileProof: Sendable {
    /// The file has the expected checksum.
    case proven(PublishedFile)
    /// The file has another checksum, which the value shows; `nil` if the file is missing or changed while it was read.
    case refuted(ChecksumMismatch?)
}

/// The URL that a finished file came from, for comparison only: the file stores a digest, not the URL.
package struct PublishedSource: Sendable {
    private let comparison: @Sendable (String) -> Bool

    /// Creates a source from a function that compares the stored digest with a URL (`DownloadRecord.source`).
    package init(_ comparison: @escaping @Sendable (_ source: String) -> Bool) { self.comparison = comparison }

    /// Returns whether the file came from the URL `source`.
    package static func == (published: PublishedSource, source: String) -> Bool { published.comparison(source) }
}

/// An unfinished download that this process has opened and locked.
package struct OpenPart: Sendable {
    /// The part file, which takes the bytes.
    package let sink: any Sink
    /// The journal, which records the written byte ranges; `nil` for small files and streams, which cannot be resumed.
    package let journal: (any Journal)?
    /// The byte ranges that are valid according to the journal: durable, or written if the machine has not rebooted;
    /// clipped to the part file's size.
    package let claims: ByteRangeSet
    /// `true` if the part file is not the file that the journal was created with (copied or restored). Before a resume,
    /// more downloaded bytes must then be compared with the server's.
    package let isDoubtful: Bool
    /// Messages for the user: a damaged slot of the journal, a journal set aside, a part file that became shorter.
    package let notices: [String]

    /// Creates the description of an unfinished download.
    package init(
        sink: any Sink, journal: (any Journal)?, claims: ByteRangeSet, isDoubtful: Bool = false, notices: [String] = []
    ) {
        self.sink = sink
        self.journal = journal
        self.claims = claims
        self.isDoubtful = isDoubtful
        self.notices = notices
    }
}

/// The options for creating a part file.
package struct CreateTerms: Sendable {
    /// `true` to create a journal, so that an interrupted download can be resumed.
    package var journaled: Bool
    /// `true` to reserve space, and to throw at once if the file does not fit.
    package var reservesSpace: Bool
    /// `true` to throw `destinationExists` if another file has the final name after the lock was taken.
    package var requiresFreeName: Bool
    /// `true` if the complete file, at most `mostAtHand` bytes, is in memory: the part file then needs no name until it
    /// is published.
    package var isAtHand: Bool
    /// The maximum length in bytes of a file that is completely in memory before its part file is created.
    package static let mostAtHand = SmallFilePolicy.longest

    /// Creates the options for creating a part file.
    package init(journaled: Bool, reservesSpace: Bool = true, requiresFreeName: Bool = false, isAtHand: Bool = false) {
        self.journaled = journaled
        self.reservesSpace = reservesSpace
        self.requiresFreeName = requiresFreeName
        self.isAtHand = isAtHand
    }
}
