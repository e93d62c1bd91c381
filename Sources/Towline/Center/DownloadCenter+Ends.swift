import Foundation
import TowlineCore
import TowlineEngine

/// The handling of transfers that ended: the state of each download afterwards, and the waits before retries.
extension DownloadCenter {
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
            end.setWait(for: .server, reason, seconds: time / .seconds(1))
        } else if !end.intent.isCommand {
            if await links.renew(end.download, after: error) {
                end.renew(after: error)
            } else {
                end.fail(error, &waits, configuration)
            }
        }
        if end.intent == .cancel { await discardUnfinished(end.download.recordWithName) }
        end.obeyCommand()
    }

    /// Ends the bookkeeping of a transfer whose result is in the registry: the download no longer counts as running.
    /// Then starts its follow-ups, its wait, or a restart that was requested during the write.
    func recordEnd(_ end: DownloadEnd) async {
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

    // MARK: Waiting

    /// Starts the timer that queues waiting downloads again at the end of the earliest wait.
    func setAlarm() {
        guard !running.isClosed else { return waits.stopTimer() }
        waits.startTimer { [self] in await waitsAreOver { $0.until <= .now } }
    }

    private func waitsAreOver(_ isOver: @Sendable (RetryWaits.Wait) -> Bool) async {
        var ready = waits.matching(isOver)
        for (id, wait) in ready where wait.code == .diskSpace {
            guard await isStillFull(id) else { continue }
            waits.postpone(id, until: .now + .seconds(configuration.diskRetryInterval))
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
            waits.restore(ready, until: .now + RegistryFailures.retryInterval)
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
        guard !running.isClosed else { return }
        for download in running.all { download.runner?.nudge() }
        Task { await waitsAreOver { $0.code == .network } }
    }
}
