package import TowlineCore

/// What is known of the bytes in a sink. `docs/on-disk-format.md` is its contract on disk.
///
/// Every record is a fact that stays true within its generation: "bytes [a, b) are written" under one boot id, or
/// "bytes [a, b) are durable". Facts may be lost; none may be false.
package protocol Journal: AnyObject, Sendable {
    /// What the download is, as stored.
    var record: DownloadRecord { get }

    /// Stores a changed record (a learned length, a new checksum); survives a crash whole or not at all. Keeps the
    /// generation, which is the part file's.
    func update(_ record: DownloadRecord) throws(TowlineError)

    /// Leases a slot for a run of bytes that starts at `offset`; continues the slot whose run ends there.
    ///
    /// - Returns: `nil` if every slot is taken: write without marks, or not at all.
    func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)?

    /// Gives a slot back; what it marked stays marked.
    func release(_ slot: any JournalSlot)

    /// Snapshot of the written ranges → `sink.synchronize()` → exactly that snapshot recorded as durable.
    ///
    /// If synchronizing fails, everything that is not durable is unmarked before the error is thrown, and leases mark
    /// nothing any more: claim again.
    func checkpoint(_ sink: any Sink) async throws(TowlineError)

    /// Takes claims back, written and durable: the bytes were proven wrong. Durable when it returns; may block for a
    /// sync of the journal. Leases on runs that it touches mark nothing any more: claim again.
    func withdraw(_ range: ByteRange) throws(TowlineError)

    /// What is marked durable.
    var durable: ByteRangeSet { get }
    /// What is marked written (under this boot id) or durable.
    var written: ByteRangeSet { get }
}

/// One run of bytes in the journal, marked by the one engine thread that writes them.
package protocol JournalSlot: AnyObject, Sendable {
    /// Claims that everything from the run's start up to `offset` is written. Called after the write returned.
    /// Does nothing for an offset within the run, or if the lease was taken away (`Journal.withdraw`).
    func mark(upTo offset: Int64) throws(TowlineError)
}

/// What the journal stores of a download besides its marks. Holds no credentials (DESIGN.md §3 rule 8).
package struct DownloadRecord: Hashable, Sendable {
    /// The URL the user gave, without secrets (`HTTPURL.withoutSecrets`).
    package var source: String
    /// The URL that answered in the end, without secrets; equal to `source` if nothing redirected.
    package var resolved: String
    /// The final name, one path component.
    package var name: String
    /// Complete length, validators, date.
    package var representation: Representation
    /// What the user or the server says the whole must hash to, strongest first.
    package var checksums: [Checksum]
    /// Counts the part files of this download; a changed file gets a new one.
    package var generation: UInt32
    /// The server gave no ranges of it: another run starts over.
    package var lacksRanges: Bool
    /// Asked for by somebody who must not reach services of this machine and its network.
    package var publicAddressesOnly: Bool
    /// The URL is https, and some bytes may have come over http all the same: from a mirror, or after a redirect.
    package var mayBePlain: Bool

    /// Makes a record.
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
