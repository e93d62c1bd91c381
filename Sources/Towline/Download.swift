public import Foundation
public import TowlineCore
import TowlineEngine

/// A handle of one download, for observing and controlling the download.
///
/// Handles with the same identifier refer to the same download. After ``Downloader/close()``, every call throws
/// `closed`. After ``remove(deletingFiles:)``, every call throws `unknownDownload`.
public struct Download: Sendable, Identifiable, Hashable {
    /// The identifier of the download, which stays the same after a relaunch.
    public let id: DownloadID
    /// The manager whose list contains the download. A handle keeps it open.
    public let manager: any DownloadManager

    /// Creates the handle of a download in the list of a manager, for example in a type that conforms to
    /// ``DownloadManager``. Does not check that the list contains the download.
    public init(id: DownloadID, manager: any DownloadManager) {
        self.id = id
        self.manager = manager
    }

    /// Returns whether two handles refer to the same download, by its identifier.
    public static func == (left: Download, right: Download) -> Bool { left.id == right.id }

    /// Adds the identifier of the download to the hasher, as `==` requires.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }

    // MARK: State and progress

    /// A snapshot of the current state and progress.
    ///
    /// The progress of a download that does not run is read from its journal. No request is sent.
    public var snapshot: DownloadSnapshot {
        get async throws(TowlineError) { try await manager.snapshot(of: id) }
    }

    /// The ``DownloadSnapshot/displayName`` of the current snapshot: a name of the download for people.
    public var displayName: String {
        get async throws(TowlineError) { try await snapshot.displayName }
    }

    /// The current snapshot, followed by a new snapshot after each change.
    ///
    /// While bytes arrive, a snapshot is delivered every ``Downloader/Configuration/snapshotInterval``. The sequence
    /// continues after the download finished, failed or was cancelled, because follow-ups run and ``start()`` may begin
    /// it again. It ends when the download is removed or the downloader closes. A slow reader receives only the newest
    /// snapshot and does not slow down the download.
    public var snapshots: AsyncStream<DownloadSnapshot> {
        get async { await manager.snapshotStream(of: id) }
    }

    /// Waits until the download and its follow-ups are finished, and returns the final URL of the file.
    ///
    /// The wait continues while the download is paused or waits for the network. If a follow-up moved the file, the URL
    /// is the new one; if it unpacked and deleted the archive, the URL is that of the new directory.
    ///
    /// - Throws: the error of the download if it failed; `followUpFailed` if a follow-up failed; `cancelled` if the
    ///   download was cancelled or removed; `CancellationError` if the current task was cancelled, which does not
    ///   affect the download.
    public var file: URL {
        get async throws { try await file(includingFollowUps: true) }
    }

    /// Waits until the download is finished, with or without its follow-ups, and returns the URL of the file.
    ///
    /// - Parameter includingFollowUps: `false` returns as soon as the file is complete and verified. A follow-up may
    ///   move or delete it afterwards.
    /// - Throws: the same errors as ``file``.
    public func file(includingFollowUps: Bool) async throws -> URL {
        for await snapshot in await snapshots {
            switch try snapshot.end(includingFollowUps: includingFollowUps) {
            case .some(let file): return file
            case .none: continue
            }
        }
        try Task.checkCancellation()
        do throws(TowlineError) {
            _ = try await snapshot
        } catch  where error.code != .unknownDownload {
            throw error
        } catch {
            // The stream ended because the download was removed.
        }
        throw TowlineError(.cancelled, "the download was removed from the list")
    }

    /// The byte ranges that are downloaded, and the segments that connections are receiving.
    ///
    /// - Throws: `unknownDownload` if the download was removed.
    public var segments: DownloadSegments {
        get async throws(TowlineError) { try await manager.segments(of: id) }
    }

    /// The bytes of the download, which can be read while they arrive.
    ///
    /// Bytes that a reader requests are downloaded before other bytes. This property waits for the first response of
    /// the server. If the download is queued, it waits until the download starts. If the download does not run, the
    /// bytes on the disk can be read.
    ///
    /// Only a ``Downloader`` has the bytes. For a download of another manager, read the finished ``file``.
    ///
    /// - Throws: `illegalTransition` if the download is paused, failed or cancelled and no bytes are on the disk, or if
    ///   ``manager`` is not a ``Downloader``; `unusableDestination` if the finished file was deleted or changed;
    ///   `unknownDownload` if the download was removed; `cancelled` if the current task was cancelled.
    public var content: DownloadContent {
        get async throws(TowlineError) { try await DownloadContent(id, try center.list) }
    }

    /// Returns notes of the timeline, the history of the download: those with a number greater than `number`, oldest
    /// first.
    ///
    /// - Parameters:
    ///   - number: the number of the last note that the caller has read; 0 for all notes.
    ///   - limit: the maximum number of notes. The nearest value replaces one outside 1 to 10,000.
    public func timeline(after number: Int64 = 0, limit: Int = 1000) async throws(TowlineError) -> [TimelineNote] {
        try await manager.timeline(of: id, after: number, limit: limit)
    }

    /// Calls `body` with each snapshot of ``snapshots`` until the observation is cancelled or released.
    ///
    /// `body` runs on its own actor: `{ @MainActor snapshot in … }` runs on the main actor. A closure without isolation
    /// runs on `executor`, or on the global executor if `executor` is `nil`.
    public func observe(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @isolated(any) @Sendable (DownloadSnapshot) async -> Void
    ) -> DownloadObservation {
        let download = self
        return DownloadObservation(
            Task(executorPreference: executor) {
                for await snapshot in await download.snapshots { await body(snapshot) }
            })
    }

    /// Calls `body` with each snapshot of ``snapshots`` on a dispatch queue, until the observation is cancelled or
    /// released. The next snapshot is delivered after `body` returned.
    public func observe(
        on queue: DispatchQueue, _ body: @escaping @Sendable (DownloadSnapshot) -> Void
    ) -> DownloadObservation {
        observe { snapshot in await queue.perform { body(snapshot) } }
    }

    /// Calls `body` once when the download and its follow-ups are finished, or have failed, or when the download is
    /// cancelled or removed. The result is the URL that ``file`` would return, or the error that it would throw.
    ///
    /// `body` runs on the same actor or executor as with `observe`. `body` is not called if the observation is
    /// cancelled or released earlier.
    public func whenOver(
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @isolated(any) @Sendable (Result<URL, any Error>) async -> Void
    ) -> DownloadObservation {
        let download = self
        return DownloadObservation(
            Task(executorPreference: executor) {
                let result: Result<URL, any Error>
                do { result = .success(try await download.file) } catch { result = .failure(error) }
                // A cancelled or released observation does not call `body`.
                if !Task.isCancelled { await body(result) }
            })
    }

    /// Calls `body` once on a dispatch queue when the download and its follow-ups are finished, or have failed, or when
    /// the download is cancelled or removed. The result is the URL that ``file`` would return, or the error that it
    /// would throw.
    public func whenOver(
        on queue: DispatchQueue, _ body: @escaping @Sendable (Result<URL, any Error>) -> Void
    ) -> DownloadObservation {
        whenOver { result in await queue.perform { body(result) } }
    }

    // MARK: Commands

    /// Pauses the download and keeps all downloaded bytes. The download stays paused after a relaunch.
    ///
    /// Returns when the transfer has ended and the pause is durable: it holds even if the process is killed then.
    ///
    /// - Throws: `illegalTransition` if the download is finished, failed or cancelled.
    public func pause() async throws(TowlineError) { try await manager.perform(.pause, on: id) }

    /// Starts the download if it does not run: a paused, failed or cancelled download, and one that waits for the
    /// network, the server or disk space.
    ///
    /// A running or queued download continues unchanged. For a finished download, the follow-ups that failed or did not
    /// run yet run now; without any, the call has no effect.
    public func start() async throws(TowlineError) { try await manager.perform(.start, on: id) }

    /// Downloads a finished file again, for example because the server has a new version.
    ///
    /// The old file stays under its name until the new file is complete, also if the process ends; the new file then
    /// replaces it, even if the old file was changed or moved by a follow-up. If the download fails or is cancelled,
    /// the old file stays. The follow-ups run again. A required checksum and the other options of the request still
    /// apply, but its secrets (header fields, cookies, passwords) are no longer stored: to send them, add the request
    /// again with ``TowlineCore/ExistingPolicy/update``.
    ///
    /// Returns when the command is durable; ``file`` then waits for the new file.
    ///
    /// - Throws: `illegalTransition` if the download is not finished, or a follow-up unpacked and deleted its file.
    public func refetch() async throws(TowlineError) { try await manager.perform(.refetch, on: id) }

    /// Resumes a paused, waiting or failed download. Throws `illegalTransition` if it is finished or cancelled.
    package func resume() async throws(TowlineError) { try await center.resume(id) }

    /// Starts a failed, cancelled, paused or waiting download again. Throws `illegalTransition` if it is finished and
    /// no follow-up failed.
    package func retry() async throws(TowlineError) { try await center.retry(id) }

    /// Cancels the download and deletes its downloaded bytes. The download stays in the list.
    ///
    /// Returns when the bytes are deleted.
    ///
    /// - Throws: `illegalTransition` if the download is finished.
    public func cancel() async throws(TowlineError) { try await manager.perform(.cancel, on: id) }

    /// Removes the download from the list.
    ///
    /// A running transfer is stopped first. Files on the disk are kept unless `deletingFiles` is `true`.
    /// ``Downloader/adoptUnfinished(in:)`` adds an unfinished download again from its files.
    ///
    /// - Parameter deletingFiles: deletes the unfinished bytes or the finished file. A finished file that was changed
    ///   after the download is not deleted.
    ///
    /// - Throws: `diskPermission` if the finished file cannot be deleted. The download then stays in the list.
    public func remove(deletingFiles: Bool = false) async throws(TowlineError) {
        try await manager.perform(.remove(deletingFiles: deletingFiles), on: id)
    }

    // MARK: Settings

    /// Sets the priority: downloads with a higher number start first. The download moves to the end of the downloads
    /// with the same priority.
    public func setPriority(_ priority: Int) async throws(TowlineError) {
        try await manager.perform(.setPriority(priority), on: id)
    }

    /// Moves the download in the queue to the position before `other`, or behind all downloads of its priority if
    /// `other` is `nil`.
    ///
    /// - Throws: `unusableOption` if the two downloads have different priorities.
    public func move(before other: DownloadID?) async throws(TowlineError) {
        try await manager.perform(.move(before: other), on: id)
    }

    /// Sets the rate limit of this download in bytes per second; `nil` means no limit. Takes effect immediately.
    public func setRateLimit(_ bytesPerSecond: Int64?) async throws(TowlineError) {
        try await manager.perform(.setRateLimit(bytesPerSecond), on: id)
    }

    /// Sets the maximum number of connections, 1 to 128; `nil` means automatic, at most 16.
    ///
    /// A running transfer restarts with the new value and keeps its bytes.
    ///
    /// - Throws: `unusableOption` if the number is out of range.
    public func setConnections(_ count: Int?) async throws(TowlineError) {
        try await manager.perform(.setConnections(count), on: id)
    }

    /// Sets the group of the download; `nil` means no group. ``Downloader/setLimit(_:forGroup:)`` limits a group.
    public func setGroup(_ group: String?) async throws(TowlineError) {
        try await manager.perform(.setGroup(group), on: id)
    }

    /// Sets the metadata: data of the caller that snapshots of this download contain unchanged.
    public func setMetadata(_ metadata: [String: String]) async throws(TowlineError) {
        try await manager.perform(.setMetadata(metadata), on: id)
    }

    /// Replaces the URL of the download with another link to the same file.
    ///
    /// The downloaded bytes are kept if the new link is proven to lead to the same file. If the link has another origin
    /// (scheme, host or port), the user name, the password, the cookies and the header fields of the old request are
    /// not sent to it. Header fields of the link itself are sent.
    ///
    /// - Parameters:
    ///   - link: the new link.
    ///   - publicAddressesOnly: `true` sets ``DownloadRequest/publicAddressesOnly``; `false` leaves it unchanged.
    public func setLink(_ link: RenewedLink, publicAddressesOnly: Bool = false) async throws(TowlineError) {
        try await manager.perform(.setLink(link, publicAddressesOnly: publicAddressesOnly), on: id)
    }

    /// Changes the directory of the download, for example after the directory was renamed.
    ///
    /// No file is moved: the file, or the part file and the journal, must already be in the new directory. The download
    /// then resumes with the bytes downloaded so far.
    ///
    /// - Throws: `illegalTransition` if the download is running, or if its files are still in the old directory, or if
    ///   a finished file is not in the new directory; `destinationBusy` if another download has the same URL or an
    ///   unfinished file of the same name in the new directory.
    public func setDirectory(_ directory: URL) async throws(TowlineError) {
        try await manager.perform(.setDirectory(directory), on: id)
    }

    /// The request of this download. A ``Downloader`` returns it with its secrets. Another manager may omit them.
    public var request: DownloadRequest {
        get async throws(TowlineError) { try await manager.request(of: id) }
    }

    /// The center of the downloader in this process that runs the download.
    ///
    /// - Throws: `illegalTransition` if the manager of the download is not a `Downloader`.
    private var center: DownloadCenter {
        get throws(TowlineError) {
            guard let downloader = manager as? Downloader else {
                throw TowlineError(
                    .illegalTransition,
                    "only a Downloader, which runs downloads in this process, can do this. "
                        + "Wait for the file of the download instead")
            }
            return downloader.center
        }
    }
}

/// A running observation of a download, returned by `Download.observe` and `Download.whenOver`. Ends
/// when ``cancel()`` is called or the last reference to the observation is released.
public final class DownloadObservation: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }

    /// Ends the observation. A call of the closure that is already scheduled or running still takes place.
    public func cancel() { task.cancel() }
}

extension DispatchQueue {
    /// Runs `body` on this dispatch queue and returns when it has ended, so that an observation delivers one snapshot
    /// at a time.
    fileprivate func perform(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            async {
                body()
                continuation.resume()
            }
        }
    }
}
