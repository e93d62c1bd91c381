package import TowlineCore

/// An output for the bytes of one version of a file: a part file, or a stream such as standard output. If the file
/// changes on the server, a new sink replaces the part file.
///
/// Several network threads write at once and out of order. Two writes of the same range carry the same bytes (two
/// requests may ask for the last bytes at the same time), so their order does not matter.
package protocol Sink: AnyObject, Sendable {
    /// Writes `bytes` at the file offset `offset`. After the return they survive the end of this process, but not a
    /// power loss (see `synchronize`).
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError)

    /// `true` if a write may block until another process reads the output, as in a pipe. The time in such a write does
    /// not count as a stall of the connection.
    var waitsForReaders: Bool { get }

    /// Reads bytes that were already written, from the file offset `offset`, and returns their number. Fills the buffer
    /// except at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int

    /// Makes the bytes that were written before the call durable: they survive a power loss. Blocks no network thread
    /// and no thread of Swift's concurrency runtime.
    ///
    /// After a failure every byte since the last success may be missing on disk. The caller must not simply call again,
    /// because Linux reports a write-back error once and may have dropped the pages.
    func synchronize() async throws(TowlineError)

    /// Starts to move the written bytes to stable storage in the background, so that `synchronize` takes less time
    /// later. A hint without a guarantee; returns without waiting.
    func startWriteback()

    /// Reserves the disk space that the rest of a resumed download needs.
    ///
    /// Throws `diskFull` if the free space is not sufficient for this download and the others, which also reserved
    /// space.
    func promiseSpace() throws(TowlineError)

    /// Checks that the part file still exists at its path and contains the bytes that its journal records. Throws an
    /// error with `isPartLost` if another program deleted, moved, replaced or shortened it.
    func checkIntact() throws(TowlineError)

    /// Like `checkIntact`, and checks that no byte before the file offset `length` is missing. The caller has written
    /// all of them, so a missing byte was removed by another program.
    func checkIntact(upTo length: Int64) throws(TowlineError)

    /// Starts to compute checksums of the bytes before the file offset `end`, which are written and will not change, so
    /// that `verify` takes less time. Returns without waiting for the result.
    func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64)

    /// Discards the partial checksums that `hashAhead` computed, because some of the written bytes will be replaced.
    func forgetHashed()

    /// Compares the first `length` bytes of the file with checksums. Reads only the bytes that `hashAhead` has not
    /// read.
    ///
    /// - Returns: The checksums that do not match, with the computed values; empty if all match.
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch]

    /// Gives the complete part file its final name, once and, if `terms.durable`, durably. Returns the finished file,
    /// or the existing file with that name if it was kept.
    ///
    /// The ranges in the journal must cover the whole file. After a crash at any step, the call can be repeated. Throws
    /// an error with `isPartLost` if another program removed bytes of the part file; no file has the final name then.
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile

    /// Renames a complete part file with a wrong checksum to `NAME.tow-bad`, numbered if another file has that name,
    /// and invalidates its journal.
    ///
    /// - Returns: The new path; `nil` if the sink cannot keep its bytes, such as a pipe.
    @discardableResult
    func setAside() throws(TowlineError) -> String?

    /// Removes the part file and the journal, because the part file has no useful bytes or the user removes the
    /// download.
    func discard()

    /// Closes the file descriptors and releases the locks. The part file and the journal stay on disk.
    func close()
}

/// The default implementations for sinks that do not support a function, such as output streams.
extension Sink {
    /// `false`: the default for a sink that is a file, because no other process can block a write.
    package var waitsForReaders: Bool { false }

    /// Checks only that the part file exists: the default for a sink whose bytes no other program can remove.
    package func checkIntact(upTo length: Int64) throws(TowlineError) { try checkIntact() }

    /// Does nothing: the default for a sink that needs no disk space.
    package func promiseSpace() throws(TowlineError) {}

    /// Does nothing: the default for a sink whose written bytes cannot be moved to stable storage in advance.
    package func startWriteback() {}
    /// Does nothing: the default for a sink that computes no checksums in advance.
    package func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64) {}
    /// Does nothing: the default for a sink that has no checksums computed in advance.
    package func forgetHashed() {}
}

/// A sink that the kernel can write to from a pipe (`splice`), without a copy in this process.
package protocol PipeSink: Sink {
    /// `true` unless the file system is known not to support writes from a pipe (`splice`).
    var takesPipes: Bool { get }

    /// Writes the first `count` bytes of a pipe with the descriptor `pipe`, which contains at least that many, at the
    /// file offset `offset`. After an error the contents of the pipe are undefined.
    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError)
}

/// The options for giving a complete file its final name (`Sink.publish`).
package struct PublishTerms: Sendable {
    /// The rule if another file already has the final name: keep that file, replace it, or number the new one.
    package var existing: ExistingPolicy
    /// `true` if the user chose the file name. A name that the server chose replaces only a finished file of the same
    /// URL, and the new file does not keep the executable bits of that file.
    package var isUsersName: Bool
    /// `true` to wait until the file is on stable storage before the publishing ends.
    package var durable: Bool
    /// The complete length of the file in bytes.
    package var length: Int64
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package var modified: Int64?
    /// The ETag and the date that the server sent, stored with the file for later comparison; `nil` to store none.
    package var version: PublishedVersion?
    /// The URL of the download, whose salted digest is stored with the file if necessary; `nil` to store none.
    package var link: LinkIdentity?

    /// Creates the options for giving a complete file its final name.
    package init(
        existing: ExistingPolicy, isUsersName: Bool = true, durable: Bool, length: Int64, modified: Int64?,
        link: LinkIdentity? = nil, version: PublishedVersion? = nil
    ) {
        self.link = link
        self.existing = existing
        self.isUsersName = isUsersName
        self.durable = durable
        self.length = length
        self.modified = modified
        self.version = version
    }
}

/// A finished file: the result of publishing a download, or an existing file that was found or kept.
package struct PublishedFile: Hashable, Sendable {
    /// The path of the file.
    package let path: String
    /// The length of the file in bytes.
    package let length: Int64
    /// The modification time in seconds since 1970; set only by `Storage.survey`, otherwise `nil`.
    package let modified: Int64?
    /// The ETag and the date that the server sent; set only by `Storage.survey`, otherwise `nil`.
    package let version: PublishedVersion?
    /// `true` if the file existed before, does not come from this download, and was kept (`ExistingPolicy.skip`).
    package let isForeign: Bool

    /// Creates the description of a finished file.
    package init(
        path: String, length: Int64, modified: Int64? = nil, version: PublishedVersion? = nil, isForeign: Bool = false
    ) {
        self.path = path
        self.length = length
        self.modified = modified
        self.version = version
        self.isForeign = isForeign
    }
}

extension PublishedFile {
    /// Returns whether the file has the length and the strong validator of a response, so that both are the same file
    /// even if their URLs may be those of different files.
    func isProven(by offered: Representation) -> Bool {
        guard length == offered.completeLength, let version, case .strong = offered.validator else { return false }
        if let mine = version.entityTag, let theirs = offered.entityTag { return mine.matchesStrongly(theirs) }
        return version.isDated && modified == offered.lastModified?.secondsSince1970
    }
}

extension TowlineError {
    /// The error number `ESTALE` of Linux, which marks the error of a part file that another program changed.
    package static let lostPartNumber: Int32 = 116

    /// `true` if another program deleted, moved, replaced or shortened the part file, so that the download must start
    /// over.
    package var isPartLost: Bool { code == .diskFailure && systemError == Self.lostPartNumber }
}
