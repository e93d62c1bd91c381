package import FaultServer
import Synchronization
internal import TowlineCore
package import TowlineEngine

/// A simulated server with one file, and a storage in memory to download it into.
package final class SimulatedSite: Sendable {
    /// The path of the file.
    package static let path = "/file.bin"
    /// Its name.
    package static let name = "file.bin"
    /// The directory of the download.
    package static let directory = "/downloads"

    /// Time and tasks.
    package let simulation = Simulation()
    /// The server.
    package let server: SimulatedServer
    /// The disk.
    package let storage = MemoryStorage()
    /// The services of the current process.
    private let services: Mutex<TransferServices>
    /// Run each download as a list of one, as `tow get` does.
    package let asList: Bool

    /// Makes a site.
    package init(_ resource: Resource, more: [String: Resource] = [:], asList: Bool = false) {
        self.asList = asList
        server = SimulatedServer(more.merging([Self.path: resource]) { $1 }, in: simulation)
        services = Mutex(Self.services(server, storage, simulation))
    }

    private static func services(
        _ server: SimulatedServer, _ storage: MemoryStorage, _ simulation: Simulation
    ) -> TransferServices {
        TransferServices(
            transport: server, storage: storage, board: HostBoard(clock: simulation.clock),
            limiter: RateLimiter(rate: 0, clock: simulation.clock), executor: simulation, after: simulation.timer,
            clock: simulation.clock)
    }

    /// Options with one connection and short waits.
    package func options(
        _ target: String = SimulatedSite.path, _ change: (inout DownloadOptions) -> Void = { _ in }
    ) throws -> DownloadOptions {
        var options = DownloadOptions(
            url: try HTTPURL(parsing: "http://example.org" + target),
            target: .file(directory: Self.directory, name: Self.name))
        options.connections = 1
        options.maximumTries = 5
        options.retryWait = .milliseconds(20)
        options.stallTimeout = .seconds(4)
        options.connection.headTimeout = .seconds(4)
        // An empty proxy overrides one from the environment.
        options.connection.proxy = ""
        change(&options)
        return options
    }

    private func runner(_ options: DownloadOptions, _ observer: RecordingObserver) -> any DownloadRunner {
        guard !asList else { return LoneBatch(options, server, storage, observer, in: simulation) }
        return TransferRunner(options: options, services: services.withLock { $0 }, observer: observer)
    }

    /// Downloads the file.
    ///
    /// - Parameter during: what happens meanwhile.
    package func download(
        _ target: String = SimulatedSite.path, _ change: (inout DownloadOptions) -> Void = { _ in },
        during: (@Sendable (any DownloadRunner, RecordingObserver) async -> Void)? = nil
    ) throws -> Outcome {
        let options = try options(target, change)
        return try simulation.run { [self] in
            let observer = RecordingObserver()
            let runner = runner(options, observer)
            async let change: Void? = during?(runner, observer)
            let result: Result<CompletedTransfer, TowlineError>
            do throws(TowlineError) {
                result = .success(try await runner.run())
            } catch {
                result = .failure(error)
            }
            observer.end()
            await change
            return Outcome(result: result, notices: observer.notices)
        }
    }

    /// Leaves an unfinished download: `count` bytes come, then the server falls silent, and the user stops it.
    ///
    /// - Returns: the number of requests so far. The server behaves correctly afterwards.
    @discardableResult
    package func interrupt(
        after count: Int64, for purpose: StopPurpose = .pause, _ change: (inout DownloadOptions) -> Void = { _ in }
    ) throws -> (requests: Int, outcome: Outcome) {
        server.set(
            Behaviour { context in
                context.correct.body([.content(context.version.content, 0..<count), .stall])
            }, for: Self.path)
        let outcome = try download(Self.path) {
            change(&$0)
            $0.stallTimeout = .seconds(3600)
        } during: { runner, observer in
            await observer.wait { $0.heldBytes >= count }
            runner.stop(purpose)
        }
        server.set(.correct, for: Self.path)
        return (server.requests.count, outcome)
    }

    /// Begins to download the file, and ends the process after that time, as SIGKILL or a power cut would.
    package func downloadAndCrash(
        after time: Duration, powerCut: Bool = false, _ change: (inout DownloadOptions) -> Void = { _ in }
    ) throws {
        let options = try options(Self.path, change)
        try simulation.run { [self] in
            let runner = runner(options, RecordingObserver())
            Task(executorPreference: simulation) { _ = try? await runner.run() }
            await simulation.sleep(for: time)
        }
        restart(afterPowerCut: powerCut)
    }

    /// Ends the process in the middle of whatever it does, and starts another.
    package func restart(afterPowerCut: Bool = false) {
        simulation.endProcess()
        server.endConnections()
        if afterPowerCut { storage.losePower() } else { storage.kill() }
        services.withLock { $0 = Self.services(server, storage, simulation) }
    }

    // MARK: The disk

    /// The version whose bytes the file under the name has.
    package func published(_ versions: [Version]? = nil, name: String = SimulatedSite.name) -> Version? {
        guard let file = storage.files[Self.directory + "/" + name] else { return nil }
        let candidates = versions ?? [server.version(Self.path)].compactMap { $0 }
        return candidates.first {
            Int64(file.bytes.count) == $0.length && $0.content.firstMismatch(in: file.bytes, at: 0) == nil
        }
    }

    /// Returns whether a file has the final name.
    package var hasFile: Bool { storage.files[Self.directory + "/" + Self.name] != nil }

    /// Returns whether an unfinished download exists.
    package var hasPart: Bool { !storage.parts.isEmpty }
}
