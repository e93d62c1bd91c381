import Foundation
import TowlineCore
import TowlineEngine

/// What callers ask of a download that is there.
extension DownloadCenter {
    static let notFound = TowlineError(
        .unknownDownload, "the download was removed from the list. Add the URL again to download the file")

    /// The list's entry; throws if it is not there any more.
    func record(_ id: DownloadID) async throws(TowlineError) -> RegisteredDownload {
        try checkOpen()
        guard let record = try await registry.download(id) else {
            throw TowlineError(
                .unknownDownload,
                "download \(id) is not in the list: it was removed or never existed. "
                    + "Add the URL again to download the file")
        }
        return record
    }

    /// Where it stands; of one that nobody is at, what its journal tells.
    func snapshot(_ id: DownloadID) async throws(TowlineError) -> DownloadSnapshot {
        if let end = unwritten[id] { return end.snapshot }
        if let download = live[id] { return download.snapshot }
        return snapshot(of: try await record(id))
    }

    /// The same of several, without those that are not there.
    func snapshots(_ ids: [DownloadID]) async throws(TowlineError) -> [DownloadSnapshot] {
        try checkOpen()
        return try await registry.downloads(ids).map { snapshot(of: $0) }
    }

    func snapshot(of record: RegisteredDownload) -> DownloadSnapshot {
        if let end = unwritten[record.id] { return end.snapshot }
        if let download = live[record.id] { return download.snapshot }
        var snapshot = DownloadSnapshot(record)
        switch record.state {
        case .finished, .cancelled: break
        case .queued, .active, .waiting, .paused, .failed:
            guard let held = files.held(record) else {
                // No journal: nothing is held, whatever was last heard of, but small files have none while they run.
                if record.state != .active { snapshot.heldBytes = 0 }
                break
            }
            snapshot.heldBytes = held.heldBytes
            snapshot.completeLength = held.completeLength ?? snapshot.completeLength
            snapshot.name = held.name
        }
        return snapshot
    }

    /// Tells readers what it is like now.
    func publish(_ id: DownloadID) async {
        guard hub.hasReaders, let record = try? await registry.download(id) else { return }
        hub.publish(snapshot(of: record))
    }

    func pause(_ id: DownloadID) async throws(TowlineError) {
        try await writeEnd(of: id)
        if let download = live[id] { return download.end(.pause) }
        overrulings.begin(id)
        defer { overruled(id) }
        let record = try await record(id)
        switch record.state {
        case .paused: return
        case .queued, .active, .waiting:
            waits[id] = nil
            try await set(id, .init(.paused), "paused", "the download was paused")
        case .failed, .finished, .cancelled: throw illegal("paused", record)
        }
    }

    /// What was held back may be started now, if it still waits for that.
    private func overruled(_ id: DownloadID) {
        overrulings.end(id)
        pump()
    }

    /// Lets a paused or failed download go on, and one that waits go on now.
    func resume(_ id: DownloadID) async throws(TowlineError) {
        try checkOpen()
        try await writeEnd(of: id)
        if let download = live[id] {
            if download.isWaiting {
                overruleHost(of: download.record)
                download.end(.restart)
            }
            return download.resume()
        }
        let record = try await record(id)
        overruleHost(of: record)
        switch record.state {
        case .queued, .active: break
        case .paused, .waiting, .failed: try await requeue(id, kind: "resumed", message: "the download was resumed")
        case .finished, .cancelled: throw illegal("resumed", record)
        }
        pump()
    }

    /// Whoever wants it to go on now means it, whatever the host said to an earlier request.
    private func overruleHost(of record: RegisteredDownload) {
        if let origin = try? HTTPURL(parsing: record.source).origin { services.board.overrule(origin) }
    }

    /// Begins again what failed or was cancelled, or a follow-up that failed.
    func retry(_ id: DownloadID) async throws(TowlineError) {
        try await writeEnd(of: id)
        if live[id] != nil { return }
        let record = try await record(id)
        switch record.state {
        case .cancelled: try await requeue(id, kind: "retried", message: "the cancelled download was started again")
        case .finished:
            guard case .failed(let number, _) = FollowUpState(code: record.reasonCode, reason: record.reason) else {
                throw illegal("retried", record)
            }
            // It may still be told that there is no more to do.
            await endFollowUps(id)
            let next = FollowUpState.running(number)
            // Before the row says so: what is under way when the process ends is found by it at launch.
            try await registry.setValue("", for: "follow/\(id)")
            try await set(
                id, .init(.finished, reasonCode: next.code, endedAt: record.endedAt), "retried",
                "the failed follow-up action (such as unpacking) was started again")
            beginFollowUps(id)
        default: try await resume(id)
        }
        pump()
    }

    func cancel(_ id: DownloadID) async throws(TowlineError) {
        try await writeEnd(of: id)
        if let download = live[id] {
            download.end(.cancel)
            return try await finishedRunning(id)
        }
        overrulings.begin(id)
        defer { overruled(id) }
        let record = try await record(id)
        switch record.state {
        case .cancelled: return
        case .finished: throw illegal("cancelled", record)
        case .queued, .active, .waiting, .paused, .failed:
            waits[id] = nil
            files.discardUnfinished(record)
            var change = RegistryChange(id, state: .init(.cancelled, endedAt: WallClock.milliseconds))
            change.heldBytes = 0
            change.note("cancelled", "the download was cancelled")
            try await registry.apply([change])
            await publish(id)
        }
    }

    func remove(_ id: DownloadID, deletingFiles: Bool) async throws(TowlineError) {
        try await writeEnd(of: id)
        if let download = live[id] {
            download.end(.remove(deletingFiles: deletingFiles))
            try await finishedRunning(id)
        }
        overrulings.begin(id)
        defer { overruled(id) }
        waits[id] = nil
        await endFollowUps(id)
        try await forget(try await record(id), deletingFiles: deletingFiles)
    }

    func forget(_ record: RegisteredDownload, deletingFiles: Bool) async throws(TowlineError) {
        if deletingFiles {
            if record.state == .finished { try files.removeFinished(record) } else { files.discardUnfinished(record) }
        }
        waitCounts[record.id] = nil
        try await registry.remove([record.id])
        hub.publish(.removed(record.id))
        hub.end(record.id)
    }

    /// Puts a download in the queue again.
    func requeue(_ id: DownloadID, kind: String, message: String) async throws(TowlineError) {
        waits[id] = nil
        waitCounts[id] = nil
        try await set(id, .init(.queued), kind, message)
    }

    private func set(_ id: DownloadID, _ state: RegistryChange.State, _ kind: String, _ message: String)
        async throws(TowlineError)
    {
        var change = RegistryChange(id, state: state)
        change.note(kind, message)
        try await registry.apply([change])
        await publish(id)
    }

    private func illegal(_ action: String, _ record: RegisteredDownload) -> TowlineError {
        let name = record.name.map { TerminalSafeText.make($0) } ?? "the download"
        return TowlineError(
            .illegalTransition,
            "\(name) cannot be \(action) because the download is \(record.state); nothing was changed")
    }

    /// Waits until no transfer is at it; throws if its end could not be written down.
    private func finishedRunning(_ id: DownloadID) async throws(TowlineError) {
        while live[id] != nil, let run = runs[id] {
            await run.value
            try await writeEnd(of: id)
        }
    }

    // MARK: All of them

    func pauseAll(group: String?) async throws(TowlineError) {
        try checkOpen()
        overrulings.beginMany()
        defer {
            overrulings.endMany()
            pump()
        }
        _ = try await registry.changeAll(from: [.queued, .waiting], to: .paused, group: group)
        for download in live.values where group == nil || download.share.group == group { download.end(.pause) }
        if group == nil { waits = [:] } else { try await dropWaits(of: group) }
        await publishList()
    }

    private func dropWaits(of group: String?) async throws(TowlineError) {
        for id in waits.keys {
            if let record = try await registry.download(id), record.group == group { waits[id] = nil }
        }
    }

    func resumeAll(group: String?) async throws(TowlineError) {
        try checkOpen()
        for download in live.values where group == nil || download.share.group == group {
            download.resume()
        }
        _ = try await registry.changeAll(from: [.paused], to: .queued, group: group)
        await publishList()
        pump()
    }

    /// Tells that many are different: of a long list in one event, and each to those who read it alone.
    private func publishList() async {
        guard hub.hasReaders else { return }
        for record in (try? await registry.downloads(hub.followed)) ?? [] { hub.publish(snapshot(of: record)) }
        hub.publish(.listChanged)
    }

    // MARK: Changing one

    /// Changes what was asked for; a transfer that is at it begins again with it where it must.
    func change(
        _ id: DownloadID, restarts: Bool, _ body: @Sendable (inout DownloadRequest) -> Void
    ) async throws(TowlineError) {
        await beginChange(of: id)
        defer { endChange(of: id) }
        let record = try await record(id)
        var request = live[id]?.request ?? (try? StoredRequest.decode(record.options)) ?? DownloadRequest(record)
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
        if let download = live[id] {
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
    /// Waits for its turn: each change begins with what the one before made of the request.
    func beginChange(of id: DownloadID) async {
        guard changing[id] != nil else { return changing[id] = [] }
        await withCheckedContinuation { changing[id]?.append($0) }
    }

    /// Lets the next one change it.
    func endChange(of id: DownloadID) {
        guard let next = changing[id]?.first else { return changing[id] = nil }
        changing[id]?.removeFirst()
        next.resume()
    }
}
