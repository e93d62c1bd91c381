import TowlineCore
import TowlineEngine

/// Puts the parts together: the engine, the disk below it and the wire.
enum Assembly {
    /// PLACEHOLDER until the engine is merged.
    final class Runner: Sendable {
        func run(_ next: @escaping @Sendable () async -> Result<DownloadOptions, TowlineError>?) async {}
        func stop() {}
    }

    static func batchRunner(_ options: BatchOptions, observer: any BatchObserver) throws(TowlineError) -> Runner {
        Runner()
    }

    static func partStatus(path: String) throws(TowlineError) -> PartStatus {
        throw TowlineError(.unusableDestination, "no journal")
    }

    static func probe(_ options: DownloadOptions) async throws(TowlineError) -> ServerOffer {
        throw TowlineError(.transient, "no transport")
    }
}
