public import Foundation
public import TowlineCore
import TowlineDisk
public import TowlineEngine
import TowlineRegistry
import TowlineSystem

/// The list of downloads in a state directory, and the scheduler that runs these downloads.
///
/// The list survives a relaunch, a kill and a power failure. When a downloader opens, it reads the list and the
/// progress from disk and resumes the downloads that were running. Only one process at a time can open a state
/// directory.
///
/// Secrets (user names, passwords, header fields, cookies, signatures in URLs) are stored in the registry, a file with
/// mode 0600 in the state directory, and in memory. Messages, events, journals and timelines contain no secrets.
///
/// If the last reference to a downloader is released, the downloader closes in the background, as with ``close()``.
public final class Downloader: DownloadManager {
    /// The number of bytes (64 MiB) that downloads leave free on a disk, because an unattended list must not fill the
    /// disk completely.
    private static let keptFree: Int64 = 64 << 20
    let center: DownloadCenter
    let hub: SnapshotHub
    private let monitor: any NetworkMonitor
    private let registry: SQLiteRegistry
    /// Messages for the user about problems of the list that were found and repaired, such as a damaged or deleted
    /// database. Empty if no problem was found. A problem that is found later is also an event
    /// (``DownloadEvent/troubled(_:)``).
    public var notices: [String] { registry.notices }

    /// Opens the list in a state directory and resumes the downloads that were running.
    ///
    /// The state directory contains the registry: the database of all downloads and of the limits that were changed at
    /// run time. A missing directory is created.
    ///
    /// - Parameters:
    ///   - stateDirectory: the directory of the list. Only one downloader can open it at a time.
    ///   - configuration: the limits and intervals of the downloader.
    ///   - transport: the HTTP client: libcurl, the system's `URLSession`, or a scripted network for tests.
    /// - Throws: `registryBusy` if another process has the state directory open; `unsupportedRegistry` if a newer
    ///   version wrote the registry, which is then left unchanged; `registryFailure` if the registry can be neither
    ///   read nor rebuilt.
    public convenience init(
        stateDirectory: URL, configuration: Configuration = Configuration(), transport: DownloadTransport
    ) async throws(TowlineError) {
        try await self.init(
            registry: .stateDirectory(stateDirectory), configuration: configuration, transport: transport)
    }

    /// Opens a list and resumes the downloads that were running.
    ///
    /// - Parameters:
    ///   - registry: the place of the list, such as ``DownloadRegistry/inMemory`` for tests.
    ///   - configuration: the limits and intervals of the downloader.
    ///   - transport: the HTTP client: libcurl, the system's `URLSession`, or a scripted network for tests.
    /// - Throws: the errors of ``init(stateDirectory:configuration:transport:)``.
    public convenience init(
        registry: DownloadRegistry, configuration: Configuration = Configuration(), transport: DownloadTransport
    ) async throws(TowlineError) {
        try await self.init(
            registry: registry, configuration: configuration, transport: transport,
            monitor: transport.makeMonitor?() ?? SystemNetwork.monitor())
    }

    /// Opens a list of downloads, and follows the network with `monitor`, which this object closes.
    init(
        registry: DownloadRegistry, configuration: Configuration, transport: DownloadTransport,
        monitor: any NetworkMonitor
    ) async throws(TowlineError) {
        await TimerReserve.fill()
        let roots = StorageRoots(configuration.roots)
        let files = LocalFiles(storage: FileStorage(keptFree: Self.keptFree, roots: roots))
        let lost = LostEntries(files: files)
        let registry = try await registry.open { lost.entries(in: $0) }
        self.registry = registry
        let clock = transport.clock ?? SystemClock()
        let services = TransferServices(
            transport: transport.make(), storage: files.storage, board: HostBoard { clock.time },
            limiter: RateLimiter(rate: configuration.rateLimit) { clock.time }, after: { clock.after($0, $1) },
            clock: { clock.time }, traces: configuration.logger.map { $0.logLevel <= .debug } ?? false)
        let hub = SnapshotHub()
        center = DownloadCenter(
            registry: registry, services: services, files: files, performer: LocalFollowUps(storage: files.storage),
            configuration: configuration, hub: hub, clock: clock)
        self.hub = hub
        self.monitor = monitor
        lost.running.withLock { $0 = center.running }
        let failures = RegistryFailures(hub: hub, onTrouble: configuration.onTrouble)
        registry.onNotice { notice in
            failures.report(TowlineError(.registryFailure, notice))
            hub.publish(.listChanged)
        }
        do throws(TowlineError) {
            try await center.launch()
            // Called after the launch, because a change of the network starts downloads.
            await center.watchNetwork(monitor)
        } catch {
            await monitor.close()
            await center.close()
            throw error
        }
    }

    deinit {
        let (monitor, center) = (monitor, center)
        Task {
            await monitor.close()
            await center.close()
        }
    }

    /// Stops all transfers and releases all threads, connections and files.
    ///
    /// Returns when everything is released. The list and all downloaded bytes are kept. Downloads that were running
    /// resume when the state directory is opened again. After this call, all other calls throw `closed`. A second call
    /// has no effect.
    public func close() async {
        await monitor.close()
        await center.close()
    }

    // MARK: Adding and finding

    /// Adds several downloads in one transaction: either all of them or none.
    ///
    /// Much faster than one call of ``DownloadManager/add(_:)`` for each download. Returns the handles in the order of
    /// the requests. If an error is thrown, no download was added.
    @discardableResult
    public func add(contentsOf requests: [DownloadRequest]) async throws(TowlineError) -> [Download] {
        try await center.add(requests).map { Download(id: $0, manager: self) }
    }

    /// Returns the handle of a download, or `nil` if the list does not contain this identifier.
    public func download(_ id: DownloadID) async throws(TowlineError) -> Download? {
        guard try await center.list.exists(id) else { return nil }
        return Download(id: id, manager: self)
    }

    /// Returns one page of the list of downloads: the snapshots of at most ``TowlineCore/DownloadQuery/limit``
    /// downloads that match the query. Sends no request to any server.
    public func page(_ query: DownloadQuery = DownloadQuery()) async throws(TowlineError) -> DownloadPage {
        try await center.list.page(query)
    }

    /// Returns the download with the URL and the destination of a request, or `nil` if the list does not contain it.
    /// Changes nothing and sends no request.
    ///
    /// - Throws: the error that ``add(contentsOf:)`` would throw, if the request is invalid.
    public func find(_ request: DownloadRequest) async throws(TowlineError) -> Download? {
        try await center.list.find(request).map { Download(id: $0, manager: self) }
    }

    /// Returns the current snapshots of several downloads, in the given order.
    ///
    /// The list is read once for all of them. Downloads that were removed are missing from the result.
    public func snapshots(of downloads: [Download]) async throws(TowlineError) -> [DownloadSnapshot] {
        try await center.list.snapshots(downloads.map(\.id))
    }

    /// The number of downloads in each state, and the sums of the downloaded bytes and of the known file sizes.
    public var totals: DownloadTotals {
        get async throws(TowlineError) { try await center.list.totals() }
    }

    /// Adds the unfinished downloads in a directory that are not in the list yet, and returns their handles.
    ///
    /// Such downloads come from the `tow` command, from another program, or from a list that was lost. They are found
    /// by their journal files and are added paused.
    @discardableResult
    public func adoptUnfinished(in directory: URL) async throws(TowlineError) -> [Download] {
        try await center.adopt(directory.standardizedFileURL.path).map { Download(id: $0, manager: self) }
    }

    // MARK: Events

    /// The events of all downloads from now on: additions, changes, removals, timeline notes and errors of the list.
    ///
    /// Each use returns a new sequence; any number of readers is possible. A slow reader misses intermediate changes,
    /// but always receives the last change of each download. A slow reader does not slow down the downloads.
    public var events: DownloadEvents { hub.events }

    // MARK: Network

    /// The state of the network of this machine. A change is visible within two seconds.
    public var network: NetworkState { monitor.state }

    /// The changes of ``network`` from now on. Each use returns a new sequence; any number of readers is possible. A
    /// slow reader misses intermediate changes.
    public var networkChanges: NetworkChanges {
        let states = monitor.changes()
        return NetworkChanges(states: states, first: monitor.state)
    }

    // MARK: All downloads

    /// Pauses all downloads, or only the downloads of a group if `group` is not `nil`.
    ///
    /// Finished, failed and cancelled downloads do not change.
    public func pauseAll(group: String?) async throws(TowlineError) { try await center.pauseAll(group: group) }

    /// Starts all paused downloads and the follow-ups that an earlier process left incomplete, or only the paused
    /// downloads of a group if `group` is not `nil`.
    public func startAll(group: String?) async throws(TowlineError) { try await center.resumeAll(group: group) }

    /// Sets the maximum number of downloads that run at the same time.
    ///
    /// The value is saved in the state directory. A lower value does not stop running downloads.
    ///
    /// - Throws: `unusableOption` if `count` is less than 1.
    public func setMaximumRunning(_ count: Int) async throws(TowlineError) {
        try await center.set(.running(count))
    }

    /// Sets the maximum number of downloads that run at the same time for each host.
    ///
    /// The value is saved in the state directory. A lower value does not stop running downloads.
    ///
    /// - Throws: `unusableOption` if `count` is less than 1.
    public func setMaximumRunningPerHost(_ count: Int) async throws(TowlineError) {
        try await center.set(.perHost(count))
    }

    /// Sets the rate limit for all downloads together, in bytes per second; 0 means no limit.
    ///
    /// The limit takes effect immediately and is saved in the state directory.
    ///
    /// - Throws: `unusableOption` if the value is negative.
    public func setRateLimit(_ bytesPerSecond: Int64) async throws(TowlineError) {
        try await center.set(.rate(bytesPerSecond))
    }

    /// Sets the maximum number of downloads of a group that run at the same time.
    ///
    /// `nil` removes the limit of the group. 0 lets no download of the group start. The value is saved in the state
    /// directory.
    ///
    /// - Throws: `unusableOption` if `count` is negative.
    public func setLimit(_ count: Int?, forGroup group: String) async throws(TowlineError) {
        try await center.set(.group(group, count))
    }
}
