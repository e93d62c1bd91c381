import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine

/// Puts the parts together: the engine, the disk below it and the wire.
enum Assembly {
    /// What runs downloads.
    static func batchRunner(_ options: BatchOptions, observer: any BatchObserver) -> BatchRunner {
        BatchRunner(options: options, transport: CurlTransport(), storage: FileStorage(), observer: observer)
    }

    /// What is known of an unfinished download whose final path this is.
    static func partStatus(path: String) throws(TowlineError) -> PartStatus {
        let report = try JournalReader.inspect(path: path)
        return PartStatus(
            path: path, record: report.record, written: report.written, durable: report.durable,
            lockedBy: report.owner)
    }

    /// What a server offers.
    static func probe(_ options: DownloadOptions) async throws(TowlineError) -> ServerOffer {
        let report = try await Probe.run(options, transport: CurlTransport())
        return ServerOffer(report)
    }
}
