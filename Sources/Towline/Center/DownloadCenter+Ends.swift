import Foundation
import TowlineCore
import TowlineEngine

/// What becomes of a download whose transfer ended.
extension DownloadCenter {
    func ended(_ download: LiveDownload, _ result: Result<CompletedTransfer, TowlineError>) async {
        let id = download.id
        let progress = download.progress
        if progress.received > 0 { waitCounts[id] = nil }
        var end = DownloadEnd(
            download: download, intent: download.intent, change: download.takeChange(progress: true) ?? .init(id))
        switch (end.intent, result) {
        // Whatever was asked meanwhile: the file is there.
        case (_, .success(let completed)): finish(&end.change, completed, download)
        case (.serverWait(let time, let reason), .failure(let error)) where error.code == .cancelled:
            wait(&end, .server, reason, time / .seconds(1))
        case (.none, .failure(let error)), (.serverWait, .failure(let error)): await fail(&end, error)
        case (.restart, .failure): end.change.state = .init(.queued)
        case (.pause, .failure):
            end.change.state = .init(.paused)
            end.change.note("paused", "the download was paused")
        case (.cancel, .failure):
            files.discardUnfinished(download.recordWithName)
            end.change.state = .init(.cancelled, endedAt: WallClock.milliseconds)
            end.change.heldBytes = 0
            end.change.note("cancelled", "the download was cancelled")
        // Whoever wants it removed waits for this end, and then removes it.
        case (.remove, .failure): end.change.state = .init(.paused)
        // Under way it stays, for the next launch.
        case (.close, .failure): break
        }
        download.close()
        await write(end)
    }

    /// Lets go of a download whose end is in the list, and does what was asked while that was written down.
    func settle(_ end: DownloadEnd) async {
        let id = end.download.id
        live[id] = nil
        if let wait = end.wait { waits[id] = wait }
        admission.end(end.download.share)
        await obey(end.download.intent, after: end.intent, id, end.change.state?.state)
        if case .remove = end.intent { return }
        await publish(id)
        beginFollowUps(id)
        if waits[id] != nil { setAlarm() }
    }

    /// Does what was asked while the end was written down.
    private func obey(
        _ intent: LiveDownload.Intent, after obeyed: LiveDownload.Intent, _ id: DownloadID,
        _ state: RegisteredState?
    ) async {
        do throws(TowlineError) {
            if case .restart = intent, obeyed.rank != intent.rank {
                guard let state, [.paused, .failed, .waiting].contains(state) else { return }
                return try await requeue(id, kind: "resumed", message: "the download was resumed")
            }
            guard intent.rank > obeyed.rank else { return }
            switch intent {
            case .pause: try await pause(id)
            case .cancel: try await cancel(id)
            case .remove(let deletingFiles): try await remove(id, deletingFiles: deletingFiles)
            case .none, .serverWait, .restart, .close: break
            }
        } catch  where error.code == .illegalTransition || error.code == .unknownDownload {
            // It was over before it was asked, or whoever asked has done it.
            return
        } catch {
            registryFailed(error)
        }
    }

    private func finish(
        _ change: inout RegistryChange, _ completed: CompletedTransfer, _ download: LiveDownload
    ) {
        let now = WallClock.milliseconds
        var next: FollowUpState = download.request.followUps.isEmpty ? .none : .running(0)
        // What was there is somebody else's and nobody verified it: it is not unpacked, moved or run.
        if case .skipped = completed.outcome { next = .none }
        change.state = .init(.finished, reasonCode: next.code, endedAt: now)
        forgetSecrets(of: download, &change)
        switch completed.outcome {
        case .published(let file), .alreadyThere(let file):
            change.completeLength = .some(file.length)
            change.heldBytes = file.length
            change.setPlace(Place(path: file.path))
            change.note("finished", "the download is complete: \(TerminalSafeText.make(file.path))")
        case .skipped(let path):
            change.setPlace(Place(path: path))
            // Whatever the server said, it is not of this file.
            change.completeLength = .some(nil)
            let name = TerminalSafeText.make(path)
            change.note("skipped", "\(name) already exists and was not replaced; nothing was downloaded")
        case .streamed(let length, _): change.heldBytes = length
        }
    }

    /// A finished download needs no secrets any more, and its entry may stay in the list for years.
    ///
    /// Asked for again with secrets in its URL, it is another entry, whose file is there already.
    private func forgetSecrets(of download: LiveDownload, _ change: inout RegistryChange) {
        let asked = download.request
        var request = asked
        request.forgetSecrets()
        guard request != asked, let options = try? StoredRequest.encode(request) else { return }
        change.options = options
        guard request.url != asked.url, let identity = try? request.identity() else { return }
        let source = request.url.absoluteString
        (change.source, change.identity) = (source, identity)
        download.update { record, _ in (record.source, record.identity) = (source, identity) }
    }

    private func fail(_ end: inout DownloadEnd, _ error: TowlineError) async {
        let download = end.download
        if await renew(download, after: error) {
            end.change.state = .init(.queued)
            end.change.note("renewed", "the old link no longer works (\(error.message)); a new link replaced it")
            return
        }
        switch error.code {
        case .transient where download.request.maximumTries == nil: wait(&end, .network, error.message)
        case .diskFull: wait(&end, .diskSpace, error.message)
        case .cancelled:
            end.change.state = .init(.paused)
        default:
            waitCounts[download.id] = nil
            end.change.state = .init(
                .failed, reason: error.message, reasonCode: error.code.description, status: error.status,
                endedAt: WallClock.milliseconds)
            end.change.note("failed", error.message)
        }
    }

    // MARK: Waiting

    private func wait(_ end: inout DownloadEnd, _ code: WaitCode, _ reason: String) {
        let count = waitCounts[end.download.id, default: 0]
        waitCounts[end.download.id] = count + 1
        let seconds =
            code == .diskSpace
            ? configuration.diskRetryInterval
            : min(300, configuration.networkRetryInterval * Double(1 << min(count, 20)))
        wait(&end, code, reason, seconds)
        // Once for each time it begins to wait: a network that is gone for days does not fill the timeline.
        if count == 0 { end.change.note("waiting", reason) }
    }

    private func wait(_ end: inout DownloadEnd, _ code: WaitCode, _ reason: String, _ seconds: Double) {
        end.wait = Wait(code: code, until: .now + .seconds(seconds))
        end.change.state = .init(
            .waiting, reason: reason, reasonCode: code.rawValue,
            waitUntil: WallClock.milliseconds + Int64(seconds * 1000))
    }

    /// Wakes when the first wait is over.
    func setAlarm() {
        alarm?.cancel()
        guard let first = waits.values.map(\.until).min(), !isClosed else { return }
        alarm = Task {
            do { try await Task.sleep(until: first, clock: .continuous) } catch { return }
            await waitsAreOver { $0.until <= .now }
        }
    }

    private func waitsAreOver(_ isOver: (Wait) -> Bool) async {
        var ready: [DownloadID: Wait] = [:]
        for (id, wait) in waits where isOver(wait) {
            if wait.code == .diskSpace, await isStillFull(id) {
                waits[id]?.until = .now + .seconds(configuration.diskRetryInterval)
                continue
            }
            ready[id] = wait
        }
        for id in ready.keys { waits[id] = nil }
        do throws(TowlineError) {
            try await registry.apply(
                ready.keys.map { id in
                    var change = RegistryChange(id, state: .init(.queued))
                    // A pause that comes meanwhile stays one.
                    change.onlyFrom = .waiting
                    return change
                })
        } catch {
            registryFailed(error)
            // It waits on, until the list can be written.
            for (id, wait) in ready where waits[id] == nil {
                waits[id] = Wait(code: wait.code, until: .now + Self.listRetryInterval)
            }
        }
        for id in ready.keys { await publish(id) }
        setAlarm()
        pump()
    }

    private func isStillFull(_ id: DownloadID) async -> Bool {
        guard let record = try? await registry.download(id), let length = record.completeLength,
            let free = files.freeSpace(record.directory)
        else { return false }
        return free < max(length - record.heldBytes, 1 << 20)
    }

    /// A network came or went: whoever waits for one looks again.
    func networkChanged() {
        guard !isClosed else { return }
        for download in live.values { download.runner?.nudge() }
        Task { await waitsAreOver { $0.code == .network } }
    }
}

extension LiveDownload {
    /// The list's entry, with the name that was learned meanwhile.
    var recordWithName: RegisteredDownload {
        var record = record
        record.name = snapshot.name ?? record.name
        return record
    }
}

extension RegistryChange {
    /// Says where the file is.
    mutating func setPlace(_ place: Place) { (directory, name) = (place.directory, place.name) }

    /// Adds a line to the timeline.
    mutating func note(_ kind: String, _ message: String) {
        entries.append(TimelineEntry(time: WallClock.milliseconds, kind: kind, message: message))
    }
}
