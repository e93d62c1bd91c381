package import TowlineCore

/// Opens and creates the files of downloads: part files, journals (records of the written bytes) and finished files. A
/// call may block while it opens a file, takes a lock without waiting, or reserves disk space.
package protocol Storage: AnyObject, Sendable {
    /// Inspects the files at a directory and final file name (a place), and locks an unfinished download there.
    ///
    /// Completes a publishing that a crash interrupted. Throws `destinationBusy` if another process holds the lock,
    /// `unsupportedJournal` for a newer journal format (left untouched), and `unusableDestination` for a directory that
    /// does not exist and for a part file that is a link, a FIFO or a directory. Sets a damaged journal aside (renames
    /// it) with a notice. Makes a finished file durable if it came from the URL `source`; `nil` means any URL. Sets a
    /// part file that its journal does not describe (a copy) aside with a notice unless `allowsCopies`.
    func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey

    /// Inspects the file with the final name only and ignores an unfinished download: returns `.nothing`, `.finished`
    /// or `.occupied`. Locks no file, and makes a file that was downloaded from the URL `source` (`nil`: from any URL)
    /// durable.
    func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey

    /// Returns the first bytes of the file with the final name, at most 512; empty if it cannot be read.
    func firstBytes(of place: Place) -> [UInt8]

    /// Returns the location of an unfinished download of a URL in `directory`, else of an unfinished download whose URL
    /// may be the same or is signed again (`StoredSource.relation`); `nil` if neither exists. Used to resume a download
    /// before the server sends the file name.
    func find(_ link: LinkIdentity, inDirectory directory: String) -> Place?

    /// Returns whether a directory and file name have neither a file nor, according to the last `find` in the
    /// directory, an unfinished download. Cheaper than `survey`; `create` detects files that other processes added
    /// since then.
    func seemsVacant(_ place: Place) -> Bool

    /// Checks the file with the final name, if any: throws `unusableDestination` for a directory, a pipe, a socket or a
    /// device, because a downloaded file must not replace them.
    ///
    /// - Parameter isReplaced: `true` if the download will replace an existing file. A symbolic link then throws as
    ///   well: neither the link nor its target, which may be in another directory, is replaced.
    func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError)

    /// Creates and locks the part file for a directory and file name. Also creates a journal, which stores `record`, if
    /// `terms.journaled`, and reserves disk space if `terms.reservesSpace`.
    ///
    /// Throws `diskFull` before the first byte if the file cannot fit.
    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart

    /// Creates a complete file from bytes in memory under a final name that no file has; durable if `file.durable`. A
    /// crash leaves the complete file or no file.
    ///
    /// Releases the bytes in memory (`BufferedBody.release`) while it waits for the disk, because the file has them.
    ///
    /// - Returns: `.declined` if a file may exist with that name, the file system does not support the operation, or a
    ///   step failed. The directory is then unchanged; `survey`, `create` and `Sink.publish` report the reason. `.lost`
    ///   if the bytes are no longer in memory either.
    /// - Throws: if the file is complete and durable, but its name may not survive a power loss.
    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome

    /// Creates a new part file with the next number (generation) and a new journal, and removes the part file `old`, so
    /// that the old journal never describes new bytes. A crash leaves the old part file, the new one or neither, never
    /// a mixture.
    ///
    /// If `terms.keepsReplaced`, the old part file and its journal stay as the earlier part file of the new one,
    /// instead of a previous earlier one. If the disk has no space for both, they are removed, with a notice.
    func replace(_ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError)
        -> OpenPart

    /// Removes the earlier part file of a place, and its journal. The present one must be open. A failure changes only
    /// the space that is used.
    func removeEarlier(_ place: Place)

    /// Compares the file with the final name with a checksum. If it matches, it counts as a finished download of a URL:
    /// it is made durable, and the URL is stored in its extended attributes, if the file system supports them and they
    /// contain no other URL.
    ///
    /// - Returns: `.refuted` if the checksum does not match; the file is then unchanged.
    /// - Throws: `cancelled` if the task is cancelled; another error if the file cannot be read or made durable.
    func prove(_ place: Place, link: LinkIdentity, checksum: Checksum) async throws(TowlineError) -> FileProof

    /// Returns notices for the user about system calls that the file system of a directory does not support. Each
    /// notice is returned once; empty if there is no new one.
    func takeNotices(inDirectory directory: String) -> [String]

    /// Opens an output, such as standard output, for bytes that are written once and in order, and computes their
    /// checksums with `algorithms` as they are written. The result has no journal.
    ///
    /// Throws if the output cannot be opened.
    func stream(to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]) throws(TowlineError) -> OpenPart

    /// Returns an object that takes bytes as they arrive, computes their checksum and compares it with `checksum`.
    func hasher(for checksum: Checksum) -> any ContentHasher
}

extension Storage {
    /// Inspects the files at a directory and final file name, and locks an unfinished download there. A part file that
    /// is a copy is not renamed, and is reported as doubtful.
    package func survey(_ place: Place, for source: String? = nil) throws(TowlineError) -> Survey {
        try survey(place, for: source, allowsCopies: true)
    }
}

extension Storage {
    /// Gives the earlier part file of a place its name back, after the present one was discarded.
    func restoreEarlier(_ place: Place) {
        if case .unfinished(let part)? = try? survey(place) { part.sink.close() }
    }

    /// Returns no bytes: the default for a storage whose files cannot be read.
    package func firstBytes(of place: Place) -> [UInt8] { [] }

    /// Returns no notices about unsupported system calls: the default for a storage that is not a file system.
    package func takeNotices(inDirectory directory: String) -> [String] { [] }

    /// Returns `.declined` and creates no file: the default for a storage that cannot create a file directly from
    /// memory.
    package func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        .declined
    }
}

/// The outcome of `Storage.publishAtOnce`, which creates a small file directly from memory.
package enum SmallFileOutcome: Sendable, Hashable {
    /// The complete file exists under its final name.
    case published(PublishedFile)
    /// The file was not created, and its bytes are still in memory: the caller can write them to a part file instead.
    case declined
    /// The file was not created, and its bytes are lost because of a disk failure: the file must be requested again.
    case lost
}

/// The complete body of a response in memory: the content of a small file.
package protocol BufferedBody: AnyObject, Sendable {
    /// The bytes of the response body; empty after `release`.
    var held: [UInt8] { get }
    /// Frees the memory of the body once the storage has written the bytes to a file.
    func release()
    /// Stores the bytes of the body again after `release`, because the file with these bytes could not get its name.
    func hold(_ bytes: [UInt8])
}

/// A complete small file (less than 1 MiB) in memory, which `Storage.publishAtOnce` writes.
package struct SmallFile: Sendable {
    /// The bytes of the file, at most `CreateTerms.mostAtHand` (almost 1 MiB).
    package let body: any BufferedBody
    /// The URL of the file, to store with the file: its digest without secrets and, if necessary, a salted digest.
    package let link: LinkIdentity
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package let modified: Int64?
    /// The ETag and the date that the server sent, for later comparison with the server's file; `nil` to store none.
    package let version: PublishedVersion?
    /// `true` to wait until the file is on stable storage before the publishing ends.
    package let durable: Bool

    /// Creates the description of a small file from its body and metadata.
    package init(
        body: any BufferedBody, link: LinkIdentity, modified: Int64?, version: PublishedVersion? = nil, durable: Bool
    ) {
        self.body = body
        self.link = link
        self.modified = modified
        self.version = version
        self.durable = durable
    }
}

/// The final location of a downloaded file: a directory and a file name in that directory.
package struct Place: Hashable, Sendable {
    /// The path of the directory in which the file is or will be.
    package var directory: String
    /// The file name, one path component.
    package var name: String

    /// Creates a location from the path of a directory and a file name.
    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    /// The path of the file: directory and name.
    package var path: String { directory == "/" ? "/" + name : directory + "/" + name }
}

/// The result of inspecting the files at a directory and file name with `Storage.survey`. It decides how a download
/// begins.
package enum Survey: Sendable {
    /// Neither a file nor an unfinished download exists. `notices` are texts for the user, for example that a damaged
    /// journal was renamed.
    case nothing(notices: [String])
    /// An unfinished download, which this process has locked and can resume or replace.
    case unfinished(OpenPart)
    /// A file with the final name that is known to be a finished download. `source` stands for its URL, and can only be
    /// compared with a URL.
    case finished(PublishedFile, source: StoredSource)
    /// A file with the final name that is not known to be a download. The value is `nil` if it is not a regular file.
    case occupied(PublishedFile?)
}

/// The result of comparing the computed checksum of an existing file with the expected one.
package enum FileProof: Sendable {
    /// The file has the expected checksum, so it is the requested file.
    case proven(PublishedFile)
    /// The file does not have the expected checksum; the value has the computed one. `nil` if the file is missing or
    /// changed while it was read.
    case refuted(ChecksumMismatch?)
}

/// The URL that a finished file or an unfinished download on disk came from. It can only be compared with a URL, because
/// the disk has digests of its secrets.
package struct StoredSource: Sendable {
    private let comparison: @Sendable (LinkIdentity) -> LinkRelation

    /// Creates a source from a function that compares it with a URL.
    package init(_ comparison: @escaping @Sendable (LinkIdentity) -> LinkRelation) { self.comparison = comparison }

    /// Returns the relation of a URL to this one.
    package func relation(to link: LinkIdentity) -> LinkRelation { comparison(link) }
}

/// An unfinished download that this process has opened and locked: its part file, its journal and its valid bytes.
package struct OpenPart: Sendable {
    /// The part file, which receives the bytes of the download.
    package let sink: any Sink
    /// The journal, a file that records the written byte ranges; `nil` for small files and streams, which cannot be
    /// resumed.
    package let journal: (any Journal)?
    /// The byte ranges of the part file that are valid according to the journal: durable, or written if the machine has
    /// not rebooted since then.
    package let claims: ByteRangeSet
    /// `true` if the part file may be a copy, because it is not the file that the journal was created with. Before a
    /// resume, more of its bytes are then compared with the bytes that the server sends.
    package let isDoubtful: Bool
    /// The URL that the journal contains; `nil` without a journal.
    package let source: StoredSource?
    /// `true` if the part file may be the journal's file with another inode number or birth time, as after a mount of
    /// some file systems. `claims` are then durable, and samples of these bytes must prove the file.
    package let isRenumbered: Bool
    /// The version of the file in the earlier part file, which is beside this one (`Storage.replace`); `nil` without
    /// one. Once this part file is discarded, `survey` finds the earlier one.
    package var earlier: HeldVersion?
    /// Notices for the user, for example that a journal entry was damaged, that a journal was renamed, or that the part
    /// file became shorter.
    package var notices: [String]

    /// Creates the description of an unfinished download from its part file, its journal and its valid bytes.
    package init(
        sink: any Sink, journal: (any Journal)?, claims: ByteRangeSet, isDoubtful: Bool = false,
        isRenumbered: Bool = false, source: StoredSource? = nil, notices: [String] = []
    ) {
        self.sink = sink
        self.journal = journal
        self.claims = claims
        self.isDoubtful = isDoubtful
        self.source = source
        self.isRenumbered = isRenumbered
        self.notices = notices
    }
}

/// The options for creating the part file of a download.
package struct CreateTerms: Sendable {
    /// `true` to create a journal, so that an interrupted download can be resumed.
    package var journaled: Bool
    /// `true` to reserve disk space for the whole file, and to throw before the first byte if the file does not fit.
    package var reservesSpace: Bool
    /// `true` to throw `destinationExists` if another file has the final name when the part file has been locked.
    package var requiresFreeName: Bool
    /// `true` if the complete file, at most `mostAtHand` bytes, is in memory. Its part file then needs no name in the
    /// directory until it gets the final one.
    package var isAtHand: Bool
    /// `true` if the part file that this one replaces becomes the earlier one, which stays.
    package var keepsReplaced = false
    /// The URL of the download, whose salted digest the journal stores if necessary; `nil` to store none.
    package var link: LinkIdentity?
    /// The maximum length in bytes of a file whose part file may be created after all its bytes arrived in memory.
    package static let mostAtHand = SmallFilePolicy.longest

    /// Creates the options for creating the part file of a download.
    package init(journaled: Bool, reservesSpace: Bool = true, requiresFreeName: Bool = false, isAtHand: Bool = false) {
        self.journaled = journaled
        self.reservesSpace = reservesSpace
        self.requiresFreeName = requiresFreeName
        self.isAtHand = isAtHand
    }
}
