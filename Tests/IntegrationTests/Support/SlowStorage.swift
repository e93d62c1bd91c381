import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real disk, whose checkpoints take as long as those of a bad one.
final class SlowStorage: Storage {
    private let real = FileStorage()
    private let delay: Duration
    private let count = Atomic<Int>(0)

    init(_ delay: Duration) { self.delay = delay }

    /// Checkpoints that were begun.
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
            isDoubtful: part.isDoubtful, notices: part.notices)
    }

    func survey(_ place: Place) throws(TowlineError) -> Survey {
        let survey = try real.survey(place)
        guard case .unfinished(let part) = survey else { return survey }
        return .unfinished(slow(part))
    }

    func survey(named place: Place) throws(TowlineError) -> Survey { try real.survey(named: place) }

    func find(source: String, inDirectory directory: String) -> Place? {
        real.find(source: source, inDirectory: directory)
    }

    func seemsVacant(_ place: Place) -> Bool { real.seemsVacant(place) }

    func checkReplaceable(_ place: Place) throws(TowlineError) { try real.checkReplaceable(place) }

    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        slow(try real.create(place, record: record, terms: terms))
    }

    func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        slow(try real.replace(old, place: place, record: record, terms: terms))
    }

    func mismatches(_ checksums: [Checksum], at place: Place) async throws(TowlineError) -> [ChecksumMismatch] {
        try await real.mismatches(checksums, at: place)
    }

    func adopt(
        _ place: Place, source: String, checksums: [Checksum]
    ) async throws(TowlineError) -> PublishedFile? {
        try await real.adopt(place, source: source, checksums: checksums)
    }

    func isFinished(_ place: Place, source: String) -> Bool { real.isFinished(place, source: source) }

    func standardOutput(digesting algorithms: [Checksum.Algorithm]) -> OpenPart {
        real.standardOutput(digesting: algorithms)
    }

    func hasher(for checksum: Checksum) -> any ContentHasher { real.hasher(for: checksum) }
}
