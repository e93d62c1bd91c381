import Foundation
import TowlineCore
import TowlineEngine

/// Commands for one download in the registry or for all of them: pause, resume, retry, cancel, remove and changes.
extension DownloadCenter {
    func pause(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.pause, id) { $0.end(.pause) }
    }

    /// Resumes a paused or failed download, and retries a download that waits. Throws `illegalTransition` in a state
    /// that cannot be resumed.
    func resume(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.resume, id) { resume($0) }
        pump()
    }

    /// Restarts a running transfer that waits for its next request, and undoes a pause that is not complete yet.
    ///
    /// - Returns: `restart` if the transfer ends and starts again; `nil` if the transfer continues unchanged.
    private func resume(_ download: LiveDownload) -> LiveDownload.Intent? {
        if download.isWaiting {
            overruleHost(of: download.record)
            return download.end(.restart)
        }
        return download.resume() ? .restart : nil
    }

    /// Clears the pause that the host of a download requested (`Retry-After`), because the user wants the download to
    /// continue now.
    private func overruleHost(of record: RegisteredDownload) {
        if let origin = try? HTTPURL(parsing: record.source).origin { services.board.overrule(origin) }
    }

    /// Starts a failed, cancelled, paused or waiting download again, or a failed follow-up of a finished download.
    func retry(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.retry, id) { _ in nil }
        pump()
    }

    func cancel(_ id: DownloadID) async throws(TowlineError) {
        try await carryOut(.cancel, id) { $0.end(.cancel) }
    }

    /// Carries out a command. When the function returns, the result is durable in the registry and visible in
    /// snapshots.
    ///
    /// For a download without a transfer, `DownloadCommand.effect(in:)` decides by its state. If the state changes
    /// before the decision is written, the decision is made again.
    ///
    /// - Parameter tell: passes the command to the transfer of a running download. Returns the reason if this ends the
    ///   transfer; `nil` otherwise.
    private func carryOut(
        _ command: DownloadCommand, _ id: DownloadID, tell: (LiveDownload) -> LiveDownload.Intent?
    ) async throws(TowlineError) {
        try checkOpen()
        while true {
            if let download = try await transfer(of: id) {
                guard let intent = tell(download) else { return }
                if try await isOver(download, for: intent) { return }
                continue
            }
            let record = try await list.record(id)
            // A transfer that started while the record was read has the download now.
            guard running.isFree(id) else { continue }
            switch command.effect(in: record.state) {
            case .none:
                if command == .resume || command == .retry { overruleHost(of: record) }
                return
            case .refused where command == .retry && record.state == .finished:
                if try await retryFollowUp(of: id) { return }
            case .refused: throw illegal(command.participle, record)
            case .change(let state):
                if state == .queued { overruleHost(of: record) }
                if try await change(record, to: state, for: command) { return }
            }
        }
    }

    /// Returns the running download with this identifier; `nil` if the download has no transfer. First waits for a
    /// transfer that is being started, or for the result of an ended transfer to be written to the registry.
    private func transfer(of id: DownloadID) async throws(TowlineError) -> LiveDownload? {
        while true {
            if let claim = running.claim(of: id) {
                await claim.value
            } else if running.end(of: id) != nil {
                try await writeEnd(of: id)
            } else {
                return running[id]
            }
        }
    }

    /// Waits until a transfer has ended and its result is in the registry.
    ///
    /// - Returns: `true` if the transfer ended for the reason `intent`, or if a later pause or resume replaced this
    ///   reason. `false` if the transfer ended otherwise, so that the command must be decided again.
    private func isOver(_ download: LiveDownload, for intent: LiveDownload.Intent) async throws(TowlineError) -> Bool {
        while let run = running.run(of: download) {
            await run.value
            try await writeEnd(of: download.id)
        }
        if download.endState == intent.endState { return true }
        return intent.isReversible && download.intent.isReversible && download.intent != intent
    }

    /// Changes the state of a download without a transfer.
    ///
    /// - Returns: `false` if the download is no longer in the state of `record`.
    private func change(
        _ record: RegisteredDownload, to state: RegisteredState, for command: DownloadCommand
    ) async throws(TowlineError) -> Bool {
        var change = RegistryChange(record.id, state: .init(state))
        if state == .cancelled {
            await discardUnfinished(record)
            change.state?.endedAt = WallClock.milliseconds
            change.heldBytes = 0
        }
        if command == .retry, record.state == .cancelled {
            change.note("retried", "the cancelled download was started again")
        } else {
            let verb = state == .queued ? DownloadCommand.resume.participle : command.participle
            change.note(verb, "the download was \(verb)")
        }
        return try await apply(change, onlyFrom: record.state)
    }

    /// Writes a change of a download without a transfer to the registry, and publishes the new snapshot.
    ///
    /// - Returns: `false` if the download is not in the required `state` or was removed. The download is then
    ///   unchanged.
    @discardableResult
    private func apply(
        _ change: RegistryChange, onlyFrom state: RegisteredState
    ) async throws(TowlineError) -> Bool {
        var change = change
        change.onlyFrom = state
        guard try await registry.apply([change]) == [.applied] else { return false }
        if change.state?.state == .queued { waits.resetCount(of: change.id) }
        await publish(change.id)
        return true
    }

    /// Starts the failed follow-up action (such as unpacking) of a finished download again. Throws `illegalTransition`
    /// if no follow-up failed.
    ///
    /// - Returns: `false` if the state of the download changed meanwhile.
    private func retryFollowUp(of id: DownloadID) async throws(TowlineError) -> Bool {
        await requestLocks.acquire(id)
        defer { requestLocks.release(id) }
        let record = try await list.record(id)
        guard record.state == .finished else { return false }
        guard case .failed(let number, _) = FollowUpState(code: record.reasonCode, reason: record.reason) else {
            throw illegal("retried", record)
        }
        // The task of the failed follow-up may still be running.
        await followUps.end(id)
        try await FollowUpRunner.mark(id, in: registry)
        var change = RegistryChange(
            id, state: .init(.finished, reasonCode: FollowUpState.running(number).code, endedAt: record.endedAt))
        change.note("retried", "the failed follow-up action (such as unpacking) was started again")
        guard try await apply(change, onlyFrom: .finished) else { return false }
        beginFollowUps(id)
        return true
    }

    func remove(_ id: DownloadID, deletingFiles: Bool) async throws(TowlineError) {
        var isRemoved = false
        while !isRemoved {
            if let download = try await transfer(of: id) {
                download.end(.remove)
                _ = try await isOver(download, for: .remove)
                continue
            }
            await followUps.end(id)
            let record = try await list.record(id)
            guard running.isFree(id) else { continue }
            do throws(TowlineError) {
                if deletingFiles, record.state == .finished { try await files.removeFinished(record) }
                if deletingFiles, record.state != .finished { await discardUnfinished(record) }
                isRemoved = try await registry.remove([id], onlyFrom: record.state) != [.otherState]
            } catch {
                beginFollowUps(id)
                throw error
            }
        }
        waits.resetCount(of: id)
        links.forget(id)
        journals.forget(id)
        hub.publish(.removed(id))
        hub.end(id)
        pump()
    }

    /// Deletes the part file and the journal of an unfinished download.
    func discardUnfinished(_ record: RegisteredDownload) async {
        await files.discardUnfinished(record)
        journals.forget(record.id)
    }

    /// Puts a download whose transfer ended into the queue again. Has no effect if the download is not in `state`.
    func requeue(_ id: DownloadID, onlyFrom state: RegisteredState) async throws(TowlineError) {
        var change = RegistryChange(id, state: .init(.queued))
        change.note("resumed", "the download was resumed")
        try await apply(change, onlyFrom: state)
    }

    private func illegal(_ action: String, _ record: RegisteredDownload) -> TowlineError {
        let name = record.name.map { TerminalSafeText.make($0) } ?? "the download"
        return TowlineError(
            .illegalTransition,
            "\(name) cannot be \(action) because the download is \(record.state); nothing was changed")
    }

    /// Adds the unfinished downloads whose journals are in a directory and that are not in the list of downloads. They
    /// are added paused.
    func adopt(_ directory: String) async throws(TowlineError) -> [DownloadID] {
        try checkOpen()
        var requests: [DownloadRequest] = []
        for file in await files.unfinished(in: directory) {
            guard var request = DownloadRequest(file) else { continue }
            request.startsPaused = true
            if try await !list.contains(file) { requests.append(request) }
        }
        return try await add(requests)
    }

    func move(_ id: DownloadID, before other: DownloadID?) async throws(TowlineError) {
        _ = try await list.record(id)
        try await registry.move(id, before: other)
        await publish(id)
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
        await publishList()
        pump()
    }

    /// Runs `body`, which carries out a command for one of many downloads. Ignores the errors that the download has
    /// ended (`illegalTransition`) or was removed (`unknownDownload`).
    private func allowingRefusal(_ body: () async throws(TowlineError) -> Void) async throws(TowlineError) {
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
        for download in restarting where try await !isOver(download, for: .restart) {
            try await allowingRefusal { () throws(TowlineError) in try await resume(download.id) }
        }
        await publishList()
        pump()
    }

    // MARK: Changes of a request

    /// Changes the request of a download with `body` and writes it to the registry. If `restarts` is `true`, a running
    /// transfer restarts with the new request. Throws the error of an invalid value, and then changes nothing.
    func change(
        _ id: DownloadID, restarts: Bool, _ body: @Sendable (inout DownloadRequest) -> Void
    ) async throws(TowlineError) {
        await requestLocks.acquire(id)
        defer { requestLocks.release(id) }
        while let claim = running.claim(of: id) { await claim.value }
        let record = try await list.record(id)
        var request = running[id]?.request ?? (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
        body(&request)
        _ = try request.options(known: nil)
        var change = RegistryChange(id)
        change.options = try StoredRequest.encode(request)
        if request.metadata != record.metadata { change.metadata = request.metadata }
        if request.priority != record.priority { change.priority = request.priority }
        if request.group != record.group { change.group = .some(request.group) }
        if request.url.absoluteString != record.source {
            change.source = request.url.absoluteString
            change.host = try request.source.origin.description
        }
        try await registry.apply([change])
        journals.forget(id)
        // A transfer that was claimed before the change has the old request.
        while let claim = running.claim(of: id) { await claim.value }
        if let download = running[id] {
            let changed = request
            let share = download.share
            download.update { record, stored in
                stored = changed
                record.metadata = changed.metadata
                record.priority = changed.priority
                record.group = changed.group
                record.source = changed.url.absoluteString
            }
            admission.end(share)
            admission.start(download.share)
            download.runner?.setRateLimit(changed.rateLimit ?? 0)
            if restarts { download.end(.restart) }
        }
        await publish(id)
        pump()
    }
}

extension DownloadCommand {
    /// The participle of the command, such as `paused`, for messages and the timeline.
    fileprivate var participle: String {
        switch self {
        case .pause: "paused"
        case .resume: "resumed"
        case .retry: "retried"
        case .cancel: "cancelled"
        }
    }
}
