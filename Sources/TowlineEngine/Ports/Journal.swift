package import TowlineCore

/// A file next to the part file that records which bytes are written or durable, so that a download can be resumed.
/// `docs/on-disk-format.md` specifies the file format.
///
/// Every entry stays true for this part file: "bytes [a, b) are written" (until the machine reboots, so the entry has a
/// boot ID), or "bytes [a, b) are durable". Entries may be lost, but must never be false.
package protocol Journal: AnyObject, Sendable {
    /// The description of the download (URL, file name, length, ETag and so on) that the journal stores.
    var record: DownloadRecord { get }

    /// Stores a changed description of the download, for example with a length that became known. After a crash the old
    /// or the new one exists; the number of the part file (its generation) does not change.
    func update(_ record: DownloadRecord) throws(TowlineError)

    /// Stores the identity of the present part file. Call if its bytes are proven and its inode number is another one
    /// than when the journal was created.
    func adoptPart(_ sink: any Sink) throws(TowlineError)

    /// Gives the caller a slot: a journal entry that records consecutive written bytes from `offset` on, and that no
    /// other caller changes until `release`. Reuses an entry whose bytes end at `offset`, if any.
    ///
    /// - Returns: `nil` if all slots are in use: the caller then writes bytes without recording them, or not at all.
    func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)?

    /// Ends the caller's exclusive use of a slot (a journal entry), so that another caller can use it. Its bytes stay
    /// recorded.
    func release(_ slot: any JournalSlot)

    /// Makes the bytes that are recorded as written durable: calls `sink.synchronize()`, and records the bytes that
    /// were written before the call as durable.
    ///
    /// If synchronizing fails, removes the record of every byte that is not durable, and makes all slots invalid before
    /// it throws. The caller must then claim slots again.
    func checkpoint(_ sink: any Sink) async throws(TowlineError)

    /// Removes the record of the bytes in `range`, because they proved wrong. Durable on return, so the call may block
    /// for a sync of the journal; slots whose bytes overlap `range` become invalid and must be claimed again.
    func withdraw(_ range: ByteRange) throws(TowlineError)

    /// The byte ranges that are recorded as durable.
    var durable: ByteRangeSet { get }
    /// The byte ranges that are recorded as written since the machine booted, or as durable.
    var written: ByteRangeSet { get }
}

/// A journal entry (slot) that records consecutive written bytes. A single network thread writes these bytes to the
/// part file and extends the entry.
package protocol JournalSlot: AnyObject, Sendable {
    /// Records the bytes from the start of this entry up to the file offset `offset` as written. Call after their write
    /// returned; does nothing for an offset within the entry, or if the slot is invalid (`Journal.withdraw`).
    func mark(upTo offset: Int64) throws(TowlineError)
}

/// The description of a download that its journal stores besides the byte ranges. Contains no credentials (see
/// docs/on-disk-format.md).
package struct DownloadRecord: Hashable, Sendable {
    /// The URL that the user gave, without secrets (`HTTPURL.withoutSecrets`).
    package var source: String
    /// The URL after all redirects, without secrets; equal to `source` without a redirect.
    package var resolved: String
    /// The final file name, one path component.
    package var name: String
    /// The properties of the file that the server sent: complete length, validators (ETag, Last-Modified) and date.
    package var representation: Representation
    /// The checksums of the complete file that the user or the server gave, strongest first.
    package var checksums: [Checksum]
    /// The number of the part file, 1 for the first (its generation). A file that changed on the server gets a new part
    /// file with the next number.
    package var generation: UInt32
    /// `true` if the server does not support ranges for the file: the next transfer starts from the first byte.
    package var lacksRanges: Bool
    /// `true` if the download may connect only to public Internet addresses, because its requester must not reach
    /// services of this machine and its network.
    package var publicAddressesOnly: Bool
    /// `true` if the URL is https, but some bytes may have come over http from a mirror or after a redirect.
    package var mayBePlain: Bool
    /// The ID of the download in the list of a downloader, so that a list that is lost can be restored with its IDs;
    /// `nil` without a list.
    package var download: DownloadID?

    /// Creates the description of a download for its journal.
    package init(
        source: String, resolved: String, name: String, representation: Representation, checksums: [Checksum],
        generation: UInt32, lacksRanges: Bool = false, publicAddressesOnly: Bool = false, mayBePlain: Bool = false
    ) {
        self.source = source
        self.resolved = resolved
        self.name = name
        self.representation = representation
        self.checksums = checksums
        self.generation = generation
        self.lacksRanges = lacksRanges
        self.publicAddressesOnly = publicAddressesOnly
        self.mayBePlain = mayBePlain
    }
}
