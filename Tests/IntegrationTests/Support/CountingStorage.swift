import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real storage, with counts of the ways in which small files were published.
final class CountingStorage: StorageRelay, @unchecked Sendable {
    private let instead: SmallFileOutcome?
    private let counts = Mutex((made: 0, declined: 0, created: 0))

    /// - Parameter instead: The outcome of every attempt to publish at once; `nil` to really publish.
    init(instead: SmallFileOutcome? = nil) { self.instead = instead }

    /// The number of files that were published at once.
    var made: Int { counts.withLock { $0.made } }
    /// The number of files that could not be published at once.
    var declined: Int { counts.withLock { $0.declined } }
    /// The number of part files.
    var created: Int { counts.withLock { $0.created } }

    override func publishAtOnce(_ file: SmallFile, at place: Place) async throws(TowlineError) -> SmallFileOutcome {
        if instead == .lost { file.body.release() }
        let outcome = if let instead { instead } else { try await real.publishAtOnce(file, at: place) }
        counts.withLock { if case .published = outcome { $0.made += 1 } else { $0.declined += 1 } }
        return outcome
    }

    override func create(_ place: Place, record: DownloadRecord, terms: CreateTerms) throws(TowlineError) -> OpenPart {
        counts.withLock { $0.created += 1 }
        return try real.create(place, record: record, terms: terms)
    }
}
