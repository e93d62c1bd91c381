import Synchronization
import TowlineCore
import TowlineEngine

/// The running downloads: from the moment when they are taken from the queue until the results of their transfers are
/// in the registry.
///
/// A result is not in the registry while the registry cannot be written, because its disk is full or missing. Until
/// then, the download counts as running. This prevents a second start of a download that the registry still contains
/// as running, and prevents more running downloads than the limit.
final class RunningDownloads: Sendable {
    /// A task that writes the result of an ended transfer to the registry, the database of all downloads.
    typealias EndWrite = Task<Result<Void, TowlineError>, Never>

    /// A running download: the task that runs its transfer and, after the end, the result that the registry does not
    /// contain yet.
    private struct Entry {
        let download: LiveDownload
        let run: Task<Void, Never>
        /// The result of the ended transfer, which is not in the registry yet; `nil` while the transfer runs.
        var end: DownloadEnd?
        /// `true` if `end` is shown although it is not in the registry, because writing it failed.
        var isEndShown = false
        /// The task that is writing `end` to the registry; `nil` if no task runs.
        var write: EndWrite?
    }

    /// The running downloads, and those whose transfers are being started.
    private struct Contents {
        var entries: [DownloadID: Entry] = [:]
        /// The task that is starting each download: it first marks the download as active in the registry (the claim).
        var claims: [DownloadID: Task<Void, Never>] = [:]
        var isClosed = false
        var network = NetworkState.available
        var admission: Admission?
        /// The number of bytes that the last transfer of each download received. When full, becomes `receivedEarlier`.
        var received: [DownloadID: Int64] = [:]
        var receivedEarlier: [DownloadID: Int64] = [:]
        /// The number of downloads whose transfer has ended.
        var endCount = 0
    }

    /// The maximum number of downloads in `received`, so that the memory for ended downloads stays limited.
    private static let maximumReceived = 2000
    private let state = Mutex(Contents())

    // MARK: Closing

    /// `true` after `close`, so that no download starts any more.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func close() { state.withLock { $0.isClosed = true } }

    /// Throws the error `closed` if the downloader is closed, so that a command or query does not start.
    func checkOpen() throws(TowlineError) {
        if isClosed { throw TowlineError.managerClosed }
    }

    // MARK: Transfers

    /// The running download with this identifier; `nil` if the download has no transfer.
    subscript(_ id: DownloadID) -> LiveDownload? { state.withLock { $0.entries[id]?.download } }

    var all: [LiveDownload] { state.withLock { $0.entries.values.map(\.download) } }

    /// The entries of the running downloads, for a list that lost them.
    var records: [RegisteredDownload] { all.map(\.recordWithName) }

    /// Returns the downloads with a transfer that belong to a group; all if `group` is `nil`.
    func all(in group: String?) -> [LiveDownload] { all.filter { group == nil || $0.share.group == group } }

    /// The state of the machine's network as last reported to the downloads.
    var network: NetworkState { state.withLock { $0.network } }

    /// Stores the state of the machine's network, and returns the downloads with a transfer.
    func setNetwork(_ network: NetworkState) -> [LiveDownload] {
        state.withLock { state in
            state.network = network
            return state.entries.values.map(\.download)
        }
    }

    /// The limits on running downloads and the running downloads that count against them. They decide the reason of a
    /// queued download. `nil` before the first report of the scheduler.
    var admission: Admission? {
        get { state.withLock { $0.admission } }
        set { state.withLock { $0.admission = newValue } }
    }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// Returns the current snapshot (state and progress) of a running download; `nil` if the download does not run. A
    /// state that a kill could undo is not shown: the result of an ended transfer is in the registry first.
    func snapshot(of id: DownloadID) -> DownloadSnapshot? {
        guard let entry = state.withLock({ $0.entries[id] }) else { return nil }
        return entry.isEndShown ? entry.end?.snapshot : entry.download.snapshot
    }

    /// Returns the snapshot of a download with this registry entry, from its transfer if it runs, else from the entry
    /// and the summary `held` of its journal.
    func snapshot(of record: RegisteredDownload, held: JournalSummary?) -> DownloadSnapshot {
        if let snapshot = snapshot(of: record.id) { return snapshot }
        var snapshot = DownloadSnapshot(record, held)
        state.withLock { state in
            snapshot.receivedBytes = state.received[record.id] ?? state.receivedEarlier[record.id] ?? 0
            if snapshot.state == .queued, let limit = state.admission?.reason(for: Admission.Share(record)) {
                snapshot.reason = limit
            }
        }
        return snapshot
    }

    /// Returns whether a download has no transfer and none is being started, so that its state in the registry is
    /// valid.
    func isFree(_ id: DownloadID) -> Bool { state.withLock { $0.entries[id] == nil && $0.claims[id] == nil } }

    /// Returns the task that runs the transfer of `download`; `nil` if the transfer has ended and its result is in the
    /// registry.
    func run(of download: LiveDownload) -> Task<Void, Never>? {
        guard let entry = state.withLock({ $0.entries[download.id] }), entry.download === download else { return nil }
        return entry.run
    }

    var runs: [Task<Void, Never>] { state.withLock { $0.entries.values.map(\.run) } }

    /// The number of downloads whose transfer has ended, to detect an end during a read of the registry.
    var endCount: Int { state.withLock { $0.endCount } }

    /// Removes a download whose result is in the registry, and keeps the number of bytes that its transfer received.
    func remove(_ id: DownloadID) {
        let received = self[id]?.progress.received ?? 0
        state.withLock { state in
            state.entries[id] = nil
            state.endCount += 1
            if state.received.count >= Self.maximumReceived {
                state.receivedEarlier = state.received
                state.received = [:]
            }
            state.received[id] = received
        }
    }

    // MARK: Starting

    /// Records that the task `claim` is starting these downloads: it marks them as active in the registry first.
    /// Commands wait for the task.
    func beginClaim(_ ids: [DownloadID], _ claim: Task<Void, Never>) {
        state.withLock { state in
            for id in ids { state.claims[id] = claim }
        }
    }

    /// Records that the task that starts these downloads (the claim) has ended, and adds those whose transfers start,
    /// each with the task that runs its transfer.
    func endClaim(_ ids: [DownloadID], starting: [(LiveDownload, Task<Void, Never>)]) {
        state.withLock { state in
            for id in ids { state.claims[id] = nil }
            for (download, run) in starting { state.entries[download.id] = Entry(download: download, run: run) }
        }
    }

    /// Returns the task (the claim) that is starting the transfer of a download. Commands wait for its end.
    func claim(of id: DownloadID) -> Task<Void, Never>? { state.withLock { $0.claims[id] } }

    /// The tasks that are starting transfers of downloads, for a command to all downloads, which waits for them.
    var claims: [Task<Void, Never>] { state.withLock { Array($0.claims.values) } }

    // MARK: Results

    /// Stores the result of an ended transfer until the registry contains it and `remove` is called.
    func setEnd(_ end: DownloadEnd) { state.withLock { $0.entries[end.download.id]?.end = end } }

    /// Returns the result of a download's ended transfer that the registry does not contain yet; `nil` if there is
    /// none.
    func end(of id: DownloadID) -> DownloadEnd? { state.withLock { $0.entries[id]?.end } }

    /// The downloads whose transfers ended but whose results are not in the registry yet.
    var unwritten: [DownloadID] {
        state.withLock { $0.entries.values.filter { $0.end != nil }.map(\.download.id) }
    }

    /// Returns the running task that writes a download's result to the registry. If none runs, starts one with `start`.
    func write(of id: DownloadID, orStart start: () -> EndWrite) -> EndWrite {
        state.withLock { state in
            let write = state.entries[id]?.write ?? start()
            state.entries[id]?.write = write
            return write
        }
    }

    /// Removes the failed task that wrote a download's result to the registry, so that the write can be retried. The
    /// result is shown from now on.
    func removeWrite(of id: DownloadID) {
        state.withLock { state in
            state.entries[id]?.write = nil
            state.entries[id]?.isEndShown = true
        }
    }
}
