import Foundation
internal import Logging
import Synchronization
import TowlineCore
import TowlineEngine

/// A running download: a download with a transfer. The transfer reports its progress to this object from any thread,
/// and the `DownloadScheduler` collects the reports.
final class LiveDownload: TransferObserver {
    /// The reason why the transfer is to end, which decides the state of the download afterwards.
    enum Intent: Equatable, Sendable {
        /// No reason to end: the transfer runs until the download finishes or fails.
        case none
        /// A long pause that the server requested: the monotonic time of its end, and its reason. The transfer ends, so
        /// that another download can run during the pause.
        case serverWait(Duration, String)
        case pause
        case cancel
        /// A restart: the download is queued again, for example because its request was changed.
        case restart
        case remove
        /// The downloader (the whole list) closes. The registry keeps the state active, so that the next launch resumes
        /// the download.
        case close
    }

    /// The state of a running download, behind a lock: its entry in the registry, the last report of its transfer and
    /// the reason to end it.
    private struct Fields {
        var record: RegisteredDownload
        var request: DownloadRequest
        var transfer = TransferSnapshot()
        var network: NetworkState
        var outage: Outage
        /// The time when the transfer's current wait before a retry ends; `nil` if the transfer does not wait.
        var waitsUntil: Date?
        var isDirty = false
        var entries: [TimelineNote] = []
        /// A change of the registry entry that could not be written to the registry. The next change includes it.
        var unwrittenChange: RegistryChange?
        var intent = Intent.none
        /// `true` while the transfer waits for its next request. The displayed state may be a wait although a request
        /// runs.
        var isTransferWaiting = false
        var runner: TransferRunner?
        /// A closure that is called once, when a command such as pause ends the transfer, so that the caller does not
        /// wait any longer for a new link.
        var ending: (@Sendable () -> Void)?
        var isOver = false
        var endState: RegisteredState?

        /// Replaces the transfer's snapshot (state and progress). Returns whether the new one differs in more than the
        /// remaining time of the same wait, which decreases all the time.
        mutating func replaceTransfer(with new: TransferSnapshot, _ clock: any DownloadClock) -> Bool {
            var old = transfer
            transfer = new
            let end = new.wait.map { clock.date.addingTimeInterval($0.remaining / .seconds(1)) }
            if let wait = new.wait, let end, let waitsUntil, abs(end.timeIntervalSince(waitsUntil)) < 1 {
                old.wait?.remaining = wait.remaining
            } else {
                waitsUntil = end
            }
            return old != new
        }
    }

    let id: DownloadID
    /// The host and the group whose limits apply to this download.
    var share: Admission.Share { fields.withLock { Admission.Share($0.record) } }
    private let hub: SnapshotHub
    private let logger: Logger?
    let clock: any DownloadClock
    private let fields: Mutex<Fields>

    init(
        _ record: RegisteredDownload, _ request: DownloadRequest, hub: SnapshotHub, logger: Logger?,
        network: NetworkState = .available, outage: DownloadState.WaitReason? = nil,
        clock: any DownloadClock = SystemClock()
    ) {
        self.clock = clock
        id = record.id
        self.logger = logger
        self.hub = hub
        var transfer = TransferSnapshot()
        transfer.state = outage.map { .waiting($0) } ?? .connecting
        transfer.heldBytes = record.heldBytes
        transfer.completeLength = record.completeLength
        fields = Mutex(
            Fields(
                record: record, request: request, transfer: transfer, network: network,
                outage: Outage(outage, now: clock.time)))
    }

    // MARK: Reports of the transfer

    func traced(_ line: String) { logger?.debug("\(line)", metadata: ["download": "\(id)"]) }

    func progressed(_ snapshot: TransferSnapshot) {
        if let wait = longWait(snapshot) { makeRoom(wait) }
        let changed = fields.withLock { fields -> DownloadSnapshot? in
            guard !fields.isOver else { return nil }
            var snapshot = snapshot
            if case .waiting = snapshot.state {
                fields.isTransferWaiting = true
            } else {
                fields.isTransferWaiting = false
            }
            // A new transfer knows less than the list. Displayed progress must not jump back.
            if snapshot.completeLength == nil { snapshot.completeLength = fields.record.completeLength }
            if snapshot.state == .queued { snapshot.state = .connecting }
            if snapshot.state == .connecting, snapshot.heldBytes == 0 { snapshot.heldBytes = fields.record.heldBytes }
            // The center publishes the end with its reason after the registry has stored the end.
            if Self.isEnd(snapshot.state) { snapshot.state = fields.transfer.state }
            snapshot.state = fields.outage.state(snapshot, fields.network, now: clock.time)
            if case .waiting = snapshot.state { (snapshot.rate, snapshot.remaining) = (nil, nil) }
            let isNews = snapshot.state != fields.transfer.state || snapshot.name != fields.transfer.name
            if fields.replaceTransfer(with: snapshot, clock) { fields.isDirty = true }
            guard isNews else { return nil }
            fields.isDirty = false
            return Self.snapshot(fields)
        }
        if let changed { hub.publish(changed) }
    }

    /// The longest pause requested by the server (`Retry-After`) during which the transfer keeps running. For a longer
    /// one, the transfer ends, so that another download can run.
    private static let longestServerWait = Duration.seconds(10)

    private func longWait(_ snapshot: TransferSnapshot) -> LiveDownload.Intent? {
        guard snapshot.state == .waiting(.server), let wait = snapshot.wait, wait.remaining > Self.longestServerWait
        else { return nil }
        return .serverWait(clock.time + wait.remaining, wait.reason)
    }

    /// Ends the transfer during a long pause that the server requested, so that another download can run. A transfer
    /// that is already to end is unchanged. A transfer with a maximum number of attempts continues, to count its
    /// attempts.
    private func makeRoom(_ wait: Intent) {
        let runner = fields.withLock { fields -> TransferRunner? in
            guard case .none = fields.intent, fields.request.maximumTries == nil, !fields.isOver else { return nil }
            fields.intent = wait
            return fields.runner
        }
        runner?.stop(wait.purpose)
    }

    private static func isEnd(_ state: DownloadState) -> Bool {
        [.finished, .failed, .paused, .cancelled].contains(state)
    }

    func noticed(_ notice: TransferNotice) {
        let entry = TimelineNote(time: clock.milliseconds, kind: notice.kind.rawValue, message: notice.message)
        fields.withLock { $0.entries.append(entry) }
        hub.publish(entry, of: id)
    }

    // MARK: Calls of the scheduler

    var snapshot: DownloadSnapshot { fields.withLock { Self.snapshot($0) } }

    /// Returns the current snapshot, to publish it, if it changed since the last call or publication; `nil` otherwise,
    /// and after the end of the transfer.
    func takeDirtySnapshot() -> DownloadSnapshot? {
        fields.withLock { fields in
            guard fields.isDirty, !fields.isOver else { return nil }
            fields.isDirty = false
            return Self.snapshot(fields)
        }
    }

    /// The progress that the registry does not contain yet, in bytes: the differences of the downloaded bytes and of
    /// the file size. `DownloadList.totals()` adds them to the stored sums.
    var newBytes: (held: Int64, complete: Int64) {
        fields.withLock { fields in
            guard !fields.isOver else { return (0, 0) }
            let complete = (fields.transfer.completeLength ?? 0) - (fields.record.completeLength ?? 0)
            return (fields.transfer.heldBytes - fields.record.heldBytes, complete)
        }
    }

    /// Returns the changes that the registry does not contain yet: name, length and timeline notes, and if `progress`
    /// is `true` the number of downloaded bytes. The caller writes them. `nil` if nothing changed.
    func takeChange(progress: Bool) -> RegistryChange? {
        fields.withLock { fields in
            var change = fields.unwrittenChange ?? RegistryChange(id)
            fields.unwrittenChange = nil
            let transfer = fields.transfer
            if let name = transfer.name, name != fields.record.name {
                fields.record.name = name
                change.name = name
            }
            if let length = transfer.completeLength, length != fields.record.completeLength {
                fields.record.completeLength = length
                change.completeLength = .some(length)
            }
            if progress, transfer.heldBytes != fields.record.heldBytes {
                fields.record.heldBytes = transfer.heldBytes
                change.heldBytes = transfer.heldBytes
            }
            change.entries += fields.entries
            fields.entries = []
            return change == RegistryChange(id) ? nil : change
        }
    }

    /// Keeps a change of the registry entry that could not be written to the registry, and adds it to the result of the
    /// next `takeChange`. Only the newest 100 timeline notes are kept.
    func putBack(_ change: RegistryChange) {
        fields.withLock { fields in
            var change = change
            change.entries = change.entries.suffix(Self.mostNotes)
            fields.unwrittenChange = change
        }
    }

    /// The maximum number of timeline notes that are kept while the registry cannot be written.
    private static let mostNotes = 100

    /// Sets the runner, the object that runs the transfer. Stops the runner immediately if a command has already asked
    /// for the end of the transfer.
    func begin(_ runner: TransferRunner) {
        let (isWanted, network) = fields.withLock { fields in
            fields.runner = runner
            return (fields.intent == .none, fields.network)
        }
        if network == .unavailable { runner.nudge(network) }
        if !isWanted { runner.stop(intent.purpose) }
    }

    /// Passes a change of the machine's network to the transfer, which may then retry or report that the network is
    /// lost.
    func networkChanged(_ network: NetworkState) {
        let runner = fields.withLock { fields in
            fields.network = network
            return fields.runner
        }
        runner?.nudge(network)
    }

    /// Ends the transfer soon for this reason. A reason with a higher rank, such as cancel after pause, replaces an
    /// earlier reason; one with a lower rank does not.
    ///
    /// - Returns: the argument `intent`.
    @discardableResult
    func end(_ intent: Intent) -> Intent {
        let (runner, ending) = fields.withLock { fields in
            if intent.rank >= fields.intent.rank { fields.intent = intent }
            return (fields.runner, fields.ending.take())
        }
        runner?.stop(intent.purpose)
        ending?()
        return intent
    }

    /// Calls `body` once when a command such as pause ends the transfer, or now if a command already has. Used to stop
    /// waiting for a new link. `nil` removes an earlier closure.
    func whenEnding(_ body: (@Sendable () -> Void)?) {
        let isEnding = fields.withLock { fields in
            fields.ending = fields.intent.isCommand ? nil : body
            return fields.intent.isCommand
        }
        if isEnding { body?() }
    }

    /// Replaces the reason `pause` to end the transfer with a restart, while the transfer is still ending for the
    /// pause.
    ///
    /// - Returns: `false` if the transfer was not ending for a pause. The function then changes nothing.
    func resume() -> Bool {
        fields.withLock { fields in
            guard fields.intent == .pause else { return false }
            fields.intent = .restart
            return true
        }
    }

    /// The reason why the transfer is to end; `none` if no command or pause of the server ends it.
    var intent: Intent { fields.withLock { $0.intent } }

    /// A Boolean value that indicates whether the transfer waits before its next request, or is ending for a long pause
    /// that the server requested.
    var isWaiting: Bool {
        fields.withLock { fields in
            if case .serverWait = fields.intent { return true }
            return fields.isTransferWaiting
        }
    }

    /// The wait (for the network or a retry) that the download shows after a failure; `nil` once bytes have arrived.
    var outage: DownloadState.WaitReason? { fields.withLock { $0.outage.wait } }

    /// The request (URL, destination, options) of the running download, with its latest changes.
    var request: DownloadRequest { fields.withLock { $0.request } }

    /// The entry of the download in the registry, as last read or changed.
    var record: RegisteredDownload { fields.withLock { $0.record } }

    /// The number of downloaded bytes, including earlier transfers, and the number of bytes received in this transfer.
    var progress: (held: Int64, received: Int64) {
        fields.withLock { ($0.transfer.heldBytes, $0.transfer.receivedBytes) }
    }

    /// The object that sends the requests of the transfer and writes its bytes; `nil` before the transfer began.
    var runner: TransferRunner? { fields.withLock { $0.runner } }

    /// Changes the registry entry and the request that this object holds. The caller has already written them.
    func update(_ body: @Sendable (inout RegisteredDownload, inout DownloadRequest) -> Void) {
        fields.withLock { fields in
            body(&fields.record, &fields.request)
            fields.isDirty = true
        }
    }

    /// Ignores all further progress of the transfer, because the transfer has ended.
    ///
    /// - Parameter state: the new state of the download; `nil` if the state in the registry does not change.
    func close(_ state: RegisteredState?) {
        fields.withLock { fields in
            fields.isOver = true
            fields.endState = state
        }
    }

    /// The state of the download after its transfer ended; `nil` before, and if the end of the transfer did not change
    /// the state.
    var endState: RegisteredState? { fields.withLock { $0.endState } }

    private static func snapshot(_ fields: Fields) -> DownloadSnapshot {
        var snapshot = DownloadSnapshot(fields.record, fields.transfer, waitsUntil: fields.waitsUntil)
        if case .waiting = snapshot.state, snapshot.reason == nil { snapshot.reason = fields.outage.reason }
        return snapshot
    }
}

extension LiveDownload.Intent {
    /// The purpose to pass to the transfer when it is stopped for this reason, such as a pause. The purpose decides how
    /// much data is synced to disk before the transfer ends.
    var purpose: StopPurpose {
        switch self {
        case .close: .close
        case .none, .serverWait, .pause: .pause
        case .restart, .cancel, .remove: .discard
        }
    }

    /// A Boolean value that indicates whether the transfer is to end because of a command, such as pause or the close
    /// of the downloader, and not because of the server.
    var isCommand: Bool {
        switch self {
        case .none, .serverWait: false
        case .restart, .pause, .close, .cancel, .remove: true
        }
    }

    /// A Boolean value that indicates whether a later command may reverse this one: a pause becomes a restart, or a
    /// restart becomes a pause.
    var isReversible: Bool { self == .pause || self == .restart }

    /// The state of a download after its transfer ended for this reason; `nil` if the reason does not decide the state.
    var endState: RegisteredState? {
        switch self {
        case .none, .serverWait, .close: nil
        case .restart: .queued
        case .pause, .remove: .paused
        case .cancel: .cancelled
        }
    }

    /// The precedence of this reason to end a transfer. A reason replaces only reasons with an equal or lower rank.
    var rank: Int {
        switch self {
        case .none: 0
        case .serverWait: 1
        case .restart: 2
        // A pause that is in progress is kept when the downloader closes.
        case .close: 3
        case .pause: 4
        case .cancel: 5
        case .remove: 6
        }
    }
}

extension Admission.Share {
    /// Creates the host and the group whose limits on running downloads a registry entry counts against.
    init(_ record: RegisteredDownload) { self.init(host: record.host, group: record.group) }
}
