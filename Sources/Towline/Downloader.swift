public import Foundation
public import TowlineCore
import TowlineCurl
import TowlineDisk
import TowlineEngine
import TowlineRegistry
import TowlineSystem

/// The list of downloads of a state directory, and what runs them.
///
/// Everything that is added is kept: after a relaunch, a kill or a power loss the list is there again with its progress,
/// before any request is made, and what was under way goes on. One process at a time has a state directory.
///
/// Secrets (user information, header fields, signatures in URLs) are kept in the registry, a file of mode 0600 in the
/// state directory, and in memory; no message, event, journal or timeline has them.
///
/// A downloader that is let go of closes as by ``close()``, only that nobody waits for it.
public actor Downloader {
    nonisolated let center: DownloadCenter
    nonisolated let hub: SnapshotHub
    private nonisolated let monitor: any NetworkMonitor
    /// What was noticed while the list was opened: a damaged one set aside, downloads found again.
    public nonisolated let notices: [String]

    /// Opens the list of a state directory, which is created if it is not there, and goes on with what was under way.
    ///
    /// - Throws: `registryBusy` if another process has it, `unsupportedRegistry` if a newer version wrote it (it is left
    ///   untouched), `registryFailure` if it can be neither read nor made anew.
    public init(stateDirectory: URL, configuration: Configuration = Configuration()) async throws(TowlineError) {
        await TimerReserve.fill()
        let files = LocalFiles(storage: FileStorage())
        let registry = try await SQLiteRegistry.open(
            stateDirectory: stateDirectory.path,
            rebuild: { directories in directories.flatMap { files.orphans(in: $0) } })
        let services = TransferServices(
            transport: CurlTransport(), storage: files.storage, board: HostBoard(),
            limiter: RateLimiter(rate: configuration.rateLimit))
        let hub = SnapshotHub()
        center = DownloadCenter(
            registry: registry, services: services, files: files, performer: LocalFollowUps(),
            configuration: configuration, hub: hub)
        self.hub = hub
        notices = registry.notices
        monitor = SystemNetwork.monitor()
        do throws(TowlineError) {
            await center.watchNetwork(monitor.changes())
            try await center.launch()
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

    /// Ends all transfers, keeps everything, and lets go of every thread, connection and file. Returns when that has
    /// happened. What was under way goes on when the state directory is opened again. Closing twice is no error;
    /// everything else throws `closed` from here on.
    public func close() async {
        await monitor.close()
        await center.close()
    }

    // MARK: Adding and finding

    /// Adds a download, which starts when its turn comes. The same URL to the same place is the same download: the
    /// handle of the one that is there is returned, and if that is finished no request is made. One that failed or was
    /// cancelled begins again as it is asked for now; ``DownloadRequest/publicAddressesOnly`` stays once it was asked for.
    ///
    /// Durable when it returns.
    ///
    /// - Throws: `unusableURL`, `unusableDestination`, `unusableHeader`, `unusableOption` for a request that could never
    ///   work; errors of the registry.
    @discardableResult
    public func add(_ request: DownloadRequest) async throws(TowlineError) -> Download {
        try await add(contentsOf: [request])[0]
    }

    /// Adds many at once, all or none; far faster than one by one.
    @discardableResult
    public func add(contentsOf requests: [DownloadRequest]) async throws(TowlineError) -> [Download] {
        try await center.add(requests).map { Download(id: $0, center: center, hub: hub) }
    }

    /// The handle of a download; `nil` if there is none of that name.
    public func download(_ id: DownloadID) async throws(TowlineError) -> Download? {
        guard try await center.exists(id) else { return nil }
        return Download(id: id, center: center, hub: hub)
    }

    /// A page of the list. Nobody is asked anything but the disk.
    public func downloads(_ query: DownloadQuery = DownloadQuery()) async throws(TowlineError) -> DownloadPage {
        try await center.page(query)
    }

    /// The handles of a page of the list.
    public func handles(_ query: DownloadQuery = DownloadQuery()) async throws(TowlineError) -> [Download] {
        try await center.page(query).downloads.map { Download(id: $0.id, center: center, hub: hub) }
    }

    /// Where several downloads stand now, in their order, read at once; those that were removed are left out.
    public func snapshots(of downloads: [Download]) async throws(TowlineError) -> [DownloadSnapshot] {
        try await center.snapshots(downloads.map(\.id))
    }

    /// How many downloads there are in each state, and their bytes.
    public var totals: DownloadTotals {
        get async throws(TowlineError) { try await center.totals() }
    }

    /// Takes unfinished downloads of a directory into the list that are not in it: other programs', or those of a list
    /// that was lost. They are added paused.
    @discardableResult
    public func adoptUnfinished(in directory: URL) async throws(TowlineError) -> [Download] {
        try await center.adopt(directory.standardizedFileURL.path).map { Download(id: $0, center: center, hub: hub) }
    }

    // MARK: What happens

    /// Everything that happens to any download from now on, for as many readers as want it. A slow reader loses
    /// intermediate changes, never the last one, and slows nobody down.
    public nonisolated var events: DownloadEvents { DownloadEvents(mailbox: hub.mailbox()) }

    // MARK: All together

    /// Pauses everything, or everything of a group. Finished and failed downloads stay as they are.
    public func pauseAll(group: String? = nil) async throws(TowlineError) { try await center.pauseAll(group: group) }

    /// Lets everything that is paused go on, or everything of a group.
    public func resumeAll(group: String? = nil) async throws(TowlineError) { try await center.resumeAll(group: group) }

    /// Changes how many downloads run at once; kept. Lowering it ends none that run.
    public func setMaximumRunning(_ count: Int) async throws(TowlineError) {
        try await center.setMaximumRunning(count)
    }

    /// Changes how many run at once for each host; kept.
    public func setMaximumRunningPerHost(_ count: Int) async throws(TowlineError) {
        try await center.setMaximumRunningPerHost(count)
    }

    /// Changes the limit in bytes per second of all together; 0: none. Kept, and in force at once.
    public func setRateLimit(_ bytesPerSecond: Int64) async throws(TowlineError) {
        try await center.setRateLimit(bytesPerSecond)
    }

    /// Changes how many downloads of a group run at once; `nil`: no limit of its own, 0: none. Kept.
    public func setLimit(_ count: Int?, forGroup group: String) async throws(TowlineError) {
        try await center.setLimit(count, forGroup: group)
    }
}
