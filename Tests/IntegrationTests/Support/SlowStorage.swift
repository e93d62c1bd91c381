import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real storage with slow checkpoints, as on a bad disk.
final class SlowStorage: StorageRelay, @unchecked Sendable {
    private let delay: Duration
    private let count = Atomic<Int>(0)

    init(_ delay: Duration) { self.delay = delay }

    /// The number of checkpoints that have begun.
    var checkpoints: Int { count.load(ordering: .relaxed) }

    private final class SlowJournal: Journal {
        let real: any Journal
        let storage: SlowStorage

        init(_ real: any Journal, _ storage: SlowStorage) {
            self.real = real
            self.storage = storage
        }

        var record: DownloadRecord { real.record }
        var durable: ByteRangeSet { real.durable }
        var written: ByteRangeSet { real.written }
        func update(_ record: DownloadRecord) throws(TowlineError) { try real.update(record) }
        func claimSlot(at offset: Int64) throws(TowlineError) -> (any JournalSlot)? { try real.claimSlot(at: offset) }
        func adoptPart(_ sink: any Sink) throws(TowlineError) { try real.adoptPart(sink) }
        func release(_ slot: any JournalSlot) { real.release(slot) }
        func withdraw(_ range: ByteRange) throws(TowlineError) { try real.withdraw(range) }
        func checkpoint(_ sink: any Sink) async throws(TowlineError) {
            storage.count.add(1, ordering: .relaxed)
            try? await Task.sleep(for: storage.delay)
            try await real.checkpoint(sink)
        }
    }

    private func slow(_ part: OpenPart) -> OpenPart {
        OpenPart(
            sink: part.sink, journal: part.journal.map { SlowJournal($0, self) }, claims: part.claims,
            isDoubtful: part.isDoubtful, isRenumbered: part.isRenumbered, source: part.source, notices: part.notices)
    }

    override func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey {
        let survey = try real.survey(place, for: source, allowsCopies: allowsCopies)
        guard case .unfinished(let part) = survey else { return survey }
        return .unfinished(slow(part))
    }

    override func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        slow(try real.create(place, record: record, terms: terms))
    }

    override func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        slow(try real.replace(old, place: place, record: record, terms: terms))
    }
}
