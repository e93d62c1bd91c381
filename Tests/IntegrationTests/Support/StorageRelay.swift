import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real storage. Subclasses change some of its behaviour.
class StorageRelay: Storage, @unchecked Sendable {
    let real = FileStorage()

    func survey(_ place: Place, for source: String?, allowsCopies: Bool) throws(TowlineError) -> Survey {
        try real.survey(place, for: source, allowsCopies: allowsCopies)
    }

    func survey(named place: Place, for source: String?) throws(TowlineError) -> Survey {
        try real.survey(named: place, for: source)
    }

    func find(_ link: LinkIdentity, inDirectory directory: String) -> Place? {
        real.find(link, inDirectory: directory)
    }

    func seemsVacant(_ place: Place) -> Bool { real.seemsVacant(place) }

    func checkReplaceable(_ place: Place, isReplaced: Bool) throws(TowlineError) {
        try real.checkReplaceable(place, isReplaced: isReplaced)
    }

    func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        try real.create(place, record: record, terms: terms)
    }

    func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        .declined
    }

    func replace(
        _ old: OpenPart, place: Place, record: DownloadRecord, terms: CreateTerms
    ) throws(TowlineError) -> OpenPart {
        try real.replace(old, place: place, record: record, terms: terms)
    }

    func removeEarlier(_ place: Place) { real.removeEarlier(place) }

    func prove(_ place: Place, link: LinkIdentity, checksum: Checksum) async throws(TowlineError) -> FileProof {
        try await real.prove(place, link: link, checksum: checksum)
    }

    func stream(to output: StreamOutput, digesting algorithms: [Checksum.Algorithm]) throws(TowlineError) -> OpenPart {
        try real.stream(to: output, digesting: algorithms)
    }

    func hasher(for checksum: Checksum) -> any ContentHasher { real.hasher(for: checksum) }
}
