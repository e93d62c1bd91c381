import TowlineCore
import TowlineEngine

/// The scheduler of all downloads: takes queued downloads from the registry as the limits allow, runs their transfers,
/// and writes the results back. The registry is the database of all downloads.
actor DownloadScheduler {
    let registry: any Registry
    let services: TransferServices
    let hub: SnapshotHub
    let files: any DownloadFiles
    let configuration: Downloader.Configuration
    let journals: JournalCache
    let running = RunningDownloads()
    let followUps: FollowUpRunner
    let links: LinkRenewer
    let hostMemory: HostMemory
    var admission: Admission { didSet { running.admission = admission } }
    var waits: RetryWaits
    private var pump = Pump()
    /// The task that retries failed accesses of the registry (the database of all downloads); `nil` if no retry is
    /// needed.
    var retries: Task<Void, Never>?
    /// The task that publishes the progress of running downloads at intervals; `nil` if no download runs.
    var pulse: Task<Void, Never>?

    /// The state of the background task (pump) that takes queued downloads from the registry and starts them.
    private struct Pump {
        /// The background task; `nil` if no task is running.
        var task: Task<Void, Never>?
        /// `true` if the running task must look for queued downloads once more, because a download was queued or a
        /// running one ended.
        var mustRepeat = false
        /// `true` if the queued downloads could not be read from the registry and must be read again by a retry.
        var hasFailed = false
    }

    /// Creates a scheduler that runs no downloads yet; `launch` starts them.
    ///
    /// - Parameter locks: the locks that commands use to change requests.
    init(
        registry: any Registry, services: TransferServices, files: any DownloadFiles,
        performer: any FollowUpPerformer, configuration: Downloader.Configuration, hub: SnapshotHub,
        locks: RequestLocks, clock: any DownloadClock
    ) {
        waits = RetryWaits(clock: clock)
        self.registry = registry
        self.services = services
        self.files = files
        self.configuration = configuration
        self.hub = hub
        let failures = RegistryFailures(hub: hub, onTrouble: configuration.onTrouble)
        journals = JournalCache(files)
        followUps = FollowUpRunner(registry: registry, performer: performer, failures: failures, clock: clock)
        links = LinkRenewer(configuration.linkRenewal, registry: registry, locks: locks, clock: clock)
        hostMemory = HostMemory(registry: registry, board: services.board, failures: failures, clock: clock)
        admission = Admission(
            limit: configuration.maximumRunning, hostLimit: configuration.maximumRunningPerHost)
    }

    var clock: any DownloadClock { waits.clock }

    var disks: DiskCheck { DiskCheck(registry: registry, files: files, locks: links.locks) }

    var failures: RegistryFailures { RegistryFailures(hub: hub, onTrouble: configuration.onTrouble) }

    // MARK: Running

    /// Starts as many queued downloads as the limits allow, in a background task. A call while this task runs makes it
    /// look for queued downloads once more. Returns this task.
    @discardableResult
    func startQueued() -> Task<Void, Never> {
        if let task = pump.task {
            pump.mustRepeat = true
            return task
        }
        let task = Task {
            repeat {
                pump.mustRepeat = false
                await fill()
            } while pump.mustRepeat && !running.isClosed
            pump.task = nil
        }
        pump.task = task
        return task
    }

    private func fill() async {
        while admission.room > 0, !running.isClosed {
            let next: [RegisteredDownload]
            do throws(TowlineError) {
                next = try await registry.nextQueued(
                    limit: min(admission.room, 100), blockedHosts: admission.blockedHosts,
                    blockedGroups: admission.blockedGroups)
            } catch {
                pump.hasFailed = true
                retryAccesses()
                return failures.report(error)
            }
            var starting: [RegisteredDownload] = []
            for record in next
            where running[record.id] == nil && admission.admits(Admission.Share(record)) {
                admission.start(Admission.Share(record))
                starting.append(record)
            }
            guard !starting.isEmpty, !running.isClosed else { return }
            await start(starting)
        }
    }

    private func start(_ records: [RegisteredDownload]) async {
        let claiming = Task { await claim(records) }
        running.beginClaim(records.map(\.id), claiming)
        await claiming.value
    }

    /// Marks downloads as active in the registry before their first requests, and starts them. After a kill, the next
    /// launch resumes active downloads.
    ///
    /// A download that was paused, cancelled or removed since it was read from the queue does not start.
    private func claim(_ records: [RegisteredDownload]) async {
        let ids = records.map(\.id)
        var claimed = try? await registry.claim(ids)
        // A registry that cannot be written for lack of space does not keep downloads from running.
        if claimed == nil { claimed = try? await registry.downloads(ids).filter { $0.state == .queued } }
        for record in records { admission.end(Admission.Share(record)) }
        guard !running.isClosed else { return running.endClaim(ids, starting: []) }
        let starting = (claimed ?? []).map { record in
            var record = record
            record.state = .active
            let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
            let download = LiveDownload(
                record, request, hub: hub, logger: configuration.logger, network: running.network,
                outage: waits.outage(of: record.id), clock: clock)
            let run = Task {
                hub.publish(download.snapshot)
                await self.run(download)
            }
            return (download, run)
        }
        running.endClaim(ids, starting: starting)
        for (download, _) in starting {
            journals.forget(download.id)
            admission.start(download.share)
        }
        keepPulse()
    }

    private func run(_ download: LiveDownload) async {
        let result: Result<CompletedTransfer, TowlineError>
        var remembering: Task<Void, Never>?
        do throws(TowlineError) {
            remembering = try await disks.begin(download)
            try await links.renewIfExpiring(download)
            // The learned name is kept while a part file exists. Without one, another download may use the name.
            let record = download.record
            let holds = await files.holds(record)
            var options = try download.request.options(known: holds ? record.name : nil)
            options.ownsPart = holds
            options.download = download.id
            if download.request.replacesOwnFile {
                options.target = .file(directory: record.directory, name: record.name)
                options.existing = .overwrite
            }
            let renewal = try links.restartBeforeExpiry(download)
            defer { renewal?.cancel() }
            let runner = TransferRunner(options: options, services: services, observer: download)
            download.begin(runner)
            result = .success(try await runner.run())
        } catch {
            result = .failure(error)
        }
        await remembering?.value
        await hostMemory.remember()
        await ended(download, result)
        startQueued()
    }

    // MARK: Progress

    /// Starts the task that, while any download runs, publishes progress and writes changes to the registry at
    /// intervals. Has no effect if the task runs.
    private func keepPulse() {
        guard pulse == nil else { return }
        pulse = Task {
            var pace = PulsePace(shortest: configuration.snapshotInterval, now: clock.time)
            while !running.isEmpty, !running.isClosed {
                try? await clock.sleep(for: pace.interval)
                pace.deliveries = await beat(withProgress: pace.isProgressDue(now: clock.time))
            }
            pulse = nil
            if !running.isEmpty, !running.isClosed { keepPulse() }
        }
    }

    /// Publishes the changed snapshots of running downloads and writes their changes to the registry, once. The byte
    /// counts are written only if `withProgress` is `true`.
    ///
    /// - Returns: the number of snapshots that were delivered to readers.
    private func beat(withProgress: Bool) async -> Int {
        var changes: [RegistryChange] = []
        var told = 0
        for download in running.all {
            if hub.hasReaders, let snapshot = download.takeDirtySnapshot() { told += hub.publish(snapshot) }
            if let change = download.takeChange(progress: withProgress) { changes.append(change) }
        }
        if !changes.isEmpty {
            do throws(TowlineError) {
                try await registry.apply(changes)
            } catch {
                failures.report(error)
                for change in changes { running[change.id]?.putBack(change) }
            }
        }
        return told
    }

    /// Publishes the current snapshot of a download to the readers of its snapshots and events. Has no effect if the
    /// registry does not contain the download.
    func publish(_ id: DownloadID) async { await publish([id]) }

    /// Publishes a change of many downloads: one event `listChanged`, and a snapshot of each download that has a
    /// snapshot stream.
    func publishList() async {
        guard hub.hasReaders else { return }
        await publish(hub.followed)
        hub.publish(.listChanged)
    }

    private func publish(_ ids: [DownloadID]) async {
        guard hub.hasReaders, let records = try? await registry.downloads(ids) else { return }
        let held = await journals.summaries(of: records.filter { running[$0.id] == nil })
        // Reading takes time. The last published snapshot must be the newest: a transfer that ends meanwhile publishes
        // its end.
        var (current, count) = ([RegisteredDownload](), 0)
        repeat {
            count = running.endCount
            guard let records = try? await registry.downloads(ids) else { return }
            current = records
        } while count != running.endCount
        for record in current {
            hub.publish(running.snapshot(of: record, held: held[record.id] ?? nil))
        }
    }

    // MARK: Results

    /// Writes the result of an ended transfer to the registry; the download then no longer counts as running. If the
    /// registry cannot be written, publishes the result and retries later.
    func write(_ end: DownloadEnd) async {
        running.setEnd(end)
        do throws(TowlineError) {
            try await writeEnd(of: end.download.id)
        } catch {
            failures.report(error)
            hub.publish(end.snapshot)
            retryAccesses()
        }
    }

    /// Writes the result of a download's ended transfer to the registry, if the result is not written yet. Waits for a
    /// write in progress.
    ///
    /// - Throws: the error of the registry. The result is kept, so that the write can be retried.
    func writeEnd(of id: DownloadID) async throws(TowlineError) {
        guard let end = running.end(of: id) else { return }
        // One write for each end: a second one could overwrite later changes.
        let write = running.write(of: id) {
            Task {
                let result = await put(end)
                if case .success = result { await recordEnd(end) } else { running.removeWrite(of: id) }
                return result
            }
        }
        try await write.value.get()
    }

    private func put(_ end: DownloadEnd) async -> Result<Void, TowlineError> {
        do throws(TowlineError) {
            if end.beginsFollowUps { try await FollowUpRunner.mark(end.download.id, in: registry) }
            // Without a check of the state in the list: the transfer owns the download.
            try await registry.apply([end.change])
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Records that the result of an ended transfer is in the registry: the download no longer counts as running. Then
    /// starts its follow-ups, its wait, or a restart that was requested during the write.
    private func recordEnd(_ end: DownloadEnd) async {
        let id = end.download.id
        running.remove(id)
        if let wait = end.wait { waits.add(id, wait) }
        admission.end(end.download.share)
        if end.intent != .remove { hub.publish(end.snapshot) }
        if end.download.intent == .restart, end.intent != .restart { await restart(id, end.state) }
        if end.intent == .remove { return }
        beginFollowUps(id)
        if waits.contains(id) { setAlarm() }
    }

    /// Queues a paused, failed or waiting download again, because a resume or a change of its request arrived while the
    /// result of its transfer was written to the registry.
    ///
    /// Pause, cancel and remove wait for that write themselves, and then decide by the new state.
    private func restart(_ id: DownloadID, _ state: RegisteredState?) async {
        guard let state, [.paused, .failed, .waiting].contains(state) else { return }
        var change = RegistryChange(id, state: .init(.queued))
        change.note("resumed", "the download was resumed", at: clock.milliseconds)
        do throws(TowlineError) {
            try await apply(change, onlyFrom: state)
        } catch {
            failures.report(error)
        }
    }

    /// Starts the remaining follow-ups of a download, if it is finished.
    func beginFollowUps(_ id: DownloadID) { followUps.begin(id) { [self] id in await publish(id) } }

    /// Starts a task that retries every second, until the results of all ended transfers are in the registry and the
    /// queued downloads could be read.
    private func retryAccesses() {
        guard retries == nil, !running.isClosed else { return }
        retries = Task {
            while !running.unwritten.isEmpty || pump.hasFailed, !running.isClosed {
                do { try await clock.sleep(for: RegistryFailures.retryInterval) } catch { break }
                pump.hasFailed = false
                await writeEnds()
                startQueued()
            }
            retries = nil
        }
    }

    /// Writes the results of all ended transfers that are not in the registry yet. Stops after the first failure,
    /// because the writes of further results would fail too.
    func writeEnds() async {
        do throws(TowlineError) {
            for id in running.unwritten { try await writeEnd(of: id) }
        } catch {
            return
        }
    }
}
