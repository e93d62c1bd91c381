package import TowlineCore

/// An output for the bytes of one version of a file: a part file, or a stream such as standard output. If the file
/// changes on the server, a new sink replaces the part file.
///
/// Several network threads write at once and out of order. Two writes of the same range carry the same bytes (two
/// attempts may request the last bytes at the same time), so their order does not matter.
package protocol Sink: AnyObject, Sendable {
    /// Writes `bytes` at the file offset `offset`. After the return they survive the end of this process, but not a
    /// power loss.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError)

    /// `true` if a write may block until another process reads the output, as in a pipe. A pause without bytes then
    /// does not mean a dead connection.
    var waitsForReaders: Bool { get }

    /// Reads written bytes from `offset` and returns their number. Fills the buffer except at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int

    /// Makes the bytes that were written before the call durable (on stable storage). Blocks no network thread and no
    /// thread of Swift's concurrency runtime.
    ///
    /// After a failure every byte since the last success may be missing on disk. The caller must not simply call again,
    /// because Linux reports a write-back error once and may have dropped the pages.
    func synchronize() async throws(TowlineError)

    /// Starts to move the written bytes to stable storage, so that `synchronize` takes less time. A hint without a
    /// guarantee; returns at once.
    func startWriteback()

    /// Reserves the disk space that the rest of a resumed download needs.
    ///
    /// Throws `diskFull` if the free space is not sufficient for this and the other downloads.
    func promiseSpace() throws(TowlineError)

    /// Throws if another program deleted, moved or replaced the part file.
    func checkIntact() throws(TowlineError)

    /// Starts to hash the bytes before offset `end`, which are written and will not change, so that `verify` takes less
    /// time. Returns at once.
    func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64)

    /// Discards the hashes that `hashAhead` computed, because some of the written bytes will be replaced.
    func forgetHashed()

    /// Compares the first `length` bytes of the file with checksums. Reads the bytes that `hashAhead` did not hash.
    ///
    /// - Returns: The checksums that do not match, with the computed values; empty if all match.
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch]

    /// Publishes the complete part file under the final name, once and, if `terms.durable`, durably. Returns the
    /// published file, or the existing file that was kept.
    ///
    /// The ranges in the journal must cover the whole file. After a crash at any step, the call can be repeated.
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile

    /// Renames the part file to `NAME.tow-bad`, numbered if another file has that name, and invalidates the journal:
    /// the file is complete, but its checksum is wrong.
    ///
    /// - Returns: The new path; `nil` if the sink cannot keep its bytes.
    @discardableResult
    func setAside() throws(TowlineError) -> String?

    /// Removes the part file and the journal, because no byte is worth keeping or the user removes the download.
    func discard()

    /// Closes the file descriptors and releases the locks. Keeps the files.
    func close()
}

/// The default implementations for sinks that do not support a function, such as streams.
extension Sink {
    /// `false`: the default for a file, because no reader blocks a write.
    package var waitsForReaders: Bool { false }

    /// Does nothing: the default for a sink that needs no disk space.
    package func promiseSpace() throws(TowlineError) {}

    /// Does nothing: the default for a sink without early write-back.
    package func startWriteback() {}
    /// Does nothing: the default for a sink that hashes no bytes in advance.
    package func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64) {}
    /// Does nothing: the default for a sink that hashes no bytes in advance.
    package func forgetHashed() {}
}

/// A sink that the kernel can write to from a pipe (`splice`), without a copy in this process.
package protocol PipeSink: Sink {
    /// `true` unless the file system is known not to support writes from a pipe.
    var takesPipes: Bool { get }

    /// Writes the first `count` bytes of a pipe (`pipe` is its descriptor), which contains at least that many, at
    /// `offset`. After the return the bytes are written. After an error the contents of the pipe are undefined.
    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError)
}

/// The options for publishing a complete file (`Sink.publish`).
package struct PublishTerms: Sendable {
    /// The rule for a final name that another file already has: keep, replace or number.
    package var existing: ExistingPolicy
    /// `true` to wait until the bytes are on stable storage.
    package var durable: Bool
    /// The complete length of the file in bytes.
    package var length: Int64
    /// The server's modification time for the file, in seconds since 1970; `nil` if the server sent none.
    package var modified: Int64?
    /// The ETag and the date that the server sent, stored with the file for later comparison; `nil` to store none.
    package var version: PublishedVersion?

    /// Creates the options for publishing a file.
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
    /// `true` if the file existed before, is not from this download, and was kept (`ExistingPolicy.skip`).
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
