import CTowline
import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineThreads

/// The connection of the engine with the storage and the transport.
enum Assembly {
    /// The executor of the tasks of each command, which run on the first thread.
    static let executor = ThreadExecutor()

    private static let transport = CurlTransport(engineThreads: 2)

    /// The versions of the system's libraries in use, in the format of `curl --version`.
    static var libraries: String { CurlLibrary.versions }

    /// Starts the transport early, so that downloads wait less for it. Freed memory is kept: each small file allocates
    /// and frees a buffer of about 100 KiB, and memory that was returned to the system costs page faults.
    static func warmUp() {
        towline_keep_freed_memory(8 << 20)
        _ = transport
    }

    static func batchRunner(_ options: BatchOptions, observer: any BatchObserver) -> BatchRunner {
        BatchRunner(
            options: options, transport: transport, storage: FileStorage(forOneRun: true), observer: observer,
            executor: executor, after: { executor.after($0, $1) })
    }

    /// Returns the state of the download with this final path. Throws if neither a file nor a download exists there.
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

    /// Sends a request and returns the properties of the server's response.
    static func probe(_ options: DownloadOptions) async throws(TowlineError) -> ServerOffer {
        let report = try await Probe.run(options, transport: transport)
        return ServerOffer(report)
    }
}
