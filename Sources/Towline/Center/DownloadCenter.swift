import Foundation
import TowlineCore
import TowlineEngine

/// The one place where downloads begin and end: takes them from the list as there is room, gives them to transfers,
/// and writes down what became of them.
actor DownloadCenter {
    let registry: any Registry
    let services: TransferServices
    let hub: SnapshotHub
    let files: any DownloadFiles
    let performer: any FollowUpPerformer
    var configuration: Configuration
    var admission: Admission
    var live: [DownloadID: LiveDownload] = [:]
    /// Downloads that wait, and how often they have in a row.
    var waits: [DownloadID: Wait] = [:]
    var waitCounts: [DownloadID: Int] = [:]
    var renewalsInRow: [DownloadID: Int] = [:]
    var followers: [DownloadID: Follower] = [:]
    let followUpGate = FollowUpGate()
    /// Ends that could not be written down yet; their downloads stay in `live`.
    var unwritten: [DownloadID: DownloadEnd] = [:]
    /// Of these ends the one that is being written.
    var endWrites: [DownloadID: Task<Result<Void, TowlineError>, Never>] = [:]
    /// Tries again to write them.
    var writing: Task<Void, Never>?
    /// Whose requests are being changed, and who waits to change them too.
    var changing: [DownloadID: [CheckedContinuation<Void, Never>]] = [:]
    /// What is next could not be read.
    var mustLookAgain = false
    /// What the registry knows of the connections that hosts allow.
    var knownHosts: [HTTPURL.Origin: HostBoard.Knowledge] = [:]
    /// Summaries of the journals that were read, of downloads without a transfer.
    var journals: [DownloadID: (summary: JournalSummary?, readAt: ContinuousClock.Instant)] = [:]
    /// How often a journal changed since the launch.
    var journalChanges = 0
    /// Downloads that are being claimed; commands wait until their transfers exist.
    var starting: [DownloadID: Task<Void, Never>] = [:]
    var isClosed = false
    private var isPumping = false
    private var mustPumpAgain = false
    private var pulse: Task<Void, Never>?
    var alarm: Task<Void, Never>?
    private var watch: Task<Void, Never>?
    var runs: [DownloadID: Task<Void, Never>] = [:]
    private let entropy = IDSource()

    /// Something that a download waits for.
    struct Wait {
        var code: WaitCode
        /// On the monotonic clock.
        var until: ContinuousClock.Instant
    }

    init(
        registry: any Registry, services: TransferServices, files: any DownloadFiles,
        performer: any FollowUpPerformer, configuration: Configuration, hub: SnapshotHub
    ) {
        self.registry = registry
        self.services = services
        self.files = files
        self.performer = performer
        self.configuration = configuration
        self.hub = hub
        admission = Admission(
            limit: configuration.maximumRunning, hostLimit: configuration.maximumRunningPerHost)
    }

    func checkOpen() throws(TowlineError) {
        guard isClosed else { return }
        throw TowlineError(
            .closed,
            "the downloader is closed: the app has called close(), or towd is stopping. "
                + "Create a new Downloader, or start towd again")
    }

    // MARK: Adding

    /// Adds downloads and starts what there is room for; the same URL to the same place is the same download.
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
        // What cannot run is not taken in.
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

    /// A download that is added again although it is finished is so no more if its file is gone; one that failed or was
    /// cancelled begins again, as it is asked for now: what made it fail may be what is different.
    private func reviveIfLost(
        _ id: DownloadID, as request: DownloadRequest, _ asked: RegisteredDownload
    ) async throws(TowlineError) {
        await beginChange(of: id)
        defer { endChange(of: id) }
        while try await !revive(id, as: request, asked) {}
    }

    /// - Returns: `false` if the state of the download changed meanwhile.
    private func revive(
        _ id: DownloadID, as request: DownloadRequest, _ asked: RegisteredDownload
    ) async throws(TowlineError) -> Bool {
        guard live[id] == nil, let record = try await registry.download(id) else { return true }
        switch record.state {
        case .finished:
            if await files.hasFinished(record), request.existing != .update { return true }
            await endFollowUps(id)
            guard let record = try await registry.download(id), record.state == .finished else { return true }
            // It was being moved.
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
        // Neither asker gets by the other what may not be had by oneself.
        if let old = try? StoredRequest.decode(record.options), old.publicAddressesOnly {
            request.publicAddressesOnly = true
        }
        var change = RegistryChange(id, state: .init(asked.state))
        change.options = try StoredRequest.encode(request)
        change.source = asked.source
        change.host = asked.host
        // One that was moved is fetched to where it was to go, and moved again.
        if record.state == .finished { (change.directory, change.name) = (asked.directory, asked.name) }
        change.metadata = asked.metadata
        change.group = .some(asked.group)
        if asked.priority != record.priority { change.priority = asked.priority }
        change.note("added", "the download was added again and restarts")
        change.onlyFrom = record.state
        guard try await registry.apply([change]) != [.otherState] else { return false }
        waitCounts[id] = nil
        await publish(id)
        return true
    }

    // MARK: Running

    /// Starts what there is room for. Calls that come while it looks make it look again.
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
            } while mustPumpAgain && !isClosed
            isPumping = false
        }
    }

    private func fill() async {
        while admission.room > 0, !isClosed {
            let next: [RegisteredDownload]
            do throws(TowlineError) {
                next = try await registry.nextQueued(
                    limit: min(admission.room, 100), blockedHosts: admission.blockedHosts,
                    blockedGroups: admission.blockedGroups)
            } catch {
                mustLookAgain = true
                keepWriting()
                return registryFailed(error)
            }
            var starting: [RegisteredDownload] = []
            for record in next
            where live[record.id] == nil && admission.admits(Admission.Share(record)) {
                admission.start(Admission.Share(record))
                starting.append(record)
            }
            guard !starting.isEmpty, !isClosed else { return }
            await start(starting)
        }
    }

    private func start(_ records: [RegisteredDownload]) async {
        let claiming = Task { await claim(records) }
        for record in records { starting[record.id] = claiming }
        await claiming.value
    }

    /// Claims downloads in the registry before their first requests: after a kill, the next launch continues them.
    ///
    /// A download that was paused, cancelled or removed since it was read is not claimed and does not start.
    private func claim(_ records: [RegisteredDownload]) async {
        let ids = records.map(\.id)
        var claimed = try? await registry.claim(ids)
        // A registry that cannot be written for lack of space does not keep downloads from running.
        if claimed == nil { claimed = try? await registry.downloads(ids).filter { $0.state == .queued } }
        for record in records {
            starting[record.id] = nil
            admission.end(Admission.Share(record))
        }
        guard !isClosed else { return }
        for var record in claimed ?? [] {
            record.state = .active
            let request = (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
            let download = LiveDownload(record, request, hub: hub, logger: configuration.logger)
            live[record.id] = download
            forgetJournal(of: record.id)
            admission.start(download.share)
            runs[record.id] = Task {
                hub.publish(download.snapshot)
                await run(download)
            }
        }
        keepPulse()
    }

    private func run(_ download: LiveDownload) async {
        let result: Result<CompletedTransfer, TowlineError>
        do throws(TowlineError) {
            try await renewIfExpiring(download)
            // A name that was learned counts while something is there: with nothing to go on with, another may have it.
            let record = download.record
            let holds = await files.holds(record)
            var options = try download.request.options(known: holds ? record.name : nil)
            options.ownsPart = holds
            let renewal = try renewalTime(download).map { endBefore($0, download) }
            defer { renewal?.cancel() }
            options.restartsChanged = true
            let runner = TransferRunner(options: options, services: services, observer: download)
            download.begin(runner)
            result = .success(try await runner.run())
        } catch {
            result = .failure(error)
        }
        await rememberHosts()
        await ended(download, result)
        pump()
    }

    /// A change of the registry that could not be made while nobody asked for it.
    func registryFailed(_ error: TowlineError) {
        hub.publish(.troubled(error))
        configuration.onTrouble?(error)
    }

    // MARK: While they run

    /// Progress told in a second, over all readers: each telling costs some microseconds.
    private static let tellingsPerSecond = 10_000.0
    private static let longestInterval = 5.0
    /// How old the list's idea of what is held may get; the journals know it exactly.
    private static let progressInterval = Duration.seconds(5)

    /// Tells progress, and writes down what the list should know, for as long as anything runs.
    private func keepPulse() {
        guard pulse == nil else { return }
        pulse = Task {
            var told = 0
            var written = ContinuousClock.now
            while !live.isEmpty, !isClosed {
                // Many readers of many downloads hear less often: bytes come first.
                let interval = max(configuration.snapshotInterval, Double(told) / Self.tellingsPerSecond)
                try? await Task.sleep(for: .seconds(min(interval, Self.longestInterval)))
                let isTime = ContinuousClock.now - written >= Self.progressInterval
                if isTime { written = .now }
                told = await beat(withProgress: isTime)
            }
            pulse = nil
            if !live.isEmpty, !isClosed { keepPulse() }
        }
    }

    /// - Returns: how many snapshots were told to readers.
    private func beat(withProgress: Bool) async -> Int {
        var changes: [RegistryChange] = []
        var told = 0
        for download in live.values {
            if hub.hasReaders, let snapshot = download.takeDirtySnapshot() { told += hub.publish(snapshot) }
            if let change = download.takeChange(progress: withProgress) { changes.append(change) }
        }
        if !changes.isEmpty {
            do throws(TowlineError) {
                try await registry.apply(changes)
            } catch {
                registryFailed(error)
                for change in changes { live[change.id]?.putBack(change) }
            }
        }
        return told
    }

    // MARK: Launch

    /// Takes up what an earlier process left: nothing is asked of any server before `pump`.
    func launch() async throws(TowlineError) {
        services.limiter.setRate(configuration.rateLimit)
        try await readLimits()
        try await recallHosts()
        try await reconcile()
        let next: RegisteredState = configuration.resumesAtLaunch ? .queued : .paused
        _ = try await registry.changeAll(from: [.active, .waiting], to: next, group: nil)
        try await resumeFollowUps()
        pump()
    }

    /// What was under way when the process ended: the journals know more of it than the list.
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

    // MARK: The end

    /// Watches the network, from the first download to the end.
    func watchNetwork(_ changes: AsyncStream<Void>) {
        watch = Task { for await _ in changes { networkChanged() } }
    }

    /// Ends everything soon and waits for it. What was under way goes on at the next launch.
    func close() async {
        guard !isClosed else { return await awaitRuns() }
        isClosed = true
        for download in live.values { download.end(.close) }
        watch?.cancel()
        alarm?.cancel()
        writing?.cancel()
        for follower in followers.values { follower.task.cancel() }
        await awaitRuns()
        await writing?.value
        await writeEnds()
        for follower in followers.values { await follower.task.value }
        pulse?.cancel()
        await pulse?.value
        hub.close()
        await registry.close()
        await services.transport.shutdown()
    }

    private func awaitRuns() async {
        for run in runs.values { await run.value }
    }
}
