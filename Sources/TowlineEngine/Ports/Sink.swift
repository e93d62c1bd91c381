package import TowlineCore

/// Where the bytes of one generation of a download go.
///
/// Writes come out of order, from several engine threads at once. Two writes of the same range carry the same
/// bytes (the raced end), so their order does not matter.
package protocol Sink: AnyObject, Sendable {
    /// Writes all of `bytes` at `offset`; returning means written (they survive this process, not a power loss).
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TowlineError)

    /// A write waits until somebody reads, for as long as that takes: no byte for a while is no dead connection.
    var waitsForReaders: Bool { get }

    /// Reads bytes that were written before; fewer than the buffer holds only at the end of what is there.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TowlineError) -> Int

    /// Makes durable what was written before the call. Blocks no engine thread and no cooperative thread.
    ///
    /// A failure means that nothing since the last success may be believed; the caller must not just ask again
    /// (Linux reports a write-back error once and may have dropped the pages).
    func synchronize() async throws(TowlineError)

    /// What was written will be wanted on stable storage: it may begin to go there, so that `synchronize` has less to
    /// wait for. Promises nothing and returns at once.
    func startWriteback()

    /// Counts the space that the rest of a resumed download needs as taken.
    ///
    /// Throws `diskFull` if that is not free beside the other downloads.
    func promiseSpace() throws(TowlineError)

    /// Notices a sink that was deleted or replaced behind our back.
    func checkIntact() throws(TowlineError)

    /// The first `end` bytes are written and stay: what `verify` will need of them may be computed now. Returns at once.
    func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64)

    /// Bytes that were written are given up: nothing that was computed ahead counts.
    func forgetHashed()

    /// Compares the first `length` bytes, reading what was not hashed before.
    ///
    /// - Returns: the checksums that do not match, with what was found; empty if all do.
    func verify(_ checksums: [Checksum], length: Int64) async throws(TowlineError) -> [ChecksumMismatch]

    /// The bytes that follow `length` do not belong: a body that ended, or an older, longer file.
    func truncate(to length: Int64) throws(TowlineError)

    /// Makes the bytes appear under the final name, once, whole and, unless asked otherwise, durable.
    ///
    /// The journal's claims must cover everything. Idempotent after a crash at any step.
    func publish(_ terms: PublishTerms) async throws(TowlineError) -> PublishedFile

    /// Sets the bytes aside as `NAME.tow-bad`, numbered if that is taken, and forgets the journal: they are whole and wrong.
    ///
    /// - Returns: the path that they have now; `nil` if nothing can be kept.
    @discardableResult
    func setAside() throws(TowlineError) -> String?

    /// Removes the unfinished bytes and the journal: nothing worth keeping came, or the user wants it gone.
    func discard()

    /// Lets go of descriptors and locks, keeping everything.
    func close()
}

extension Sink {
    /// Files do not.
    package var waitsForReaders: Bool { false }

    /// No space is known to be needed.
    package func promiseSpace() throws(TowlineError) {}

    /// Nothing goes anywhere before it must.
    package func startWriteback() {}
    /// Nothing is computed ahead.
    package func hashAhead(_ algorithms: [Checksum.Algorithm], upTo end: Int64) {}
    /// Nothing was.
    package func forgetHashed() {}
}

/// A sink that the kernel can write to without a copy in this process.
package protocol PipeSink: Sink {
    /// Whether its file system can, as far as is known.
    var takesPipes: Bool { get }

    /// Writes the first `count` bytes of a pipe, which holds that many or more, at `offset`; returning means written. After
    /// an error nobody knows what the pipe still holds.
    func write(from pipe: Int32, count: Int, at offset: Int64) throws(TowlineError)
}

/// What publishing must respect.
package struct PublishTerms: Sendable {
    /// What to do if something is under the final name by now.
    package var existing: ExistingPolicy
    /// Wait until the bytes are on stable storage.
    package var durable: Bool
    /// Length of the whole.
    package var length: Int64
    /// The server's modification time for the file, seconds since 1970.
    package var modified: Int64?
    /// The validators that the server sent.
    package var version: PublishedVersion?

    /// Makes terms.
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

/// The file that publishing made, or left.
package struct PublishedFile: Hashable, Sendable {
    /// Its path.
    package let path: String
    /// Its length.
    package let length: Int64
    /// Its modification time, seconds since 1970, where a survey found it.
    package let modified: Int64?
    /// The validators that the server sent, where a survey found them.
    package let version: PublishedVersion?
    /// It was there before, is somebody else's, and was left (`ExistingPolicy.skip`).
    package let isForeign: Bool

    /// Makes one.
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
