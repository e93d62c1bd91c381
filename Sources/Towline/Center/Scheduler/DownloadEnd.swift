import Foundation
import TowlineCore
import TowlineEngine

/// The result of an ended transfer, to be written to the registry: the decision about the state of the download after
/// the transfer.
struct DownloadEnd {
    let download: LiveDownload
    /// The reason, such as a command, why the transfer was ended; `none` if no reason was set.
    private(set) var intent: LiveDownload.Intent
    /// The change of the registry entry that contains the result of the transfer.
    private(set) var change: RegistryChange
    /// The wait before the download is retried, with its reason and end; `nil` if the download does not wait.
    private(set) var wait: RetryWaits.Wait?

    /// Creates the result of a transfer that ended, with the changes (name, length, timeline notes) that the registry
    /// does not contain yet. The new state of the download is set afterwards.
    init(of download: LiveDownload) {
        self.download = download
        intent = download.intent
        change = download.takeChange(progress: true) ?? RegistryChange(download.id)
    }

    private var clock: any DownloadClock { download.clock }

    private mutating func note(_ kind: String, _ message: String) {
        change.note(kind, message, at: clock.milliseconds)
    }

    /// The new state of the download after its transfer; `nil` if the state in the registry does not change.
    var state: RegisteredState? { change.state?.state }

    /// `true` if the change contains the first of several follow-ups, such as unpacking.
    var beginsFollowUps: Bool { change.state?.reasonCode == FollowUpState.running(0).code }

    /// Sets the state of a download whose file is complete, even if a command tried to end the transfer.
    mutating func finish(_ completed: CompletedTransfer) {
        var next: FollowUpState = download.request.followUps.isEmpty ? .none : .running(0)
        // A skipped file was not verified, so no follow-up runs on it. For a file that is up to date, the follow-ups
        // ran when the file was downloaded.
        switch completed.outcome {
        case .skipped, .upToDate: next = .none
        case .published, .alreadyThere, .streamed: break
        }
        change.state = .init(.finished, reasonCode: next.code, endedAt: clock.milliseconds)
        settleRequest()
        switch completed.outcome {
        case .published(let file), .alreadyThere(let file):
            setFile(file.path, length: file.length)
            note("finished", "the download is complete: \(TerminalSafeText.make(file.path))")
        case .upToDate(let file):
            setFile(file.path, length: file.length)
            note("upToDate", "the file is up to date: \(TerminalSafeText.make(file.path))")
        case .skipped(let path):
            change.setPlace(Place(path: path))
            // The length that the server sent does not describe the existing file.
            change.completeLength = .some(nil)
            let name = TerminalSafeText.make(path)
            note("skipped", "\(name) already exists and was not replaced; nothing was downloaded")
        case .streamed(let length, _): change.heldBytes = length
        }
    }

    private mutating func setFile(_ path: String, length: Int64) {
        change.completeLength = .some(length)
        change.heldBytes = length
        change.setPlace(Place(path: path))
    }

    /// Removes the secrets of a finished download, because its entry may stay in the registry for years, and the order
    /// to replace its own file.
    ///
    /// If the same URL with its secrets is added again, it is a new download whose file already exists.
    private mutating func settleRequest() {
        let asked = download.request
        var request = asked
        request.forgetSecrets()
        request.replacesOwnFile = false
        guard request != asked, let options = try? StoredRequest.encode(request) else { return }
        change.options = options
        guard request.url != asked.url, let identity = try? request.identity() else { return }
        let source = request.url.absoluteString
        (change.source, change.identity) = (source, identity)
        download.update { record, _ in (record.source, record.identity) = (source, identity) }
    }

    /// Sets the state `queued` for a download whose expired link was renewed after `error`, so that it continues with
    /// the new link.
    mutating func renew(after error: TowlineError) {
        change.state = .init(.queued)
        note("renewed", "the old link no longer works (\(error.message)); a new link replaced it")
    }

    /// Sets the state of a download whose transfer failed: it waits for a retry, is paused or failed. A command that
    /// arrived since the end of the transfer has precedence.
    mutating func fail(_ error: TowlineError, _ waits: inout RetryWaits, _ configuration: Downloader.Configuration) {
        if download.intent.isCommand {
            intent = download.intent
            return
        }
        switch error.code {
        case .transient where download.request.maximumTries == nil:
            setWait(for: download.outage == .retry ? .retry : .network, error.message, &waits, configuration)
        case .diskFull: setWait(for: .diskSpace, error.message, &waits, configuration)
        case .destinationBusy, .diskPermission: setWait(for: .destination, error.message, &waits, configuration)
        // The disk of the directory is not mounted.
        case .unusableDestination where error.systemError == ENODEV:
            setWait(for: .destination, error.message, &waits, configuration)
        case .cancelled: change.state = .init(.paused)
        default:
            waits.resetCount(of: download.id)
            setFailed(error)
        }
    }

    /// Sets the state `failed` with the reason.
    mutating func setFailed(_ error: TowlineError) {
        change.state = .init(
            .failed, reason: error.message, reasonCode: error.storedCode, status: error.status,
            endedAt: clock.milliseconds)
        note("failed", error.message)
    }

    private mutating func setWait(
        for code: WaitCode, _ reason: String, _ waits: inout RetryWaits, _ configuration: Downloader.Configuration
    ) {
        // One note for consecutive waits: a network that is down for days does not fill the timeline.
        let isFirst = waits.count(of: download.id) == 0
        setWait(for: code, reason, until: clock.time + waits.nextDelay(download.id, code, configuration))
        if isFirst { note("waiting", reason) }
    }

    /// Sets the state `waiting`: the next transfer of the download begins at the monotonic time `end`, so that another
    /// download can run.
    mutating func setWait(for code: WaitCode, _ reason: String, until end: Duration) {
        wait = RetryWaits.Wait(code: code, until: end)
        change.state = .init(
            .waiting, reason: reason, reasonCode: code.rawValue,
            waitUntil: clock.milliseconds + Int64((end - clock.time) / .milliseconds(1)))
    }

    /// Sets the state that a command requests, such as pause or cancel, if a command ended the transfer. Before a
    /// cancel, the caller deletes the downloaded bytes.
    mutating func obeyCommand() {
        switch intent {
        case .none, .serverWait: break
        case .restart: change.state = .init(.queued)
        case .pause:
            change.state = .init(.paused)
            note("paused", "the download was paused")
        case .cancel:
            change.state = .init(.cancelled, endedAt: clock.milliseconds)
            change.heldBytes = 0
            note("cancelled", "the download was cancelled")
        // The remove command waits for this end.
        case .remove: change.state = .init(.paused)
        // The state stays active, so that the next launch resumes the download.
        case .close: break
        }
    }

    /// Sets the number of downloaded bytes of an incomplete download. Only bytes in a journal are kept; a small file
    /// has no journal.
    mutating func keep(_ journal: JournalSummary?) { change.heldBytes = journal?.heldBytes ?? 0 }

    /// The snapshot of the download as it is after `change` is in the registry, to publish it even while the registry
    /// cannot be written.
    var snapshot: DownloadSnapshot {
        var record = download.recordWithName
        if let state = change.state {
            record.state = state.state
            record.reason = state.reason
            record.reasonCode = state.reasonCode
            record.status = state.status
            record.waitUntil = state.waitUntil
            record.endedAt = state.endedAt
        }
        if let directory = change.directory { record.directory = directory }
        if let name = change.name { record.name = name }
        if let length = change.completeLength { record.completeLength = length }
        if let held = change.heldBytes { record.heldBytes = held }
        var snapshot = DownloadSnapshot(record)
        snapshot.receivedBytes = download.progress.received
        return snapshot
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
