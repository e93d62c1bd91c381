import Synchronization
import TowlineCore
import TowlineDisk
import TowlineEngine

/// The real disk, and by which way small files came to it.
final class CountingStorage: StorageRelay, @unchecked Sendable {
    private let instead: SmallFileOutcome?
    private let counts = Mutex((made: 0, declined: 0, created: 0))

    /// - Parameter instead: nothing can be made at once here; this comes of it.
    init(instead: SmallFileOutcome? = nil) { self.instead = instead }

    /// Files that were made at once.
    var made: Int { counts.withLock { $0.made } }
    /// Those that were to be, and could not.
    var declined: Int { counts.withLock { $0.declined } }
    /// Part files.
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
