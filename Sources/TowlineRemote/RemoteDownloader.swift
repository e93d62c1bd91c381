public import Foundation
import Synchronization
public import Towline
import TowlineClient
public import TowlineCore
import TowlineWire

/// The list of downloads of the service `towd`, whose downloads continue while the app does not run.
///
/// All calls go over the Unix socket of `towd`, which runs as the same user. The app shares the list with `tow add`,
/// the web page and other apps. No call starts `towd`: a call while `towd` does not run throws `transient`.
///
/// Snapshots and events come from the event stream of `towd`, a few times a second. If `towd` stops or restarts, the
/// sequences continue: the connection is made again, the snapshots of all observed downloads are read, and readers of
/// ``events`` receive `listChanged`.
///
/// A request is limited to what the API of `towd` offers: a destination inside the downloads directories of `towd`, and
/// no follow-up other than `unpack` without `deletesArchive`. Other requests
/// throw `unusableOption` or `unusableDestination`.
public final class RemoteDownloader: DownloadManager {
    private let client: ServiceClient
    private let hub = SnapshotHub()
    private let state = Mutex(State())

    private struct State {
        /// The task that reads the event stream; `nil` before the first reader.
        var feed: Task<Void, Never>?
        var isClosed = false
    }

    /// Creates a client of the `towd` that listens on a Unix socket. Does not connect.
    public init(socket: URL) { client = ServiceClient(socket: socket.path, program: RemoteFeed.program) }

    /// Creates a client of the `towd` with a state directory, as in `towd --state`. Does not connect.
    public convenience init(stateDirectory: URL) {
        let places = ServicePlaces.ofUser(state: stateDirectory.standardizedFileURL.path)
        self.init(socket: URL(fileURLWithPath: places.socket))
    }

    /// Creates a client of the `towd` of this user, as `tow add` starts it. Does not connect.
    public convenience init() { self.init(socket: URL(fileURLWithPath: ServicePlaces.ofUser().socket)) }

    deinit {
        state.withLock { $0.feed }?.cancel()
        hub.close()
    }

    // MARK: The list

    /// Adds several downloads in one request to `towd`: either all of them or none, at most 1000.
    @discardableResult
    public func add(contentsOf requests: [DownloadRequest]) async throws(TowlineError) -> [Download] {
        var downloads: [Wire.NewDownload] = []
        for request in requests { downloads.append(try Wire.NewDownload(request)) }
        guard !downloads.isEmpty else { return [] }
        guard downloads.count <= Wire.NewDownloads.maximum else {
            throw TowlineError(
                .unusableOption,
                "towd adds at most \(Wire.NewDownloads.maximum) downloads in one call, got \(downloads.count)")
        }
        let new = downloads
        return try await ask { client in try await client.add(new).map { try self.handle($0) } }
    }

    /// Returns the download with the URL and the destination of a request, or `nil`.
    public func find(_ request: DownloadRequest) async throws(TowlineError) -> Download? {
        let download = try Wire.NewDownload(request)
        return try await ask { client in try await client.find(download).map { try self.handle($0) } }
    }

    /// Returns one page of the list of `towd`.
    public func page(_ query: DownloadQuery) async throws(TowlineError) -> DownloadPage {
        try await ask { client in
            let page = try await client.page(query.items)
            return DownloadPage(
                downloads: try page.downloads.map { try DownloadSnapshot($0) },
                next: page.next.map { DownloadCursor(text: $0) })
        }
    }

    /// The number of downloads in each state, and the sums of their bytes.
    public var totals: DownloadTotals {
        get async throws(TowlineError) { try await ask { client in DownloadTotals(try await client.totals) } }
    }

    /// The events of all downloads of `towd` from now on.
    ///
    /// `listChanged` follows each connection to `towd`, also the first one, because events before it are unknown.
    /// `troubled` reports that `towd` cannot be reached, once for each outage.
    public var events: DownloadEvents {
        defer { follow() }
        return hub.events
    }

    /// Pauses all downloads of `towd`, or only those of a group. Those of other apps pause too.
    public func pauseAll(group: String?) async throws(TowlineError) {
        try await ask { client in try await client.actOnAll("pause-all", group: group) }
    }

    /// Starts all paused downloads of `towd`, or only those of a group.
    public func startAll(group: String?) async throws(TowlineError) {
        try await ask { client in try await client.actOnAll("resume-all", group: group) }
    }

    /// Ends the connection to `towd`, whose downloads continue. All other calls then throw `closed`, and all sequences
    /// end.
    public func close() async {
        let feed = state.withLock { state in
            state.isClosed = true
            return state.feed.take()
        }
        feed?.cancel()
        hub.close()
    }

    // MARK: One download

    /// Returns the current state and progress of a download.
    public func snapshot(of id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        try await ask { client in try DownloadSnapshot(try await client.download(id.description)) }
    }

    /// Returns a sequence of the snapshots of a download. Ends when the download is removed or this object closes.
    /// While `towd` cannot be reached, the sequence waits.
    public func snapshotStream(of id: DownloadID) async -> AsyncStream<DownloadSnapshot> {
        follow()
        return await hub.stream(id) { () throws(TowlineError) in
            do throws(TowlineError) {
                return try await snapshot(of: id)
            } catch  where error.code == .unknownDownload {
                return nil
            }
        }
    }

    /// Carries out an action for a download.
    public func perform(_ action: DownloadAction, on id: DownloadID) async throws(TowlineError) {
        let change = try Wire.Change(action)
        let name = id.description
        try await ask { client in
            switch action {
            case .pause: _ = try await client.act("pause", on: name)
            case .start: _ = try await client.act("start", on: name)
            case .refetch: _ = try await client.act("refetch", on: name)
            case .cancel: _ = try await client.act("cancel", on: name)
            case .remove(let deletingFiles): try await client.remove(name, deletingFiles: deletingFiles)
            default: _ = try await client.change(name, change)
            }
        }
        // The stream ends with this call, as that of a downloader in this process, and not with the next event.
        if case .remove = action { hub.end(id) }
    }

    /// Returns the request of a download as far as `towd` reveals it: without secrets, and of the options only the rate
    /// limit.
    public func request(of id: DownloadID) async throws(TowlineError) -> DownloadRequest {
        try await ask { client in try DownloadRequest(try await client.download(id.description)) }
    }

    /// Returns notes of the timeline of a download.
    public func timeline(
        of id: DownloadID, after number: Int64, limit: Int
    ) async throws(TowlineError) -> [TimelineNote] {
        let limit = min(max(1, limit), 10_000)
        return try await ask { client in
            try await client.timeline(id.description, after: max(0, number), limit: limit).map { TimelineNote($0) }
        }
    }

    /// Returns the downloaded byte ranges of a download, at most 2000: close ranges are merged if there are more.
    public func segments(of id: DownloadID) async throws(TowlineError) -> DownloadSegments {
        try await ask { client in DownloadSegments(try await client.segments(id.description)) }
    }

    // MARK: Connection

    private func handle(_ download: Wire.Download) throws(TowlineError) -> Download {
        Download(id: try download.identifier, manager: self)
    }

    /// Begins to read the event stream, unless it is read already.
    private func follow() {
        state.withLock { state in
            guard state.feed == nil, !state.isClosed else { return }
            let feed = RemoteFeed(client, hub)
            state.feed = Task { await feed.run() }
        }
    }

    /// Calls `body` with the client. Throws `closed` after the end, `transient` if `towd` does not run, and `cancelled`
    /// if the task was cancelled.
    private func ask<Value>(
        _ body: (ServiceClient) async throws -> Value
    ) async throws(TowlineError) -> Value {
        if state.withLock({ $0.isClosed }) { throw TowlineError.managerClosed }
        do {
            return try await body(client)
        } catch {
            if Task.isCancelled { throw TowlineError(.cancelled, "the request to towd was cancelled") }
            throw RemoteFeed.error(error, client)
        }
    }
}
