public import Foundation
public import TowlineCore
import TowlineEngine

/// The handle of one download. As many handles as wanted may be had of it; all are the same download.
///
/// After ``Downloader/close()`` every call throws `closed`; after ``remove(deletingFiles:)`` `unknownDownload`.
public struct Download: Sendable, Identifiable, Hashable {
    /// Its name, also after a relaunch.
    public let id: DownloadID
    let center: DownloadCenter
    let hub: SnapshotHub

    /// The same download.
    public static func == (left: Download, right: Download) -> Bool { left.id == right.id }

    /// By its name.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }

    // MARK: Where it stands

    /// Where it stands now. Of a download that does not run, what its journal tells; no request is made.
    public var snapshot: DownloadSnapshot {
        get async throws(TowlineError) { try await center.snapshot(id) }
    }

    /// Where it stands, now and whenever that changes, a few times a second while bytes arrive. Ends after a snapshot
    /// that is over (finished, failed, cancelled), when the download is removed, or when the downloader closes.
    ///
    /// A slow reader gets the newest snapshot only and slows nobody down.
    public var snapshots: AsyncStream<DownloadSnapshot> {
        get async { await hub.stream(id) { try? await center.snapshot(id) } }
    }

    /// Waits for the end and returns the file. Waits on while the download is paused or waits for the network.
    ///
    /// - Throws: what went wrong if it failed; `cancelled` if it was cancelled or removed, or if the task was.
    public var file: URL {
        get async throws(TowlineError) {
            for await snapshot in await snapshots {
                switch snapshot.state {
                case .finished:
                    guard let file = snapshot.file else { break }
                    return file
                case .failed: throw snapshot.error ?? TowlineError(.transient, "the download failed")
                case .cancelled: throw TowlineError(.cancelled, "the download was cancelled")
                default: continue
                }
            }
            if Task.isCancelled { throw TowlineError(.cancelled, "no longer waited for") }
            try await center.checkOpen()
            throw TowlineError(.cancelled, "the download was removed")
        }
    }

    /// Which bytes are there, and which are on their way, over which connection.
    ///
    /// - Throws: `unknownDownload` if it was removed.
    public var segments: DownloadSegments {
        get async throws(TowlineError) { try await center.segments(id) }
    }

    /// Its bytes, to be read while they arrive: what is read and not there yet is fetched ahead of the rest.
    ///
    /// Waits until an answer came and the length is known, if the server tells it; a download that waits for its turn is
    /// waited for. Of one that does not run what is on disk can be read.
    ///
    /// - Throws: `illegalTransition` if it is paused, failed or cancelled, and nothing of it is there; `unusableDestination`
    ///   if its finished file is gone or is another; `unknownDownload`; `cancelled`.
    public var content: DownloadContent {
        get async throws(TowlineError) { try await DownloadContent(id, center) }
    }

    /// What happened to it and why, oldest first, after the note of that number.
    public func timeline(after number: Int64 = 0, limit: Int = 1000) async throws(TowlineError) -> [TimelineNote] {
        try await center.timeline(id, after: number, limit: limit)
    }

    /// Calls `body` with every snapshot, as ``snapshots`` gives them, until the observation is cancelled or let go of.
    ///
    /// `body` runs where it is isolated: one written `{ @MainActor snapshot in … }` on the main actor. Where it is
    /// isolated to nothing, it runs on `executor`, or on the global one.
    public func observe(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @isolated(any) @Sendable (DownloadSnapshot) async -> Void
    ) -> Observation {
        let download = self
        return Observation(
            Task(executorPreference: executor) {
                for await snapshot in await download.snapshots { await body(snapshot) }
            })
    }

    /// Calls `body` once, when the download is over; runs where ``observe(on:_:)`` would run it.
    public func whenOver(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @isolated(any) @Sendable (Result<URL, TowlineError>) async -> Void
    ) -> Observation {
        let download = self
        return Observation(
            Task(executorPreference: executor) {
                let result: Result<URL, TowlineError>
                do throws(TowlineError) { result = .success(try await download.file) } catch {
                    result = .failure(error)
                }
                // Whoever let go of the observation is not called.
                if !Task.isCancelled { await body(result) }
            })
    }

    // MARK: What to do with it

    /// Stops it soon and keeps every byte. One that is paused stays so, also after a relaunch.
    ///
    /// - Throws: `illegalTransition` if it is over.
    public func pause() async throws(TowlineError) { try await center.pause(id) }

    /// Lets it go on: one that is paused or failed, and one that waits at once.
    ///
    /// - Throws: `illegalTransition` if it is finished or cancelled.
    public func resume() async throws(TowlineError) { try await center.resume(id) }

    /// Gives it up: what was fetched is removed from disk, the entry stays in the list. Returns when that is done.
    ///
    /// - Throws: `illegalTransition` if it is finished.
    public func cancel() async throws(TowlineError) { try await center.cancel(id) }

    /// Begins again what failed or was cancelled, or the follow-up that failed.
    public func retry() async throws(TowlineError) { try await center.retry(id) }

    /// Takes it off the list. Unless `deletingFiles`, what is on disk stays: an unfinished part can be adopted again.
    /// A finished file that was changed since is never deleted.
    public func remove(deletingFiles: Bool = false) async throws(TowlineError) {
        try await center.remove(id, deletingFiles: deletingFiles)
    }

    // MARK: Changing it

    /// Changes its priority; it goes to the end of those that have the same.
    public func setPriority(_ priority: Int) async throws(TowlineError) {
        try await center.change(id, restarts: false) { $0.priority = priority }
    }

    /// Puts it before another of the same priority, or at their end.
    public func move(before other: DownloadID?) async throws(TowlineError) { try await center.move(id, before: other) }

    /// Changes its own limit in bytes per second; `nil`: none. In force at once.
    public func setRateLimit(_ bytesPerSecond: Int64?) async throws(TowlineError) {
        try await center.change(id, restarts: false) { $0.rateLimit = bytesPerSecond }
    }

    /// Changes how many connections it may use; `nil`: as many as pay off. A running transfer begins again with it and
    /// keeps its bytes.
    public func setConnections(_ count: Int?) async throws(TowlineError) {
        try await center.change(id, restarts: true) { $0.connections = count }
    }

    /// Changes the group it counts in.
    public func setGroup(_ group: String?) async throws(TowlineError) {
        try await center.change(id, restarts: false) { $0.group = group }
    }

    /// Changes what comes back in snapshots.
    public func setMetadata(_ metadata: [String: String]) async throws(TowlineError) {
        try await center.change(id, restarts: false) { $0.metadata = metadata }
    }

    /// Gives it another link to the same file. The bytes are kept if that is proven.
    ///
    /// Of another origin (scheme, host, port) it is asked without the user and the header fields that were for the old
    /// one; fields that come with the link go there.
    ///
    /// - Parameters:
    ///   - link: where the file is now.
    ///   - publicAddressesOnly: from now on as ``DownloadRequest/publicAddressesOnly`` says; `false` leaves it as it is.
    public func setLink(_ link: RenewedLink, publicAddressesOnly: Bool = false) async throws(TowlineError) {
        try await center.change(id, restarts: true) { request in
            request.follow(link)
            if publicAddressesOnly { request.publicAddressesOnly = true }
        }
    }

    /// What was asked for, with its secrets.
    public var request: DownloadRequest {
        get async throws(TowlineError) { try await center.request(id) }
    }
}

/// An observation that goes on until it is cancelled or let go of.
public final class Observation: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }

    /// Ends it. A call that is under way is not interrupted.
    public func cancel() { task.cancel() }
}
