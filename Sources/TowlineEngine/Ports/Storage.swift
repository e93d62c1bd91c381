package import TowlineCore

/// Opens or creates the files of a destination. A call may block while it opens a file, takes a lock without waiting,
/// or runs `fallocate`.
package protocol Storage: AnyObject, Sendable {
    /// Examines a destination and locks an unfinished download there.
    ///
    /// Completes a publishing that a crash interrupted. Throws `destinationBusy` if another process holds the lock,
    /// `unsupportedJournal` for a newer format (left untouched), and `unusableDestination` for a directory that does
    /// not exist and for a part file that is a link, a FIFO or a directory. Sets a damaged journal aside with a notice.
    /// Makes a finished file durable if it is of `source`; `nil` means any source. Sets a part file that its journal
    /// does not describe (a copy) aside with a notice unless `allowsCopies`.
    func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey

    /// Examines the final name only and ignores an unfinished download: returns `.nothing`, `.finished` or `.occupied`.
    /// Locks no file. Makes a finished file durable as `survey(_:for:allowsCopies:)` does.
    func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey

    /// Returns the place of an unfinished download in `directory` whose journal names `source`; `nil` if none exists.
    /// For callers that do not know the name yet.
    func find(source: String, inDirectory directory: String) -> Place?

    /// Returns whether a place has neither a file nor an unfinished download, according to the last reading of the
    /// directory and the files that this storage published since. `create` detects files that other processes added
    /// later. Cheaper than `survey` after `find` in the same directory.
    func seemsVacant(_ place: Place) -> Bool

    /// Throws `unusableDestination` if the final name belongs to a directory, a pipe, a socket or a device, which no
    /// file may replace.
    ///
    /// - Parameter isReplaced: `true` if a file will replace the present one. A symbolic link then throws as well:
    ///   neither the link nor its target, which may be in another directory, is replaced.
    func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError)

    /// Creates and locks the part file, creates the journal if `terms.journaled`, and reserves the space.
    ///
    /// Throws `diskFull` before the first byte if the file cannot fit.
    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart

    /// Creates a complete file from bytes in memory under a free final name; durable if `file.durable`. A crash leaves
    /// the complete file or no file.
    ///
    /// Releases the bytes in memory while it waits for the disk: the file holds them.
    ///
    /// - Returns: `.declined` if a file may be at the place, the file system does not support the operation, or a step
    ///   failed. The directory is then unchanged; `survey`, `create` and `Sink.publish` report the reason.
    /// - Throws: if the file is complete and durable, but its name may not survive a power loss.
    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome

    /// Creates the part file of the next generation and removes `old`: new bytes are never written to a file that old
    /// marks describe. A crash leaves the old, the new, or neither — never a mixture.
    func replace(_ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError)
        -> OpenPart

    /// Compares the file under the final name with a checksum. A file that matches becomes a finished download of
    /// `source`: it is made durable and, if the file system keeps attributes, marked. A mark with another source is
    /// kept.
    ///
    /// - Returns: `.refuted` if the checksum does not match; the file is then unchanged.
    /// - Throws: `cancelled` if the task is cancelled; another error if the file cannot be read or made durable.
    func prove(_ place: Place, source: String, checksum: Checksum) async throws(TowlineError) -> FileProof

    /// Returns notices about system calls that the file system of a directory does not support; each notice once.
    func takeNotices(inDirectory directory: String) -> [String]

    /// Opens a sink that writes the bytes in order, once, and hashes them with `algorithms` as they pass.
    ///
    /// Throws if the output cannot be opened.
    func stream(to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]) throws(TowlineError) -> OpenPart

    /// Returns a hasher for passing bytes that compares the result with `checksum`.
    func hasher(for checksum: Checksum) -> any ContentHasher
}

extension Storage {
    /// Examines a destination and sets no copy aside.
    package func survey(_ place: Place, for source: String? = nil) throws(TowlineError) -> Survey {
        try survey(place, for: source, allowsCopies: true)
    }
}

extension Storage {
    /// Returns no notices.
    package func takeNotices(inDirectory directory: String) -> [String] { [] }

    /// Returns `.declined`: the storage cannot publish a small file at once.
    package func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        .declined
    }
}

/// The outcome of publishing a small file at once.
package enum SmallFileOutcome: Sendable, Hashable {
    /// The file exists under its final name.
    case published(PublishedFile)
    /// The file was not created, and its bytes are in memory as before.
    case declined
    /// The file was not created, and its bytes are lost because of a disk failure.
    case lost
}

/// The bytes of a small file, in memory.
package protocol HeldBytes: AnyObject, Sendable {
    /// The bytes; empty after `release`.
    var held: [UInt8] { get }
    /// Frees the bytes: the caller needs them no more.
    func release()
    /// Stores the bytes again.
    func hold(_ bytes: [UInt8])
}

/// A complete small file in memory.
package struct SmallFile: Sendable {
    /// The bytes of the file, at most `CreateTerms.mostAtHand`.
    package let body: any HeldBytes
    /// The URL of the file (`DownloadRecord.source`).
    package let source: String
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package let modified: Int64?
    /// The validators that the server sent.
    package let version: PublishedVersion?
    /// `true` to wait until the file is on stable storage.
    package let durable: Bool

    /// Creates a small file.
    package init(
        body: any HeldBytes, source: String, modified: Int64?, version: PublishedVersion? = nil, durable: Bool
    ) {
        self.body = body
        self.source = source
        self.modified = modified
        self.version = version
        self.durable = durable
    }
}

/// A directory and a file name in that directory.
package struct Place: Hashable, Sendable {
    /// The directory.
    package var directory: String
    /// The file name, one path component.
    package var name: String

    /// Creates a place.
    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    /// The path of the file.
    package var path: String { directory == "/" ? "/" + name : directory + "/" + name }
}

/// The result of examining a place.
package enum Survey: Sendable {
    /// The place has neither a file nor an unfinished download.
    case nothing(notices: [String])
    /// An unfinished download, locked by this process.
    case unfinished(OpenPart)
    /// A file that is known to be a finished download from `source`.
    case finished(PublishedFile, source: PublishedSource)
    /// The name belongs to something else; the value is `nil` unless that is a regular file.
    case occupied(PublishedFile?)
}

/// The result of comparing a file with a checksum.
package enum FileProof: Sendable {
    /// The file has the checksum.
    case proven(PublishedFile)
    /// The file has a different checksum. `nil` if the file is missing or changed during the read.
    case refuted(ChecksumMismatch?)
}

/// The source of a finished file, for comparison only: the file stores a digest, not the URL.
package struct PublishedSource: Sendable {
    private let comparison: @Sendable (String) -> Bool

    /// Creates a source from a comparison with `DownloadRecord.source`.
    package init(_ comparison: @escaping @Sendable (_ source: String) -> Bool) { self.comparison = comparison }

    /// Returns whether the file came from `source`.
    package static func == (published: PublishedSource, source: String) -> Bool { published.comparison(source) }
}

/// An unfinished download that this process has locked.
package struct OpenPart: Sendable {
    /// The part file.
    package let sink: any Sink
    /// The journal; `nil` for small files.
    package let journal: (any Journal)?
    /// The valid byte ranges: durable, or written if the machine has not rebooted; clipped to the part file's size.
    package let claims: ByteRangeSet
    /// `true` if the part file is not the file that the journal was created with (copied or restored). More bytes must
    /// then be compared before joining.
    package let isDoubtful: Bool
    /// Messages for the user: a damaged slot, a journal set aside, a part file that became shorter.
    package let notices: [String]

    /// Creates an open part.
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
    /// `true` to create a journal.
    package var journaled: Bool
    /// `true` to reserve space, and to throw at once if the file does not fit.
    package var reservesSpace: Bool
    /// `true` to throw `destinationExists` if the final name is taken once the place is locked.
    package var requiresFreeName: Bool
    /// `true` if the complete file, at most `mostAtHand` bytes, is in memory: the part file then needs no name until it
    /// is published.
    package var isAtHand: Bool
    /// The maximum length in bytes of a file that is completely in memory before its part file is created.
    package static let mostAtHand = SmallFilePolicy.longest

    /// Creates terms.
    package init(journaled: Bool, reservesSpace: Bool = true, requiresFreeName: Bool = false, isAtHand: Bool = false) {
        self.journaled = journaled
        self.reservesSpace = reservesSpace
        self.requiresFreeName = requiresFreeName
        self.isAtHand = isAtHand
    }
}
