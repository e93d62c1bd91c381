import Foundation
import TowlineCore
import TowlineEngine

/// The handling of transfers that ended: the state of each download afterwards, and the waits before retries.
extension DownloadCenter {
    func ended(_ download: LiveDownload, _ result: Result<CompletedTransfer, TowlineError>) async {
        let id = download.id
        let progress = download.progress
        if progress.received > 0 { waitCounts[id] = nil }
        var end = DownloadEnd(
            download: download, intent: download.intent, change: download.takeChange(progress: true) ?? .init(id))
        switch result {
        // The file is complete, even if a command tried to end the transfer.
        case .success(let completed): finish(&end.change, completed, download)
        case .failure(let error):
            if case .serverWait(let time, let reason) = end.intent, error.code == .cancelled {
                wait(&end, .server, reason, time / .seconds(1))
            } else if !end.intent.isCommand {
                await fail(&end, error)
            }
            if end.intent.isCommand { await obey(&end) }
        }
        var journal: JournalSummary?
        if case .failure = result, end.change.state?.state != .cancelled {
            // Only bytes in a journal are kept. A small file has no journal.
            journal = await files.held([download.recordWithName])[0]
            end.change.heldBytes = journal?.heldBytes ?? 0
        }
        download.close(end.change.state?.state)
        forgetJournal(of: id)
        if let journal { journals[id] = (journal, .now) }
        await write(end)
    }

    /// Sets the state that a command, such as pause or cancel, requests for a download whose transfer it ended.
    /// `cancel` also deletes the downloaded bytes.
    private func obey(_ end: inout DownloadEnd) async {
        switch end.intent {
        case .none, .serverWait: break
        case .restart: end.change.state = .init(.queued)
        case .pause:
            end.change.state = .init(.paused)
            end.change.note("paused", "the download was paused")
        case .cancel:
            await discardUnfinished(end.download.recordWithName)
            end.change.state = .init(.cancelled, endedAt: WallClock.milliseconds)
            end.change.heldBytes = 0
            end.change.note("cancelled", "the download was cancelled")
        // The remove command waits for this end.
        case .remove: end.change.state = .init(.paused)
        // The state stays active, so that the next launch resumes the download.
        case .close: break
        }
    }

    /// Ends the bookkeeping of a transfer whose result is in the registry: the download no longer counts as running.
    /// Then starts its follow-ups, its wait, or a restart that was requested during the write.
    func recordEnd(_ end: DownloadEnd) async {
        let id = end.download.id
        live[id] = nil
        runs[id] = nil
        if let wait = end.wait { waits[id] = wait }
        admission.end(end.download.share)
        if end.intent != .remove { hub.publish(end.snapshot) }
        if end.download.intent == .restart, end.intent != .restart { await restart(id, end.change.state?.state) }
        if end.intent == .remove { return }
        beginFollowUps(id)
        if waits[id] != nil { setAlarm() }
    }

    /// Starts the remaining follow-ups of a download, if it is finished.
    func beginFollowUps(_ id: DownloadID) { followUps.begin(id) { [self] id in await publish(id) } }

    /// Queues a paused, failed or waiting download again. A change of its request, or a resume, arrived while the
    /// result of its transfer was written to the registry.
    ///
    /// Pause, cancel and remove wait for that write themselves, and then decide by the new state.
    private func restart(_ id: DownloadID, _ state: RegisteredState?) async {
        guard let state, [.paused, .failed, .waiting].contains(state) else { return }
        do throws(TowlineError) {
            try await requeue(id, onlyFrom: state)
        } catch {
            failures.report(error)
        }
    }

    private func finish(
        _ change: inout RegistryChange, _ completed: CompletedTransfer, _ download: LiveDownload
    ) {
        let now = WallClock.milliseconds
        var next: FollowUpState = download.request.followUps.isEmpty ? .none : .running(0)
        // A skipped file was not verified, so no follow-up runs on it. For a file that is up to date, the follow-ups
        // ran when the file was downloaded.
        switch completed.outcome {
        case .skipped, .upToDate: next = .none
        case .published, .alreadyThere, .streamed: break
        }
        change.state = .init(.finished, reasonCode: next.code, endedAt: now)
        forgetSecrets(of: download, &change)
        switch completed.outcome {
        case .published(let file), .alreadyThere(let file):
            change.completeLength = .some(file.length)
            change.heldBytes = file.length
            change.setPlace(Place(path: file.path))
            change.note("finished", "the download is complete: \(TerminalSafeText.make(file.path))")
        case .upToDate(let file):
            change.completeLength = .some(file.length)
            change.heldBytes = file.length
            change.setPlace(Place(path: file.path))
            change.note("upToDate", "the file is up to date: \(TerminalSafeText.make(file.path))")
        case .skipped(let path):
            change.setPlace(Place(path: path))
            // The length that the server sent does not describe the existing file.
            change.completeLength = .some(nil)
            let name = TerminalSafeText.make(path)
            change.note("skipped", "\(name) already exists and was not replaced; nothing was downloaded")
        case .streamed(let length, _): change.heldBytes = length
        }
    }

    /// Removes the secrets of a finished download, because its entry may stay in the registry for years.
    ///
    /// If the same URL with its secrets is added again, it is a new download whose file already exists.
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
        if await links.renew(download, after: error) {
            end.change.state = .init(.queued)
            end.change.note("renewed", "the old link no longer works (\(error.message)); a new link replaced it")
            return
        }
        // The command arrived during the request for a new link.
        if download.intent.isCommand {
            end.intent = download.intent
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
        // One note for consecutive waits: a network that is down for days does not fill the timeline.
        if count == 0 { end.change.note("waiting", reason) }
    }

    private func wait(_ end: inout DownloadEnd, _ code: WaitCode, _ reason: String, _ seconds: Double) {
        end.wait = Wait(code: code, until: .now + .seconds(seconds))
        end.change.state = .init(
            .waiting, reason: reason, reasonCode: code.rawValue,
            waitUntil: WallClock.milliseconds + Int64(seconds * 1000))
    }

    /// Starts the timer task that queues waiting downloads again, at the end of the earliest wait. Replaces an earlier
    /// timer.
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
                    // A download that was paused meanwhile stays paused.
                    change.onlyFrom = .waiting
                    return change
                })
        } catch {
            failures.report(error)
            // The download continues to wait until the list can be written.
            for (id, wait) in ready where waits[id] == nil {
                waits[id] = Wait(code: wait.code, until: .now + RegistryFailures.retryInterval)
            }
        }
        for id in ready.keys { await publish(id) }
        setAlarm()
        pump()
    }

    private func isStillFull(_ id: DownloadID) async -> Bool {
        guard let record = try? await registry.download(id), let length = record.completeLength,
            let free = await files.freeSpace(record.directory)
        else { return false }
        return free < max(length - record.heldBytes, 1 << 20)
    }

    /// Retries all downloads that wait for the network, and ends the retry delays of running transfers. Called when the
    /// network changes.
    func networkChanged() {
        guard !isClosed else { return }
        for download in live.values { download.runner?.nudge() }
        Task { await waitsAreOver { $0.code == .network } }
    }
}

extension LiveDownload {
    /// The entry of the download in the registry, with the file name that the transfer learned from the server.
    var recordWithName: RegisteredDownload {
        var record = record
        record.name = snapshot.name ?? record.name
        return record
    }
}

extension RegistryChange {
    /// Sets the new directory and the new name of the file.
    mutating func setPlace(_ place: Place) { (directory, name) = (place.directory, place.name) }

    /// Adds a note to the timeline of the download, with a stable name for programs (`kind`) and a text for people.
    mutating func note(_ kind: String, _ message: String) {
        entries.append(TimelineEntry(time: WallClock.milliseconds, kind: kind, message: message))
    }
}
