import TowlineCore
import TowlineEngine

/// Requests for downloads that the list already contains.
extension DownloadCenter {
    /// The finished downloads that are added again, as found before the transaction that adds the others.
    struct FinishedEntries {
        /// The downloads whose files are missing. They start again with the new request.
        var missing: Set<DownloadID> = []
        /// The downloads whose files have the checksum of the new request.
        var verified: Set<DownloadID> = []
    }

    /// Compares finished files with the checksums of new requests, before any download is added.
    ///
    /// - Throws: `checksumMismatch` with the path of the file.
    func finishedEntries(of requests: [DownloadRequest]) async throws(TowlineError) -> FinishedEntries {
        var found = FinishedEntries()
        for request in requests where !request.existing.replaces {
            guard request.checksum != nil || request.maximumSize != nil || !request.followUps.isEmpty,
                let id = try await registry.find(identity: request.identity()),
                let record = try await registry.download(id), record.state.isComplete
            else { continue }
            guard await files.hasFinished(record) else {
                found.missing.insert(id)
                continue
            }
            let again = RepeatedRequest(request, record, nil)
            guard let checksum = again.newChecksum else { continue }
            try again.check()
            try await verify(record, checksum)
            found.verified.insert(id)
        }
        return found
    }

    private func verify(_ record: RegisteredDownload, _ checksum: Checksum) async throws(TowlineError) {
        guard let mismatch = try await files.mismatch(record, checksum) else { return }
        let path = TerminalSafeText.make(Place(directory: record.directory, name: record.name ?? "").path)
        var error = TowlineError(
            .checksumMismatch,
            "\(path) is finished and does not match the checksum: \(mismatch). The file was not changed. "
                + "To download again, \(Remedy.overwriting)")
        error.fields = [RequestField.checksum.rawValue]
        throw error
    }

    /// Applies a request to the download `id`, which the list already contains.
    ///
    /// - Parameter asked: the entry that the request would have as a new download.
    func addAgain(
        _ id: DownloadID, as request: DownloadRequest, _ asked: RegisteredDownload, _ finished: FinishedEntries
    ) async throws(TowlineError) {
        var comparison: Comparison = finished.verified.contains(id) ? .complete : .ifChanged
        while true {
            try checkOpen()
            let outcome = try await apply(request, asked, to: id, comparison)
            switch outcome {
            case .done: return
            case .changed: continue
            case .restarting(let download):
                // Without the lock, which the end of a transfer may need.
                if try await scheduler.isOver(download, for: .restart) { return }
                // The transfer ended before the restart, perhaps without the new checksum.
                comparison = .required
            case .pause: return try await allowingRefusal { () throws(TowlineError) in try await pause(id) }
            case .start: return try await allowingRefusal { () throws(TowlineError) in try await resume(id) }
            }
        }
    }

    /// The cases in which the finished file is compared with the checksum of the request.
    private enum Comparison {
        /// The file is compared if the stored request has another checksum.
        case ifChanged
        /// The file is compared, because it may have been published without the checksum.
        case required
        /// The file was compared and matches.
        case complete
    }

    /// The result of one try to apply a request to an existing download.
    private enum Outcome {
        case done
        /// The state of the download changed meanwhile.
        case changed
        case restarting(LiveDownload)
        /// The options are applied, and the download must be paused or started.
        case pause, start
    }

    private func apply(
        _ request: DownloadRequest, _ asked: RegisteredDownload, to id: DownloadID, _ comparison: Comparison
    ) async throws(TowlineError) -> Outcome {
        await locks.acquire(id)
        defer { locks.release(id) }
        let reply = try await scheduler.tell(id) { _ in nil }
        guard let record = try await registry.download(id) else { return .done }
        if case .done = reply, let download = running[id] {
            return try await apply(RepeatedRequest(request, record, download), record, running: download)
        }
        guard running.isFree(id) else { return .changed }
        let again = RepeatedRequest(request, record, nil)
        switch record.state {
        case .finished, .followUpFailed:
            return try await applyFinished(again, request, asked, record, comparison)
        case .failed, .cancelled: return try await restart(record, request, asked)
        case .queued, .active, .waiting, .paused: break
        }
        var change = try change(of: record, again)
        let isWaitOver = record.state == .waiting && !again.changes(.nextStart).isEmpty
        if isWaitOver { change.state = .init(.queued) }
        if !again.changes.isEmpty, try await !scheduler.apply(change, onlyFrom: record.state) { return .changed }
        return ending(again, record)
    }

    /// Returns the change that stores the changed options.
    private func change(
        of record: RegisteredDownload, _ again: RepeatedRequest
    ) throws(TowlineError) -> RegistryChange {
        var change = try RegistryChange(record, replacingRequestWith: again.merged)
        let names = again.changes.map(\.rawValue).joined(separator: ", ")
        change.note("added", "the download was added again with other options: \(names)", at: clock.milliseconds)
        return change
    }

    private func ending(_ again: RepeatedRequest, _ record: RegisteredDownload) -> Outcome {
        switch again.pauses {
        case nil: .done
        case true?: record.state == .paused ? .done : .pause
        case false?: record.state == .paused ? .start : .done
        }
    }

    private func restart(
        _ record: RegisteredDownload, _ request: DownloadRequest, _ asked: RegisteredDownload
    ) async throws(TowlineError) -> Outcome {
        let change = try RegistryChange(restarting: record, as: request, asked, at: clock.milliseconds)
        return try await scheduler.apply(change, onlyFrom: record.state) ? .done : .changed
    }

    // MARK: Running and finished downloads

    private func apply(
        _ again: RepeatedRequest, _ record: RegisteredDownload, running download: LiveDownload
    ) async throws(TowlineError) -> Outcome {
        try again.check()
        if !again.changes.isEmpty {
            let merged = again.merged
            try await registry.apply([try change(of: record, again)])
            let restarts = !again.changes(.restart).isEmpty
            await scheduler.use(merged, for: record.id, restarts: restarts)
            if restarts, again.pauses != true { return .restarting(download) }
        }
        return again.pauses == true ? .pause : .done
    }

    private func applyFinished(
        _ again: RepeatedRequest, _ request: DownloadRequest, _ asked: RegisteredDownload, _ record: RegisteredDownload,
        _ comparison: Comparison
    ) async throws(TowlineError) -> Outcome {
        let mustSettle = request.existing.replaces || !again.changes(.check).isEmpty || comparison == .required
        if !mustSettle, await files.hasFinished(record) { return try await store(again, record) }
        // A follow-up may be moving the file.
        await followUps.end(record.id)
        do throws(TowlineError) {
            let outcome = try await applySettled(request, asked, record.id, comparison)
            await scheduler.beginFollowUps(record.id)
            return outcome
        } catch {
            await scheduler.beginFollowUps(record.id)
            throw error
        }
    }

    private func applySettled(
        _ request: DownloadRequest, _ asked: RegisteredDownload, _ id: DownloadID, _ comparison: Comparison
    ) async throws(TowlineError) -> Outcome {
        guard let record = try await registry.download(id) else { return .done }
        guard record.state.isComplete else { return .changed }
        guard await files.hasFinished(record) else { return try await restart(record, request, asked) }
        switch request.existing {
        case .update: return try await restart(record, request, asked)
        case .overwrite:
            let change = try RegistryChange(refetching: record, as: (request, asked), at: clock.milliseconds)
            return try await scheduler.apply(change, onlyFrom: record.state) ? .done : .changed
        case .fail, .rename, .skip: break
        }
        let again = RepeatedRequest(request, record, nil)
        try again.check()
        let checksum = comparison == .required ? request.checksum : again.newChecksum
        if comparison != .complete, let checksum { try await verify(record, checksum) }
        return try await store(again, record)
    }

    private func store(_ again: RepeatedRequest, _ record: RegisteredDownload) async throws(TowlineError) -> Outcome {
        guard !again.changes.isEmpty else { return .done }
        var change = try change(of: record, again)
        if again.addsFollowUps {
            try await FollowUpRunner.mark(record.id, in: registry)
            change.state = .init(.finished, reasonCode: FollowUpState.running(0).code, endedAt: record.endedAt)
        }
        return try await scheduler.apply(change, onlyFrom: record.state) ? .done : .changed
    }
}
