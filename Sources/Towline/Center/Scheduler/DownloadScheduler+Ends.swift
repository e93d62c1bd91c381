import TowlineCore
import TowlineEngine

/// Functions of the scheduler for the end of a transfer, the waits before retries, the launch of the downloader and its
/// close.
extension DownloadScheduler {
    /// Decides the state of a download whose transfer ended with `result`, and writes the state to the registry.
    func ended(_ download: LiveDownload, _ result: Result<CompletedTransfer, TowlineError>) async {
        let id = download.id
        if download.progress.received > 0 { waits.resetCount(of: id) }
        var end = DownloadEnd(of: download)
        var journal: JournalSummary?
        switch result {
        case .success(let completed): end.finish(completed)
        case .failure(let error):
            await decide(&end, error)
            if end.state != .cancelled {
                journal = await files.held([download.recordWithName])[0]
                end.keep(journal)
            }
        }
        download.close(end.state)
        journals.forget(id, replacement: journal)
        await write(end)
    }

    /// Decides the state of a download whose transfer ended before the file was complete. A cancelled download loses
    /// its bytes.
    private func decide(_ end: inout DownloadEnd, _ error: TowlineError) async {
        if case .serverWait(let time, let reason) = end.intent, error.code == .cancelled {
            end.setWait(for: .server, reason, until: time)
        } else if !end.intent.isCommand {
            if await links.renew(end.download, after: error) {
                end.renew(after: error)
            } else {
                let lost = await disks.lostDisk(of: end.download)
                end.fail(lost ?? error, &waits, configuration)
            }
        }
        do throws(TowlineError) {
            if end.intent == .cancel { try await journals.discard(end.download.recordWithName, disks) }
            end.obeyCommand()
        } catch { end.setFailed(error) }
    }

    // MARK: Waiting

    /// Starts the timer for the end of the earliest wait, at which the waiting download is queued again.
    func setAlarm() {
        guard !running.isClosed else { return waits.stopTimer() }
        // A task of its own: a new alarm cancels the task of the timer.
        waits.startTimer { [self, clock] in await Task { await waitsAreOver { $0.until <= clock.time } }.value }
    }

    private func waitsAreOver(_ isOver: @Sendable (RetryWaits.Wait) -> Bool) async {
        var ready = waits.matching(isOver)
        for (id, wait) in ready where wait.code.isLocal {
            guard await disks.blocks(id, wait.code) else { continue }
            waits.postpone(id, until: clock.time + configuration.diskRetryInterval)
            ready[id] = nil
        }
        waits.remove(ready.keys)
        do throws(TowlineError) {
            try await registry.apply(
                ready.keys.map { id in
                    var change = RegistryChange(id, state: .init(.queued))
                    // A download that was paused meanwhile stays paused.
                    change.onlyFrom = .waiting
                    return change
                })
        } catch {
            failures.report(error)
            // The download continues to wait until the list can be written.
            waits.restore(ready, until: clock.time + RegistryFailures.retryInterval)
        }
        setAlarm()
        // A download that starts at once continues to show its wait, without a moment in the queue.
        await startQueued().value
        for id in ready.keys where running[id] == nil { await publish(id) }
    }

    /// Informs the running transfers of a change of the network. If the network is available, also retries all
    /// downloads that wait after a failure.
    private func networkChanged(_ network: NetworkState) {
        guard !running.isClosed else { return }
        for download in running.setNetwork(network) { download.networkChanged(network) }
        guard network == .available else { return }
        Task { await waitsAreOver { $0.code == .network || $0.code == .retry } }
    }

    /// Informs the downloads of each change of the network that `monitor` reports, until it is closed.
    func watchNetwork(_ monitor: any NetworkMonitor) {
        let changes = monitor.changes()
        if monitor.state == .unavailable { networkChanged(.unavailable) }
        Task { for await network in changes { networkChanged(network) } }
    }

    // MARK: Launch

    /// Restores the limits, host limits, downloads and follow-ups that an earlier process left in the registry, and
    /// starts queued downloads. No download starts before everything is restored.
    func launch() async throws(TowlineError) {
        services.limiter.setRate(configuration.rateLimit)
        for (name, value) in try await registry.values(prefix: StoredLimit.prefix) {
            if let limit = StoredLimit(name: name, value: value) { apply(limit) }
        }
        try await hostMemory.recall()
        try await registry.reconcile(with: files)
        if configuration.resumesAtLaunch {
            _ = try await registry.changeAll(from: [.active, .waiting], to: .queued, group: nil)
            try await resumeFollowUps()
        } else {
            _ = try await registry.changeAll(from: [.active, .waiting, .queued], to: .paused, group: nil)
        }
        startQueued()
    }

    /// Continues the follow-ups that an earlier process left incomplete.
    func resumeFollowUps() async throws(TowlineError) {
        try await followUps.resume { [self] id in await publish(id) }
    }

    // MARK: Closing

    /// Stops all transfers and follow-ups and waits for their end. The next launch resumes them.
    func close() async {
        guard !running.isClosed else { return await awaitRuns() }
        running.close()
        for download in running.all { download.end(.close) }
        waits.stopTimer()
        retries?.cancel()
        followUps.close()
        await awaitRuns()
        await retries?.value
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
