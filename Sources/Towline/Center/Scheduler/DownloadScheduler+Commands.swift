import TowlineCore
import TowlineEngine

/// Functions with which `DownloadCenter` carries out commands: they pass a command to a running transfer, write its
/// result to the registry and publish the change.
extension DownloadScheduler {
    /// The result of passing a command (such as pause) to the transfer of a download, with which `DownloadCenter`
    /// decides whether the command is complete.
    enum Reply {
        /// The download has no transfer. The registry contains its state.
        case noTransfer
        /// The transfer carried out the command, and its result is in the registry.
        case done
        /// The transfer ended for another reason, so that the command must be decided again.
        case outdated
    }

    // MARK: One download

    /// Passes a command, such as pause, to the transfer of a download and waits for the result. First waits for a
    /// transfer that is being started, or for the result of an ended transfer to be written to the registry.
    ///
    /// - Parameter command: passes the command to the running download. Returns the reason if this ends the transfer;
    ///   `nil` otherwise.
    func tell(
        _ id: DownloadID, _ command: @Sendable (LiveDownload) -> LiveDownload.Intent?
    ) async throws(TowlineError) -> Reply {
        while true {
            if let claim = running.claim(of: id) {
                await claim.value
            } else if running.end(of: id) != nil {
                try await writeEnd(of: id)
            } else {
                break
            }
        }
        guard let download = running[id] else { return .noTransfer }
        guard let intent = command(download) else { return .done }
        return try await isOver(download, for: intent) ? .done : .outdated
    }

    /// Waits until a transfer that a command ends has ended and its result is in the registry.
    ///
    /// - Returns: `true` if the transfer ended for the reason `intent`, or if a later pause or resume replaced this
    ///   reason. `false` if the transfer ended otherwise, so that the command must be decided again.
    func isOver(_ download: LiveDownload, for intent: LiveDownload.Intent) async throws(TowlineError) -> Bool {
        while let run = running.run(of: download) {
            await run.value
            try await writeEnd(of: download.id)
        }
        if download.endState == intent.endState { return true }
        return intent.isReversible && download.intent.isReversible && download.intent != intent
    }

    /// Adds new downloads to the registry, and publishes the event `added` for each of them. Adds none if `check`
    /// refuses one that the list already contains.
    func add(_ records: [RegisteredDownload], check: @escaping RegistryDuplicateCheck)
        async throws(TowlineError) -> [RegistryAddition]
    {
        let additions = try await registry.add(records, check: check)
        for (record, addition) in zip(records, additions) where addition == .added {
            hub.publish(.added(running.snapshot(of: record, held: nil)))
        }
        return additions
    }

    /// Writes a change of a download without a transfer to the registry, and publishes the new snapshot. The change is
    /// written only if the download is in `state`.
    ///
    /// - Returns: `false` if the download is not in the required `state` or was removed. The download is then
    ///   unchanged.
    @discardableResult
    func apply(_ change: RegistryChange, onlyFrom state: RegisteredState) async throws(TowlineError) -> Bool {
        var change = change
        change.onlyFrom = state
        guard try await registry.apply([change]) == [.applied] else { return false }
        // The delays of a download that is resumed, or has a new request, are short again.
        if change.state?.state == .queued || change.options != nil { waits.resetCount(of: change.id) }
        await publish(change.id)
        return true
    }

    /// Applies the changed request of a download, already in the registry, to its running transfer and to the limits.
    /// If `restarts` is `true`, the transfer restarts with the new request.
    func use(_ request: DownloadRequest, for id: DownloadID, restarts: Bool) async {
        journals.forget(id)
        // A transfer that was claimed before the change has the old request.
        while let claim = running.claim(of: id) { await claim.value }
        if let download = running[id] {
            let share = download.share
            download.update { record, stored in
                stored = request
                record.metadata = request.metadata
                record.priority = request.priority
                record.group = request.group
                record.source = request.url.absoluteString
            }
            admission.end(share)
            admission.start(download.share)
            download.runner?.setRateLimit(request.rateLimit ?? 0)
            if restarts { download.end(.restart) }
        }
        await publish(id)
        startQueued()
    }

    /// Removes a download that is no longer in the registry from the caches and counters of the scheduler, and
    /// publishes the removal.
    func forget(_ id: DownloadID) {
        waits.resetCount(of: id)
        links.forget(id)
        journals.forget(id)
        hub.publish(.removed(id))
        hub.end(id)
        startQueued()
    }

    // MARK: Limits

    /// The limits on running downloads and on the total rate that are in effect.
    var limits: DownloadLimits {
        DownloadLimits(
            maximumRunning: admission.limit, maximumRunningPerHost: admission.hostLimit,
            rateLimit: services.limiter.rate, groups: admission.groupLimits)
    }

    /// Puts a limit on running downloads or on the total rate into effect, and stores it in the registry.
    func set(_ limit: StoredLimit) async throws(TowlineError) {
        try await registry.setValue(limit.value, for: limit.name)
        apply(limit)
        startQueued()
    }

    /// Puts a limit on running downloads or on the total rate into effect, without storing it in the registry.
    func apply(_ limit: StoredLimit) {
        admission.set(limit)
        if case .rate(let rate) = limit { services.limiter.setRate(rate) }
    }
}
