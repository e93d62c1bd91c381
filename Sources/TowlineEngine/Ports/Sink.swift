package import TowlineCore

/// The destination of the bytes of one generation of a download.
///
/// Several engine threads write at once and out of order. Two writes of the same range carry the same
/// bytes (two attempts that race for the end), so their order does not matter.
package protocol Sink: AnyObject, Sendable {
    /// Writes `bytes` at `offset`. After the return they are written: they survive this process, but not a power loss.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError)

    /// `true` if a write waits without limit for a reader. A pause without bytes then does not mean a dead connection.
    var waitsForReaders: Bool { get }

    /// Reads written bytes and returns their number. Fills the buffer except at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int

    /// Makes the bytes that were written before the call durable. Blocks no engine thread and no cooperative thread.
    ///
    /// After a failure every byte since the last success is in doubt. The caller must not simply call again, because
    /// Linux reports a write-back error once and may have dropped the pages.
    func synchronize() async throws(TowlineError)

    /// Starts to move the written bytes to stable storage, so that `synchronize` takes less time. A hint without a
    /// guarantee; returns at once.
    func startWriteback()

    /// Reserves the space that the rest of a resumed download needs.
    ///
    /// Throws `diskFull` if the free space is not sufficient for this and the other downloads.
    func promiseSpace() throws(TowlineError)

    /// Throws if another program deleted or replaced the file.
    func checkIntact() throws(TowlineError)

    /// Starts to hash the first `end` bytes, which are written and final, in advance for `verify`. Returns at once.
    func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64)

    /// Discards the hashes that were computed in advance, because written bytes will be replaced.
    func forgetHashed()

    /// Compares the first `length` bytes with checksums. Reads the bytes that were not hashed in advance.
    ///
    /// - Returns: The checksums that do not match, with the computed values; empty if all match.
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch]

    /// Removes the bytes after `length`, for example after the end of the body, or of an older, longer file.
    func truncate(to length: Int64) throws(TowlineError)

    /// Publishes the complete file under the final name, once and, if `terms.durable`, durably.
    ///
    /// The journal's claims must cover the whole file. Idempotent after a crash at any step.
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile

    /// Renames the part file to `NAME.tow-bad`, numbered if another file has that name, and retires the journal: the
    /// file is complete but wrong.
    ///
    /// - Returns: The new path; `nil` if the sink cannot keep its bytes.
    @discardableResult
    func setAside() throws(TowlineError) -> String?

    /// Removes the part file and the journal: no byte is worth keeping, or the user removes the download.
    func discard()

    /// Closes the descriptors and releases the locks. Keeps the files.
    func close()
}

extension Sink {
    /// `false`: a write to a file does not wait for a reader.
    package var waitsForReaders: Bool { false }

    /// Does nothing, for a sink that needs no space.
    package func promiseSpace() throws(TowlineError) {}

    /// Does nothing, for a sink without early write-back.
    package func startWriteback() {}
    /// Does nothing, for a sink that hashes no bytes in advance.
    package func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64) {}
    /// Does nothing, for a sink that hashes no bytes in advance.
    package func forgetHashed() {}
}

/// A sink that the kernel can write to without a copy in this process.
package protocol PipeSink: Sink {
    /// `true` unless the file system is known not to support writes from a pipe.
    var takesPipes: Bool { get }

    /// Writes the first `count` bytes of a pipe, which contains at least `count` bytes, at `offset`. After the return
    /// they are written. After an error the contents of the pipe are undefined.
    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError)
}

/// The options for publishing.
package struct PublishTerms: Sendable {
    /// The policy for a final name that is taken.
    package var existing: ExistingPolicy
    /// `true` to wait until the bytes are on stable storage.
    package var durable: Bool
    /// The complete length in bytes.
    package var length: Int64
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package var modified: Int64?
    /// The validators that the server sent.
    package var version: PublishedVersion?

    /// Creates terms.
    package init(
        existing: ExistingPolicy, durable: Bool, length: Int64, modified: Int64?, version: PublishedVersion? = nil
    ) {
        self.existing = existing
        self.durable = durable
        self.length = length
        self.modified = modified
        self.version = version
    }
}

/// A file that publishing created or kept.
package struct PublishedFile: Hashable, Sendable {
    /// The path.
    package let path: String
    /// The length in bytes.
    package let length: Int64
    /// The modification time in seconds since 1970; set only by a survey.
    package let modified: Int64?
    /// The validators that the server sent; set only by a survey.
    package let version: PublishedVersion?
    /// `true` if the file existed before, is not from this download, and was kept (`ExistingPolicy.skip`).
    package let isForeign: Bool

    /// Creates the description of a file.
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
