package import TowlineCore

/// A file next to the part file that records the bytes that are written and durable, so that a download can be resumed.
/// `docs/on-disk-format.md` specifies the file format.
///
/// Every entry is a fact that stays true for this part file: "bytes [a, b) are written" (until the machine reboots, so
/// the entry has a boot ID), or "bytes [a, b) are durable". Entries may be lost, but must never be false.
package protocol Journal: AnyObject, Sendable {
    /// The description of the download that the journal stores.
    var record: DownloadRecord { get }

    /// Stores a changed description (a learned length, a new checksum). After a crash the old or the new one exists.
    /// Keeps the generation, the number of the part file.
    func update(_ record: DownloadRecord) throws(TowlineError)

    /// Leases a slot: a journal entry for a run of consecutive bytes that starts at `offset` and that only the caller
    /// extends. Continues the slot whose run ends at `offset`, if any.
    ///
    /// - Returns: `nil` if every slot is leased: the caller then writes bytes without recording them, or not at all.
    func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)?

    /// Ends the lease of a slot. The slot's run stays recorded.
    func release(_ slot: any JournalSlot)

    /// Takes a snapshot of the written ranges, calls `sink.synchronize()`, and records exactly the snapshot as durable.
    ///
    /// If synchronizing fails, removes the record of every byte that is not durable, and invalidates every lease before
    /// it throws. The caller must then claim slots again.
    func checkpoint(_ sink: any Sink) async throws(TowlineError)

    /// Removes the record of the bytes in `range`, because they proved wrong. The removal is durable on return; the
    /// call may block for a sync of the journal. Invalidates the leases on runs that overlap `range`: claim them again.
    func withdraw(_ range: ByteRange) throws(TowlineError)

    /// The byte ranges that are recorded as durable.
    var durable: ByteRangeSet { get }
    /// The byte ranges that are recorded as written since the machine booted, or as durable.
    var written: ByteRangeSet { get }
}

/// A journal entry for one run of consecutive bytes. A single network thread writes these bytes and extends the run.
package protocol JournalSlot: AnyObject, Sendable {
    /// Records the bytes from the start of the run up to `offset` as written. Call after the write of the bytes
    /// returned. Does nothing for an offset within the run, or if the lease is invalid (`Journal.withdraw`).
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
    /// The facts about the file that the server sent: complete length, validators (ETag, Last-Modified) and date.
    package var representation: Representation
    /// The checksums of the complete file that the user or the server gave, strongest first.
    package var checksums: [Checksum]
    /// The generation: the number of the part file, 1 for the first. A file that changed on the server gets a new part
    /// file with the next number.
    package var generation: UInt32
    /// `true` if the server does not support ranges for the file: the next transfer starts from the first byte.
    package var lacksRanges: Bool
    /// `true` if the download may connect only to public Internet addresses, because its requester must not reach
    /// services of this machine and its network.
    package var publicAddressesOnly: Bool
    /// `true` if the URL is https, but some bytes may have come over http from a mirror or after a redirect.
    package var mayBePlain: Bool

    /// Creates the description of a download.
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
