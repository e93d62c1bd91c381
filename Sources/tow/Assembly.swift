import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineThreads

/// Puts the parts together: the engine, the disk below it and the wire.
enum Assembly {
    /// Runs the tasks of each command, on the first thread.
    static let executor = ThreadExecutor()

    private static let transport = CurlTransport(engineThreads: 2)

    /// The libraries of the system that are in use, as `curl --version` names them.
    static var libraries: String { CurlLibrary.versions }

    /// Begins, beside everything else, what downloads will wait for.
    static func warmUp() {
        FreedMemory.keep()
        _ = transport
    }

    /// What runs downloads.
    static func batchRunner(_ options: BatchOptions, observer: any BatchObserver) -> BatchRunner {
        BatchRunner(
            options: options, transport: transport, storage: FileStorage(forOneRun: true), observer: observer,
            executor: executor, after: { executor.after($0, $1) })
    }

    /// What is known of a download whose final path this is.
    static func status(path: String) throws(TowlineError) -> PlaceStatus {
        switch try JournalReader.look(at: path) {
        case .unfinished(let report, let owner):
            .unfinished(
                PartStatus(
                    path: path, record: report.record, written: report.written, durable: report.durable,
                    lockedBy: owner))
        case .unclaimed(let length, let owner): .unclaimed(path: path, partLength: length, lockedBy: owner)
        case .finished(let length): .finished(path: path, length: length)
        case .ordinary(let length): .ordinary(path: path, length: length)
        }
    }

    /// What a server offers.
    static func probe(_ options: DownloadOptions) async throws(TowlineError) -> ServerOffer {
        let report = try await Probe.run(options, transport: transport)
        return ServerOffer(report)
    }
}
