import Foundation
import TowlineCore
import TowlineEngine

/// The scheduler of all downloads: takes queued downloads from the registry as the limits allow, runs their transfers,
/// and writes the results back. The registry is the database of all downloads.
actor DownloadCenter {
    let registry: any Registry
    let services: TransferServices
    let hub: SnapshotHub
    let files: any DownloadFiles
    let journals: JournalCache
    let configuration: Configuration
    let failures: RegistryFailures
    let hostMemory: HostMemory
    var admission: Admission
    let running: RunningDownloads
    let list: DownloadList
    var waits = RetryWaits()
    /// The task that retries failed registry accesses (results of transfers, `mustLookAgain`); `nil` if no retry is
    /// needed.
    var writing: Task<Void, Never>?
    let requestLocks: RequestLocks
    let links: LinkRenewer
    let followUps: FollowUpRunner
    /// `true` if the queued downloads could not be read from the registry and must be read again.
    var mustLookAgain = false
    private var isPumping = false
    private var mustPumpAgain = false
    private var pulse: Task<Void, Never>?
    private var watch: Task<Void, Never>?
    private let entropy = IDSource()

    init(
        registry: any Registry, services: TransferServices, files: any DownloadFiles,
        performer: any FollowUpPerformer, configuration: Configuration, hub: SnapshotHub
    ) {
        self.registry = registry
        self.services = services
        self.files = files
        running = RunningDownloads()
        journals = JournalCache(files)
        list = DownloadList(
            registry: registry, files: files, journals: journals, running: running, board: services.board, hub: hub)
        self.configuration = configuration
        self.hub = hub
        failures = RegistryFailures(hub: hub, onTrouble: configuration.onTrouble)
        hostMemory = HostMemory(registry: registry, board: services.board, failures: failures)
        requestLocks = RequestLocks()
        links = LinkRenewer(configuration.linkRenewal, registry: registry, locks: requestLocks)
        followUps = FollowUpRunner(registry: registry, performer: performer, failures: failures)
        admission = Admission(
            limit: configuration.maximumRunning, hostLimit: configuration.maximumRunningPerHost)
    }

    func checkOpen() throws(TowlineError) { try running.checkOpen() }

    // MARK: Adding

    /// Adds downloads to the registry and starts as many as the limits allow. Returns their identifiers in the order of
    /// the requests. A request with the URL and destination of an existing download returns that download.
    func add(_ requests: [DownloadRequest]) async throws(TowlineError) -> [DownloadID] {
        try checkOpen()
        var records: [RegisteredDownload] = []
        for request in requests { records.append(try record(request)) }
        let additions = try await registry.add(records)
        var names: [DownloadID] = []
        for (index, addition) in additions.enumerated() {
            switch addition {
            case .added:
                names.append(records[index].id)
                hub.publish(.added(DownloadSnapshot(records[index])))
            case .existing(let id):
                names.append(id)
                try await reviveIfLost(id, as: requests[index], records[index])
            }
        }
        pump()
        return names
    }

    private func record(_ request: DownloadRequest) throws(TowlineError) -> RegisteredDownload {
        // Rejects requests that cannot run.
        _ = try request.options(known: nil)
        for followUp in request.followUps { try followUp.check() }
        let source = try request.source
        let place = try request.place
        return RegisteredDownload(
            id: entropy.next(), source: request.url.absoluteString, host: source.origin.description,
            directory: place.directory, name: place.name, identity: try request.identity(),
            options: try StoredRequest.encode(request), metadata: request.metadata, group: request.group,
            priority: request.priority, state: request.startsPaused ? .paused : .queued,
            addedAt: WallClock.milliseconds)
    }

    /// Restarts a download that is added again, if it failed, was cancelled, waits with a different request, or its
    /// finished file is missing. The new request replaces the old request, because the difference may prevent the
    /// failure.
    private func reviveIfLost(
        _ id: DownloadID, as request: DownloadRequest, _ asked: RegisteredDownload
    ) async throws(TowlineError) {
        await requestLocks.acquire(id)
        defer { requestLocks.release(id) }
        while try await !revive(id, as: request, asked) {}
    }

    /// Does the work of `reviveIfLost` once, for the current state of the download.
    ///
    /// - Returns: `false` if this state changed meanwhile and the function must be called again.
    private func revive(
        _ id: DownloadID, as request: DownloadRequest, _ asked: RegisteredDownload
    ) async throws(TowlineError) -> Bool {
        guard running[id] == nil, let record = try await registry.download(id) else { return true }
        switch record.state {
        case .finished:
            if await files.hasFinished(record), request.existing != .update { return true }
            await followUps.end(id)
            guard let record = try await registry.download(id), record.state == .finished else { return true }
            // A follow-up was moving the file.
            if await files.hasFinished(record), request.existing != .update {
                beginFollowUps(id)
                return true
            }
        case .failed, .cancelled: break
        // The same request again does not end a wait that the server asked for.
        case .waiting where (try? StoredRequest.decode(record.options)) != request: break
        default: return true
        }
        var request = request
        // The restriction of the earlier request stays in effect, so that another caller cannot remove it.
        if let old = try? StoredRequest.decode(record.options), old.publicAddressesOnly {
            request.publicAddressesOnly = true
        }
        var change = RegistryChange(id, state: .init(asked.state))
        change.options = try StoredRequest.encode(request)
        change.source = asked.source
        change.host = asked.host
        // A file that a follow-up moved is downloaded to its original destination and moved again.
        if record.state == .finished { (change.directory, change.name) = (asked.directory, asked.name) }
        change.metadata = asked.metadata
        change.group = .some(asked.group)
        if asked.priority != record.priority { change.priority = asked.priority }
        change.note("added", "the download was added again and restarts")
        change.onlyFrom = record.state
        guard try await registry.apply([change]) != [.otherState] else { return false }
        waits.resetCount(of: id)
        await publish(id)
        return true
    }

    // MARK: Limits

    func limits() throws(TowlineError) -> DownloadLimits {
        try checkOpen()
        return DownloadLimits(
            maximumRunning: admission.limit, maximumRunningPerHost: admission.hostLimit,
            rateLimit: services.limiter.rate, groups: admission.groupLimits)
    }

    /// Changes a limit and stores it in the registry. Throws `unusableOption` if the limit is outside its range.
    func set(_ limit: StoredLimit) async throws(TowlineError) {
        try limit.check()
        try checkOpen()
        try await registry.setValue(limit.value, for: limit.name)
        apply(limit)
        pump()
    }

    private func apply(_ limit: StoredLimit) {
        admission.set(limit)
        if case .rate(let rate) = limit { services.limiter.setRate(rate) }
    }

    // MARK: Running

    /// Starts as many queued downloads as the limits allow, in a background task. A call while this task runs makes it
    /// look for queued downloads once more.
    func pump() {
        guard !isPumping else {
            mustPumpAgain = true
            return
        }
        isPumping = true
        Task {
            repeat {
                mustPumpAgain = false
                await fill()
            } while mustPumpAgain && !running.isClosed
            isPumping = false
        }
    }

    private func fill() async {
        while admission.room > 0, !running.isClosed {
            let next: [RegisteredDownload]
            do throws(TowlineError) {
                next = try await registry.nextQueued(
                    limit: min(admission.room, 100), blockedHosts: admission.blockedHosts,
                    blockedGroups: admission.blockedGroups)
            } catch {
                mustLookAgain = true
                keepWriting()
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
        running.endClaim(ids)
        for record in records { admission.end(Admission.Share(record)) }
        guard !running.isClosed else { return }
        for var record in claimed ?? [] {
            record.state = .active
            let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
            let download = LiveDownload(record, request, hub: hub, logger: configuration.logger)
            let run = Task {
                hub.publish(download.snapshot)
                await self.run(download)
            }
            running.begin(download, run)
            journals.forget(record.id)
            admission.start(download.share)
        }
        keepPulse()
    }

    private func run(_ download: LiveDownload) async {
        let result: Result<CompletedTransfer, TowlineError>
        do throws(TowlineError) {
            try await links.renewIfExpiring(download)
            // The learned name is kept while a part file exists. Without one, another download may use the name.
            let record = download.record
            let holds = await files.holds(record)
            var options = try download.request.options(known: holds ? record.name : nil)
            options.ownsPart = holds
            let renewal = try links.restartBeforeExpiry(download)
            defer { renewal?.cancel() }
            options.restartsChanged = true
            let runner = TransferRunner(options: options, services: services, observer: download)
            download.begin(runner)
            result = .success(try await runner.run())
        } catch {
            result = .failure(error)
        }
        await hostMemory.remember()
        await ended(download, result)
        pump()
    }

    // MARK: Progress

    /// The maximum number of snapshots per second that are delivered to all readers together, because each delivery
    /// costs some microseconds. At a higher number, the interval between snapshots grows.
    private static let tellingsPerSecond = 10_000.0
    private static let longestInterval = 5.0
    /// The interval between two writes of the progress to the registry. The journals contain the exact progress.
    private static let progressInterval = Duration.seconds(5)

    /// Starts the task that, while any download runs, publishes progress and writes changes to the registry at
    /// intervals. Has no effect if the task runs.
    private func keepPulse() {
        guard pulse == nil else { return }
        pulse = Task {
            var told = 0
            var written = ContinuousClock.now
            while !running.isEmpty, !running.isClosed {
                // Many readers of many downloads get fewer snapshots, because receiving bytes has priority.
                let interval = max(configuration.snapshotInterval, Double(told) / Self.tellingsPerSecond)
                try? await Task.sleep(for: .seconds(min(interval, Self.longestInterval)))
                let isTime = ContinuousClock.now - written >= Self.progressInterval
                if isTime { written = .now }
                told = await beat(withProgress: isTime)
            }
            pulse = nil
            if !running.isEmpty, !running.isClosed { keepPulse() }
        }
    }

    /// Publishes the changed snapshots of running downloads and writes their changes to the registry, once.
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

    // MARK: Launch

    /// Restores the limits, host limits, downloads and follow-ups that an earlier process left in the registry, and
    /// starts queued downloads. No download starts before everything is restored.
    func launch() async throws(TowlineError) {
        services.limiter.setRate(configuration.rateLimit)
        try await recallLimits()
        try await hostMemory.recall()
        try await reconcile()
        let next: RegisteredState = configuration.resumesAtLaunch ? .queued : .paused
        _ = try await registry.changeAll(from: [.active, .waiting], to: next, group: nil)
        try await followUps.resume { [self] id in await publish(id) }
        pump()
    }

    /// Loads the limits that an earlier process stored in the registry.
    private func recallLimits() async throws(TowlineError) {
        for (name, value) in try await registry.values(prefix: StoredLimit.prefix) {
            if let limit = StoredLimit(name: name, value: value) { apply(limit) }
        }
    }

    /// Updates the name, size and progress of interrupted downloads in the registry from their journals, which are
    /// newer.
    private func reconcile() async throws(TowlineError) {
        var query = RegistryQuery()
        query.states = [.active, .waiting]
        repeat {
            let page = try await registry.page(query)
            let held = await files.held(page.downloads)
            try await registry.apply(
                zip(page.downloads, held).compactMap { record, held in
                    guard let held else { return nil }
                    var change = RegistryChange(record.id)
                    if record.name != held.name { change.name = held.name }
                    change.heldBytes = held.heldBytes
                    if let length = held.completeLength { change.completeLength = .some(length) }
                    return change
                })
            query.cursor = page.next
        } while query.cursor != nil
    }

    // MARK: Closing

    /// Retries downloads that wait for the network after each element of `changes`, until the center closes.
    func watchNetwork(_ changes: AsyncStream<Void>) {
        watch = Task { for await _ in changes { networkChanged() } }
    }

    /// Stops all transfers and follow-ups and waits for their end. The next launch resumes them.
    func close() async {
        guard !running.isClosed else { return await awaitRuns() }
        running.close()
        for download in running.all { download.end(.close) }
        watch?.cancel()
        waits.stopTimer()
        writing?.cancel()
        followUps.close()
        await awaitRuns()
        await writing?.value
        await writeEnds()
        await followUps.finish()
        pulse?.cancel()
        await pulse?.value
        hub.close()
        await registry.close()
        await services.transport.shutdown()
    }

    private func awaitRuns() async {
        for run in running.runs { await run.value }
    }
}
