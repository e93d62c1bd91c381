package import TowlineCore

/// A record of the written and durable bytes of a sink. `docs/on-disk-format.md` specifies the file format.
///
/// Every entry is a fact that stays true within its generation: "bytes [a, b) are written" under one boot id, or
/// "bytes [a, b) are durable". Entries may be lost, but must never be false.
package protocol Journal: AnyObject, Sendable {
    /// The stored description of the download.
    var record: DownloadRecord { get }

    /// Stores a changed record (a learned length, a new checksum). After a crash the old or the new record exists.
    /// Keeps the generation, which belongs to the part file.
    func update(_ record: DownloadRecord) throws(TowlineError)

    /// Leases a slot for a run of bytes that starts at `offset`. Continues the slot whose run ends at `offset`, if any.
    ///
    /// - Returns: `nil` if every slot is leased: the caller writes without marks, or not at all.
    func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)?

    /// Ends the lease of a slot. Its marks remain.
    func release(_ slot: any JournalSlot)

    /// Takes a snapshot of the written ranges, calls `sink.synchronize()`, and records exactly the snapshot as durable.
    ///
    /// If synchronizing fails, removes every mark that is not durable and invalidates every lease before it throws. The
    /// caller must then claim slots again.
    func checkpoint(_ sink: any Sink) async throws(TowlineError)

    /// Removes the written and durable marks of a range whose bytes proved wrong. The removal is durable on return; the
    /// call may block for a sync of the journal. Invalidates the leases on runs that overlap the range: claim them
    /// again.
    func withdraw(_ range: ByteRange) throws(TowlineError)

    /// The ranges that are marked durable.
    var durable: ByteRangeSet { get }
    /// The ranges that are marked written (under this boot id) or durable.
    var written: ByteRangeSet { get }
}

/// One run of bytes in the journal. A single engine thread writes and marks these bytes.
package protocol JournalSlot: AnyObject, Sendable {
    /// Marks the bytes from the start of the run up to `offset` as written. Called after the write returned.
    /// Does nothing for an offset within the run, or if the lease is invalid (`Journal.withdraw`).
    func mark(upTo offset: Int64) throws(TowlineError)
}

/// The data of a download that the journal stores besides its marks. Contains no credentials (DESIGN.md §3 rule 8).
package struct DownloadRecord: Hashable, Sendable {
    /// The URL that the user gave, without secrets (`HTTPURL.withoutSecrets`).
    package var source: String
    /// The URL after all redirects, without secrets; equal to `source` without a redirect.
    package var resolved: String
    /// The final name, one path component.
    package var name: String
    /// The complete length, the validators and the date.
    package var representation: Representation
    /// The checksums of the complete file that the user or the server gave, strongest first.
    package var checksums: [Checksum]
    /// The number of the part file; a file that changed on the server gets a new part file.
    package var generation: UInt32
    /// `true` if the server does not support ranges for the file: the next transfer starts from the first byte.
    package var lacksRanges: Bool
    /// `true` if the requester must not reach services of this machine and its network.
    package var publicAddressesOnly: Bool
    /// `true` if the URL is https, but some bytes may have come over http from a mirror or after a redirect.
    package var mayBePlain: Bool

    /// Creates a record.
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
