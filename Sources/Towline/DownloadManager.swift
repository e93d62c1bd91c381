public import Foundation
public import TowlineCore

/// A list of downloads that an app adds to, shows and controls.
///
/// Three types conform to this protocol. ``Downloader`` runs the downloads in the process of the app.
/// `RemoteDownloader` of the product `TowlineRemote` passes all calls to the service `towd`, whose downloads continue
/// while the app does not run. `ScriptedDownloader` of the product `TowlineTesting` exists in memory only, for tests
/// and previews. A view model that takes `any DownloadManager` works with all three.
///
/// A ``Download`` calls the methods that take an identifier. An app uses the handle instead.
public protocol DownloadManager: Sendable {
    /// Adds several downloads in one transaction: either all of them or none.
    ///
    /// The same URL in the same directory is the same download. If the list already contains it, its handle is
    /// returned. The options of the request that differ from the defaults are applied to it: a running transfer restarts
    /// if necessary and keeps its bytes. A failed or cancelled download restarts with the new request. The file of a
    /// finished download is compared with a new checksum; ``TowlineCore/ExistingPolicy/overwrite`` downloads it again.
    /// Returns the handles in the order of the requests.
    ///
    /// - Throws: `unusableURL`, `unusableDestination`, `unusableHeader` or `unusableOption` if a request is invalid;
    ///   `optionConflict` if an option cannot be applied to an existing download; `checksumMismatch` if its finished
    ///   file does not match. No download is then added.
    @discardableResult
    func add(contentsOf requests: [DownloadRequest]) async throws(TowlineError) -> [Download]

    /// Returns the download with the URL and the destination of a request, or `nil` if the list does not contain it.
    /// Changes nothing and sends no request to the server of the file.
    ///
    /// - Throws: the error that ``DownloadManager/add(contentsOf:)`` would throw, if the request is invalid.
    func find(_ request: DownloadRequest) async throws(TowlineError) -> Download?

    /// Returns one page of the list of downloads: the snapshots of at most ``TowlineCore/DownloadQuery/limit``
    /// downloads that match the query.
    func page(_ query: DownloadQuery) async throws(TowlineError) -> DownloadPage

    /// The number of downloads in each state, and the sums of the downloaded bytes and of the known file sizes.
    var totals: DownloadTotals { get async throws(TowlineError) }

    /// The events of all downloads from now on: additions, changes, removals, timeline notes and errors of the list.
    ///
    /// Each use returns a new sequence; any number of readers is possible.
    var events: DownloadEvents { get }

    /// Pauses all downloads, or only the downloads of a group if `group` is not `nil`. Finished, failed and cancelled
    /// downloads do not change.
    func pauseAll(group: String?) async throws(TowlineError)

    /// Starts all paused downloads, or only those of a group if `group` is not `nil`.
    func startAll(group: String?) async throws(TowlineError)

    /// Releases all resources of the manager. All other calls then throw `closed`, and all sequences end. A second call
    /// has no effect.
    func close() async

    /// Returns the current state and progress of a download.
    ///
    /// - Throws: `unknownDownload` if the list does not contain the identifier.
    func snapshot(of id: DownloadID) async throws(TowlineError) -> DownloadSnapshot

    /// Returns the current snapshots of several downloads, in the given order. Downloads that were removed are missing
    /// from the result.
    func snapshots(of downloads: [Download]) async throws(TowlineError) -> [DownloadSnapshot]

    /// Returns a sequence of the current snapshot of a download, followed by a new snapshot after each change. Ends
    /// when the download is removed or the manager closes.
    func snapshotStream(of id: DownloadID) async -> AsyncStream<DownloadSnapshot>

    /// Carries out an action for a download, such as a pause.
    ///
    /// - Throws: `unknownDownload` if the list does not contain the identifier; `illegalTransition` if the state of the
    ///   download does not allow the action; `unusableOption` if a value is invalid.
    func perform(_ action: DownloadAction, on id: DownloadID) async throws(TowlineError)

    /// Returns the request of a download.
    func request(of id: DownloadID) async throws(TowlineError) -> DownloadRequest

    /// Returns notes of the timeline, the history of a download: at most `limit` of those with a number greater than
    /// `number`, oldest first.
    func timeline(of id: DownloadID, after number: Int64, limit: Int) async throws(TowlineError) -> [TimelineNote]

    /// Returns the byte ranges that are downloaded, and the segments that connections are receiving.
    func segments(of id: DownloadID) async throws(TowlineError) -> DownloadSegments
}

/// An action for one download, as the methods of ``Download`` request it.
public enum DownloadAction: Hashable, Sendable {
    /// Pauses the download: ``Download/pause()``.
    case pause
    /// Starts the download if it does not run: ``Download/start()``.
    case start
    /// Downloads a finished file again: ``Download/refetch()``.
    case refetch
    /// Cancels the download and deletes its bytes: ``Download/cancel()``.
    case cancel
    /// Removes the download from the list, with or without its files: ``Download/remove(deletingFiles:)``.
    case remove(deletingFiles: Bool)
    /// Sets the priority: ``Download/setPriority(_:)``.
    case setPriority(Int)
    /// Moves the download in the queue: ``Download/move(before:)``.
    case move(before: DownloadID?)
    /// Sets the rate limit in bytes per second: ``Download/setRateLimit(_:)``.
    case setRateLimit(Int64?)
    /// Sets the maximum number of connections: ``Download/setConnections(_:)``.
    case setConnections(Int?)
    /// Sets the group: ``Download/setGroup(_:)``.
    case setGroup(String?)
    /// Sets the metadata of the caller: ``Download/setMetadata(_:)``.
    case setMetadata([String: String])
    /// Records that the files were moved to another directory: ``Download/setDirectory(_:)``.
    case setDirectory(URL)
    /// Replaces the URL with another link to the same file: ``Download/setLink(_:publicAddressesOnly:)``.
    case setLink(RenewedLink, publicAddressesOnly: Bool = false)
}

extension DownloadManager {
    /// Adds a download to the end of the queue.
    ///
    /// The same URL in the same directory is the same download. If the list already contains the download, its handle
    /// is returned. A finished download sends no request, unless its file was deleted. A failed or cancelled download
    /// restarts with the options of the new request. A waiting download restarts only if the new options differ from
    /// the old options. ``DownloadRequest/publicAddressesOnly`` stays set if the earlier request had it set.
    ///
    /// The download is durable when this call returns.
    ///
    /// - Throws: `unusableURL`, `unusableDestination`, `unusableHeader` or `unusableOption` if the request is invalid;
    ///   `unusableDestination` if the list contains the URL in the directory under another file name; an error of the
    ///   registry if the list cannot be read or written.
    @discardableResult
    public func add(_ request: DownloadRequest) async throws(TowlineError) -> Download {
        try await add(contentsOf: [request])[0]
    }

    /// Returns the handle of a download, or `nil` if the list does not contain this identifier.
    public func download(_ id: DownloadID) async throws(TowlineError) -> Download? {
        do throws(TowlineError) {
            _ = try await snapshot(of: id)
            return Download(id: id, manager: self)
        } catch  where error.code == .unknownDownload {
            return nil
        }
    }

    /// Returns the handle of a download from its snapshot, for example from a row of ``downloads(_:)``.
    ///
    /// Does not check that the list still contains the download: the calls of the handle throw `unknownDownload` if it
    /// was removed.
    public func download(of snapshot: DownloadSnapshot) -> Download { Download(id: snapshot.id, manager: self) }

    /// The snapshots (state and progress) of all downloads that match the query, in its order. Sends no request to any
    /// server of files.
    ///
    /// The sequence reads one page of the list at a time, so that a list of any length needs little memory. A download
    /// that is added or moved meanwhile may be missing.
    public func downloads(_ query: DownloadQuery = DownloadQuery()) -> DownloadSequence {
        DownloadSequence(manager: self, query: query)
    }

    /// Returns the current snapshots of several downloads, one after the other.
    public func snapshots(of downloads: [Download]) async throws(TowlineError) -> [DownloadSnapshot] {
        var snapshots: [DownloadSnapshot] = []
        for download in downloads {
            do throws(TowlineError) {
                snapshots.append(try await snapshot(of: download.id))
            } catch  where error.code == .unknownDownload {
                continue
            }
        }
        return snapshots
    }

    /// Pauses all downloads. Finished, failed and cancelled downloads do not change.
    public func pauseAll() async throws(TowlineError) { try await pauseAll(group: nil) }

    /// Starts all paused downloads.
    public func startAll() async throws(TowlineError) { try await startAll(group: nil) }
}
