import TowlineCore
import TowlineEngine

/// Carries out the commands of callers of the library: add, pause, resume, cancel, remove. The state of the download
/// decides each command. The state is in the registry (the database of all downloads), or with the transfer if the
/// download runs.
///
/// When a command returns, its result is durable in the registry and visible in snapshots.
final class DownloadCenter: Sendable {
    let list: DownloadList
    let running: RunningDownloads
    let followUps: FollowUpRunner
    let scheduler: DownloadScheduler
    let registry: any Registry
    let files: any DownloadFiles
    let clock: any DownloadClock
    private let board: HostBoard
    let locks = RequestLocks()
    private let identifiers = IDSource()

    init(
        registry: any Registry, services: TransferServices, files: any DownloadFiles,
        performer: any FollowUpPerformer, configuration: Downloader.Configuration, hub: SnapshotHub,
        clock: any DownloadClock = SystemClock()
    ) {
        scheduler = DownloadScheduler(
            registry: registry, services: services, files: files, performer: performer, configuration: configuration,
            hub: hub, locks: locks, clock: clock)
        running = scheduler.running
        followUps = scheduler.followUps
        list = DownloadList(
            registry: registry, files: files, journals: scheduler.journals, running: running, board: services.board,
            hub: hub)
        board = services.board
        self.registry = registry
        self.files = files
        self.clock = clock
    }

    func checkOpen() throws(TowlineError) { try running.checkOpen() }

    // MARK: Adding

    /// Adds downloads to the registry and starts as many as the limits allow. Returns their identifiers in the order of
    /// the requests. A request with the URL and destination of an existing download is applied to that download.
    ///
    /// - Throws: `optionConflict` or `checksumMismatch` if options cannot be applied to an existing download. No
    ///   download is then added.
    func add(_ requests: [DownloadRequest]) async throws(TowlineError) -> [DownloadID] {
        try checkOpen()
        var records: [RegisteredDownload] = []
        var asked: [DownloadID: DownloadRequest] = [:]
        for request in await scheduler.disks.located(requests) {
            let record = try RegisteredDownload(identifiers.next(), request, at: clock.milliseconds)
            records.append(record)
            asked[record.id] = request
        }
        let finished = try await finishedEntries(of: requests)
        let additions = try await scheduler.add(records) { [running, asked] existing, new throws(TowlineError) in
            try new.checkName(against: existing, running)
            guard let request = asked[new.id], !finished.missing.contains(existing.id) else { return }
            if existing.state.isComplete, request.existing.replaces { return }
            try RepeatedRequest(request, existing, running[existing.id]).check()
        }
        var ids: [DownloadID] = []
        for (index, addition) in additions.enumerated() {
            switch addition {
            case .added: ids.append(records[index].id)
            case .existing(let id):
                ids.append(id)
                try await addAgain(id, as: requests[index], records[index], finished)
            }
        }
        await scheduler.startQueued()
        return ids
    }

    /// Adds the unfinished downloads whose journals are in a directory and that are not in the list of downloads. They
    /// are added paused. Of several files from one URL, the first is added.
    func adopt(_ directory: String) async throws(TowlineError) -> [DownloadID] {
        try checkOpen()
        var (requests, identities) = ([DownloadRequest](), Set<String>())
        for file in await files.unfinished(in: directory) {
            guard var request = DownloadRequest(file), let identity = try? request.identity() else { continue }
            request.startsPaused = true
            guard try await !list.contains(file), try await registry.find(identity: identity) == nil else { continue }
            if identities.insert(identity).inserted { requests.append(request) }
        }
        return try await add(requests)
    }

    // MARK: Limits

    func limits() async throws(TowlineError) -> DownloadLimits {
        try checkOpen()
        return await scheduler.limits
    }

    /// Changes a limit on running downloads or on the total rate, and stores it in the registry. Throws
    /// `unusableOption` if the limit is outside its range.
    func set(_ limit: StoredLimit) async throws(TowlineError) {
        try limit.check()
        try checkOpen()
        try await scheduler.set(limit)
    }

    // MARK: One download

    func pause(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.pause, id) { $0.end(.pause) }
    }

    /// Resumes a paused or failed download, and retries a download that waits. Throws `illegalTransition` in a state
    /// that cannot be resumed.
    func resume(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.resume, id) { resume($0) }
        await scheduler.startQueued()
    }

    /// Carries out the command `resume` for a running download: restarts a transfer that waits for its next request,
    /// and replaces a pause that is not complete yet with a restart.
    ///
    /// - Returns: `restart` if the transfer ends and starts again; `nil` if the transfer continues unchanged.
    private func resume(_ download: LiveDownload) -> LiveDownload.Intent? {
        if download.isWaiting {
            overruleHost(of: download.record)
            return download.end(.restart)
        }
        return download.resume() ? .restart : nil
    }

    /// Clears the pause of all requests that the host of a download requested (`Retry-After`), because the user wants
    /// the download to continue now.
    private func overruleHost(of record: RegisteredDownload) {
        if let origin = try? HTTPURL(parsing: record.source).origin { board.overrule(origin) }
    }

    /// Starts a failed, cancelled, paused or waiting download again, or a failed follow-up of a finished download.
    func retry(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.retry, id) { _ in nil }
        await scheduler.startQueued()
    }

    /// Starts a download that does not run, or the follow-ups of a finished download that failed or wait for this call.
    func start(_ id: DownloadID) async throws(TowlineError) {
        do throws(TowlineError) {
            try await carryOut(.retry, id) { resume($0) }
        } catch  where error.code == .illegalTransition {
            // Finished, and no follow-up failed. One that an earlier process began may be left.
            await scheduler.beginFollowUps(id)
        }
        await scheduler.startQueued()
    }

    func cancel(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.cancel, id) { $0.end(.cancel) }
    }

    /// Carries out a command, such as pause or cancel, for one download.
    ///
    /// For a download without a transfer, `DownloadCommand.effect(in:)` decides by its state. If the state changes
    /// before the decision is written, the decision is made again.
    ///
    /// - Parameter tell: passes the command to the transfer of a running download. Returns the reason if this ends the
    ///   transfer; `nil` otherwise.
    private func carryOut(
        _ command: DownloadCommand, _ id: DownloadID, tell: @Sendable (LiveDownload) -> LiveDownload.Intent?
    ) async throws(TowlineError) {
        try checkOpen()
        while true {
            switch try await scheduler.tell(id, tell) {
            case .done: return
            case .outdated: continue
            case .noTransfer: break
            }
            let record = try await list.record(id)
            // A transfer that started while the record was read has the download now.
            guard running.isFree(id) else { continue }
            switch command.effect(in: record.state) {
            case .none:
                if command == .resume || command == .retry { overruleHost(of: record) }
                return
            case .refused where command == .retry && record.state.isComplete:
                if try await retryFollowUp(of: id) { return }
            case .refused: throw TowlineError.refused(command, in: record.state, name: record.name)
            case .change(let state):
                if state == .queued { overruleHost(of: record) }
                if state == .cancelled { try await scheduler.journals.discard(record, scheduler.disks) }
                let change = RegistryChange(record, to: state, for: command, at: clock.milliseconds)
                if try await scheduler.apply(change, onlyFrom: record.state) { return }
            }
        }
    }

    /// Starts the failed follow-up action (such as unpacking) of a finished download again. Throws `illegalTransition`
    /// if no follow-up failed.
    ///
    /// - Returns: `false` if the state of the download changed meanwhile.
    private func retryFollowUp(of id: DownloadID) async throws(TowlineError) -> Bool {
        await locks.acquire(id)
        defer { locks.release(id) }
        let record = try await list.record(id)
        guard record.state.isComplete else { return false }
        guard case .failed(let number, _) = FollowUpState(code: record.reasonCode, reason: record.reason) else {
            throw TowlineError.refused(.retry, in: record.state, name: record.name)
        }
        // The task of the failed follow-up may still be running.
        await followUps.end(id)
        try await FollowUpRunner.mark(id, in: registry)
        var change = RegistryChange(
            id, state: .init(.finished, reasonCode: FollowUpState.running(number).code, endedAt: record.endedAt))
        let message = "the failed follow-up action (such as unpacking) was started again"
        change.note("retried", message, at: clock.milliseconds)
        guard try await scheduler.apply(change, onlyFrom: record.state) else { return false }
        await scheduler.beginFollowUps(id)
        return true
    }

    /// Downloads the file of a finished download again. Throws `illegalTransition` if the download is not finished or a
    /// follow-up action deleted its file.
    func refetch(_ id: DownloadID) async throws(TowlineError) {
        try checkOpen()
        await locks.acquire(id)
        defer { locks.release(id) }
        guard case .noTransfer = try await scheduler.tell(id, { _ in nil }) else {
            throw try await cannotRefetch(list.record(id))
        }
        // A follow-up that runs may be moving the file.
        await followUps.end(id)
        do throws(TowlineError) {
            let record = try await list.record(id)
            guard record.state.isComplete else { throw cannotRefetch(record) }
            let change = try RegistryChange(refetching: record, at: clock.milliseconds)
            guard try await scheduler.apply(change, onlyFrom: record.state) else {
                throw try await cannotRefetch(list.record(id))
            }
        } catch {
            await scheduler.beginFollowUps(id)
            throw error
        }
        await scheduler.startQueued()
    }

    private func cannotRefetch(_ record: RegisteredDownload) -> TowlineError {
        .cannotBe("downloaded again", in: record.state, name: record.name)
    }

    func remove(_ id: DownloadID, deletingFiles: Bool) async throws(TowlineError) {
        var isRemoved = false
        while !isRemoved {
            guard case .noTransfer = try await scheduler.tell(id, { $0.end(.remove) }) else { continue }
            await followUps.end(id)
            let record = try await list.record(id)
            guard running.isFree(id) else { continue }
            do throws(TowlineError) {
                if deletingFiles { try await removeFiles(of: record) }
                isRemoved = try await registry.remove([id], onlyFrom: record.state) != [.otherState]
            } catch {
                await scheduler.beginFollowUps(id)
                throw error
            }
        }
        await scheduler.forget(id)
    }

    private func removeFiles(of record: RegisteredDownload) async throws(TowlineError) {
        let isFinished = record.state.isComplete
        if isFinished {
            try await scheduler.disks.check(record)
        } else {
            try await scheduler.journals.discard(record, scheduler.disks)
        }
        // A file that is downloaded again is there until the new one is complete.
        let replacesOwnFile = (try? StoredRequest.decode(record.options))?.replacesOwnFile == true
        if isFinished || replacesOwnFile { try await files.removeFinished(record) }
    }

    /// Moves a download in the queue to the position before `other`, or behind all downloads of its priority if `other`
    /// is `nil`.
    func move(_ id: DownloadID, before other: DownloadID?) async throws(TowlineError) {
        _ = try await list.record(id)
        try await registry.move(id, before: other)
        await scheduler.publish(id)
    }

    /// Changes the request of a download with `body` and writes it to the registry. If `restarts` is `true`, a running
    /// transfer restarts with the new request. Throws the error of an invalid value, and then changes nothing.
    func change(
        _ id: DownloadID, restarts: Bool, _ body: @Sendable (inout DownloadRequest) -> Void
    ) async throws(TowlineError) {
        await locks.acquire(id)
        defer { locks.release(id) }
        while let claim = running.claim(of: id) { await claim.value }
        let record = try await list.record(id)
        var request =
            running[id]?.request ?? (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        body(&request)
        try await registry.apply([try RegistryChange(record, replacingRequestWith: request)])
        await scheduler.use(request, for: id, restarts: restarts)
    }

    // MARK: All downloads

    func pauseAll(group: String?) async throws(TowlineError) {
        try checkOpen()
        // The second pass finds downloads that changed their state during the first. Downloads that are added meanwhile
        // do not keep the command from being answered.
        for _ in 0..<2 {
            var stopping = running.all(in: group)
            for download in stopping { download.end(.pause) }
            _ = try await registry.changeAll(from: [.queued, .waiting], to: .paused, group: group)
            for claim in running.claims { await claim.value }
            stopping += running.all(in: group)
            for id in Set(stopping.map(\.id)) {
                try await allowingRefusal { () throws(TowlineError) in try await pause(id) }
            }
        }
        await scheduler.publishList()
        await scheduler.startQueued()
    }

    /// Runs `body`, which carries out a command for one of many downloads. Ignores its errors `illegalTransition` (the
    /// download has ended) and `unknownDownload` (it was removed).
    func allowingRefusal(_ body: () async throws(TowlineError) -> Void) async throws(TowlineError) {
        do throws(TowlineError) {
            try await body()
        } catch  where error.code == .illegalTransition || error.code == .unknownDownload {
            return
        }
    }

    func resumeAll(group: String?) async throws(TowlineError) {
        try checkOpen()
        let restarting = running.all(in: group).filter { $0.resume() }
        _ = try await registry.changeAll(from: [.paused], to: .queued, group: group)
        for download in restarting where try await !scheduler.isOver(download, for: .restart) {
            try await allowingRefusal { () throws(TowlineError) in try await resume(download.id) }
        }
        if group == nil { try await scheduler.resumeFollowUps() }
        await scheduler.publishList()
        await scheduler.startQueued()
    }

    // MARK: Launch and close

    /// Restores the limits, downloads and follow-ups that an earlier process left in the registry, and starts queued
    /// downloads.
    func launch() async throws(TowlineError) { try await scheduler.launch() }

    /// Informs the downloads of each change of the machine's network that `monitor` reports, until the monitor is
    /// closed.
    func watchNetwork(_ monitor: any NetworkMonitor) async { await scheduler.watchNetwork(monitor) }

    /// Stops all transfers and follow-ups and waits for their end. The next launch resumes them.
    func close() async { await scheduler.close() }
}
