import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real disk, and by which way small files came to it.
final class CountingStorage: Storage {
    private let real = FileStorage()
    private let allowsAtOnce: Bool
    private let counts = Mutex((made: 0, declined: 0, created: 0))

    /// - Parameter allowsAtOnce: `false`: nothing can be made at once here.
    init(allowsAtOnce: Bool = true) { self.allowsAtOnce = allowsAtOnce }

    /// Files that were made at once.
    var made: Int { counts.withLock { $0.made } }
    /// Those that were to be, and could not.
    var declined: Int { counts.withLock { $0.declined } }
    /// Part files.
    var created: Int { counts.withLock { $0.created } }

    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> PublishedFile? {
        let made = allowsAtOnce ? try await real.publishAtOnce(file, at: place) : nil
        counts.withLock { if made == nil { $0.declined += 1 } else { $0.made += 1 } }
        return made
    }

    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        counts.withLock { $0.created += 1 }
        return try real.create(place, record: record, terms: terms)
    }

    func survey(_ place: Place) throws(TowlineError) -> Survey { try real.survey(place) }

    func survey(named place: Place) throws(TowlineError) -> Survey { try real.survey(named: place) }

    func find(source: String, inDirectory directory: String) -> Place? {
        real.find(source: source, inDirectory: directory)
    }

    func seemsVacant(_ place: Place) -> Bool { real.seemsVacant(place) }

    func checkReplaceable(_ place: Place) throws(TowlineError) { try real.checkReplaceable(place) }

    func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        try real.replace(old, place: place, record: record, terms: terms)
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
