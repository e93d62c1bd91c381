package import TowlineCore

/// Opens what is there for a destination, and creates what is not. Calls may block for as long as opening,
/// locking without waiting, and `fallocate` take.
package protocol Storage: AnyObject, Sendable {
    /// Looks at a destination and takes the lock on an unfinished download there.
    ///
    /// Picks up a crash between the steps of publishing. Throws `destinationBusy` if another process has it,
    /// `unsupportedJournal` for a newer format (left untouched), `unusableDestination` for a directory that does not
    /// exist, a part file that is a link, a FIFO or a directory. A damaged journal is set aside with a notice. What is finished is
    /// made durable, if it is of `source`; `nil`: whosever it is. A part file that its journal does not describe (a copy) is
    /// set aside with a notice unless `allowsCopies`.
    func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey

    /// What is under the final name, whatever unfinished is beside it: `.nothing`, `.finished` or `.occupied`. Locks nothing.
    /// Makes a finished file durable as `survey(_:for:allowsCopies:)` does.
    func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey

    /// An unfinished download in `directory` whose journal names `source`, when its name is not known beforehand.
    func find(source: String, inDirectory directory: String) -> Place?

    /// Whether nothing is at a place, neither a file nor anything unfinished of one, as far as the last reading of the
    /// directory tells and what this storage has published since: `create` finds what came meanwhile. Cheaper than `survey` after `find` in the same directory.
    func seemsVacant(_ place: Place) -> Bool

    /// Throws `unusableDestination` if the final name belongs to a directory, a pipe, a socket or a device, which no
    /// file may replace.
    ///
    /// - Parameter isReplaced: a file is to replace the present one. A symbolic link is refused then, too: neither the
    ///   link nor its target, which may be in another directory, is replaced.
    func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError)

    /// Creates part file and, unless `terms.journaled` is off, journal; takes the lock; reserves the space.
    ///
    /// Throws `diskFull` before the first byte if the file cannot fit.
    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart

    /// Makes a file of which all bytes are at hand, whole and under its name at once, where nothing has that name; durable, if
    /// that is asked for. A crash leaves the file or nothing.
    ///
    /// Where it has to wait for the disk its bytes are released: the file has them.
    ///
    /// - Returns: that it cannot be, if something may be at the place, the file system does not allow it, or a step failed.
    ///   Nothing has changed then; `survey`, `create` and `Sink.publish` find out why.
    /// - Throws: if the file is there, whole and durable, and only its name may not outlive a power loss.
    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome

    /// Creates the next generation and takes the place of `old`, which is closed and removed: new bytes never go
    /// into a file that old marks describe. A crash leaves the old, the new, or neither — never a mixture.
    func replace(_ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError)
        -> OpenPart

    /// Reads the file under the final name. If it has the checksum it is taken for a finished download of `source`: it is
    /// durable then, and known again wherever its attributes can be written. Whose download it was, if it was one, stays known.
    ///
    /// - Returns: that it is something else, and nothing has changed then.
    /// - Throws: `cancelled` if the task is; why it cannot be read, or made durable.
    func prove(_ place: Place, source: String, checksum: Checksum) async throws(TowlineError) -> FileProof

    /// Returns notices about calls that the file system of a directory lacks; each once.
    func takeNotices(inDirectory directory: String) -> [String]

    /// A sink that writes the bytes in order, once, and hashes them on the way.
    ///
    /// Throws if the output cannot be opened.
    func stream(to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]) throws(TowlineError) -> OpenPart

    /// Something that hashes passing bytes and compares with `checksum`.
    func hasher(for checksum: Checksum) -> any ContentHasher
}

extension Storage {
    /// Looks at a destination and sets no copy aside.
    package func survey(_ place: Place, for source: String? = nil) throws(TowlineError) -> Survey {
        try survey(place, for: source, allowsCopies: true)
    }
}

extension Storage {
    /// No notices.
    package func takeNotices(inDirectory directory: String) -> [String] { [] }

    /// Nothing is.
    package func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        .declined
    }
}

/// What came of a small file that was to be made at once.
package enum SmallFileOutcome: Sendable, Hashable {
    /// It is there.
    case published(PublishedFile)
    /// It is not, and its bytes are held as before.
    case declined
    /// It is not, and its bytes are lost: the disk has failed with them.
    case lost
}

/// The bytes of a small file, in memory.
package protocol HeldBytes: AnyObject, Sendable {
    /// All of them; none after `release`.
    var held: [UInt8] { get }
    /// They are wanted no more.
    func release()
    /// They are held again.
    func hold(_ bytes: [UInt8])
}

/// All of a small file.
package struct SmallFile: Sendable {
    /// Its bytes, `CreateTerms.mostAtHand` at most.
    package let body: any HeldBytes
    /// Where it came from: `DownloadRecord.source`.
    package let source: String
    /// The server's modification time for it, seconds since 1970.
    package let modified: Int64?
    /// The validators that the server sent.
    package let version: PublishedVersion?
    /// Wait until it is on stable storage.
    package let durable: Bool

    /// Makes one.
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

/// A directory and a name in it.
package struct Place: Hashable, Sendable {
    /// The directory.
    package var directory: String
    /// One path component.
    package var name: String

    /// Makes a place.
    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    /// The whole path.
    package var path: String { directory == "/" ? "/" + name : directory + "/" + name }
}

/// What is at a place.
package enum Survey: Sendable {
    /// Neither the file nor an unfinished download.
    case nothing(notices: [String])
    /// An unfinished download, locked for us.
    case unfinished(OpenPart)
    /// The file is there, and it is known to be a finished download; of what, `source` tells.
    case finished(PublishedFile, source: PublishedSource)
    /// Something else is under the name; that file, if it is one.
    case occupied(PublishedFile?)
}

/// What the bytes of a file say.
package enum FileProof: Sendable {
    /// It has the checksum.
    case proven(PublishedFile)
    /// It has another; `nil`: it is gone, or changed while it was read.
    case refuted(ChecksumMismatch?)
}

/// Where a finished file came from. Only a comparison can be asked for: the file keeps a digest, not the URL.
package struct PublishedSource: Sendable {
    private let comparison: @Sendable (String) -> Bool

    /// Makes one from a comparison with `DownloadRecord.source`.
    package init(_ comparison: @escaping @Sendable (_ source: String) -> Bool) { self.comparison = comparison }

    /// Whether it is that source.
    package static func == (published: PublishedSource, source: String) -> Bool { published.comparison(source) }
}

/// An unfinished download that this process holds the lock of.
package struct OpenPart: Sendable {
    /// Its bytes.
    package let sink: any Sink
    /// Its journal; none for small files.
    package let journal: (any Journal)?
    /// What may be believed: durable, and written if the machine has not rebooted; clipped to the part's size.
    package let claims: ByteRangeSet
    /// The part is not the very file that the journal was made with (copied, restored): compare more before joining.
    package let isDoubtful: Bool
    /// What a user should hear about: a damaged slot, a journal set aside, a shorter part file.
    package let notices: [String]

    /// Makes one.
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

/// How to create a part file.
package struct CreateTerms: Sendable {
    /// Keep a journal beside it.
    package var journaled: Bool
    /// Reserve space, and refuse at once where it cannot fit.
    package var reservesSpace: Bool
    /// Refuse with `destinationExists` if something is under the final name once the place is locked.
    package var requiresFreeName: Bool
    /// All of its bytes, `mostAtHand` at most, are there to be written at once: the part file may do without a name until
    /// it is published.
    package var isAtHand: Bool
    /// Files of which all bytes are in memory before they have a part file are not longer.
    package static let mostAtHand = SmallFilePolicy.longest

    /// Makes terms.
    package init(journaled: Bool, reservesSpace: Bool = true, requiresFreeName: Bool = false, isAtHand: Bool = false) {
        self.journaled = journaled
        self.reservesSpace = reservesSpace
        self.requiresFreeName = requiresFreeName
        self.isAtHand = isAtHand
    }
}
